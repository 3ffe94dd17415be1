"""What tests of a problem may do beside calls that take and return plain data."""

from __future__ import annotations

from dataclasses import dataclass

from codea1_env.errors import UserError


@dataclass(frozen=True, slots=True)
class CallForms:
    """The forms of calls that tests of one problem may use beside plain ones.

    Raises:
        UserError: a field is neither True nor False.
    """

    in_place: bool = False
    """The entry point changes its arguments, and tests may read an argument after a call."""

    def __post_init__(self) -> None:
        if type(self.in_place) is not bool:
            raise UserError(f"in_place must be true or false, not {self.in_place!r}")


PLAIN_CALLS = CallForms()
