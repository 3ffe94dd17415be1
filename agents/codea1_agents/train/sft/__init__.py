"""Supervised fine-tuning of coders and testers, before or instead of reinforcement learning.

`examples` turns problems into prompts and replies. `supervised` has the training loop, which also pretrains tiny models
(`train.tiny.pretraining`). `fine_tuning` trains a model on examples, and `held_out` measures it.
"""
