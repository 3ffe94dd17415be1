"""The kinds of problems: how their programs are called, and what tests may do beside plain calls."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from codea1_env.declared import require_declared


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


@dataclass(frozen=True, slots=True)
class CallForms:
    """The forms of calls that tests of one problem may use beside plain ones.

    Raises:
        UserError: a field is neither True nor False.
    """

    in_place: bool = False
    """The entry point changes its arguments, and tests may read an argument after a call."""
    functions: bool = False
    """Arguments may be functions that a test writes (lambdas and built-in functions), and a test may call a function
    that the entry point returns."""

    def __post_init__(self) -> None:
        require_declared(self, "")


PLAIN_CALLS = CallForms()
