"""Small problems and models, with which two language models learn from scratch on one processor core.

`components` and `family` compose problems from parts, each of which has a right form and wrong ones. `problems` offers
them as the source `tiny`. `corpus`, `tokenizer` and `pretraining` make a language model that solves some of them.
`measuring` measures models.
"""
