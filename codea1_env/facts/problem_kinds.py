"""The kinds of problems, by how their programs are called."""

from __future__ import annotations

from enum import StrEnum


class ProblemKind(StrEnum):
    """How the programs of a problem are called."""

    FUNCTION = "function"
    """A function is called with arguments."""
    METHOD = "method"
    """A method is called on a new instance of its class: `Solution().two_sum([2, 7], 9)`."""
    STDIN = "stdin"
    """The program runs anew for each input, which it reads from standard input; tests write `run("the input")`."""


RUN = "run"
"""The entry point of programs on standard input."""
