"""What a problem's tests may do besides calling with plain data and comparing what comes back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from codea1_env.declared import require_declared


@dataclass(frozen=True, slots=True)
class CallForms:
    """The forms of calls that tests of one problem may use besides plain ones.

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

    def notes(self, name: str) -> Iterator[str]:
        """Yield what testers are told of the calls of an entry point."""
        if self.in_place:
            yield (
                f"`{name}` changes its argument: a test may assign a value to a name, as in `x = ...`, call"
                f" `{name}(x)`, and then assert what `x` is, in lines of their own."
            )
        if self.functions:
            yield (
                "Arguments that are functions are lambdas or built-in functions, written within the call, and a test"
                f" may call a function that `{name}` returns, as in `{name}(...)(...)`."
            )


PLAIN_CALLS = CallForms()
