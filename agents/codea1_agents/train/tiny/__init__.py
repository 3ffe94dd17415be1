"""A small world in which two language models learn from scratch on one processor core.

`components` and `family` make problems out of parts that each have a right form and wrong ones; `problems` gives
them to the game as the source `tiny`. `corpus`, `tokenizer` and `pretraining` make a language model that knows them a
little; `measuring` says how little.
"""
