"""Which answers of an entry point are right besides the solution's own, and the form in which outputs are compared."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from codea1_env.errors import UnknownName, UserError

CHECK = "check"
"""Name of the function that a checker defines."""


class AnswerOrder(StrEnum):
    """Whether the order of an answer's items matters."""

    FIXED = "fixed"
    """It does."""
    UNORDERED = "unordered"
    """The items of a list or tuple may have any order; each occurs as often as in the solution's answer."""
    UNORDERED_ROWS = "unordered_rows"
    """So may the items of each list or tuple in it."""


class OutputForm(StrEnum):
    """What counts in the output of a program."""

    WORDS = "words"
    """The words, in order. White space between them and line breaks do not count."""
    EXACT = "exact"
    """Every character, except that line breaks at the end do not count, and `\\r\\n` is `\\n`."""


def in_form(output: bytes, form: OutputForm) -> str:
    """Return an output as the text that is compared: the words joined by single spaces, or the lines as they are.

    Raises:
        UnicodeDecodeError: it is not UTF-8.
    """
    if form is OutputForm.WORDS:
        return b" ".join(output.split()).decode()
    return output.decode().replace("\r\n", "\n").rstrip("\n")


@dataclass(frozen=True, slots=True)
class AnswerRules:
    """The right answers of one problem. By default only an answer that equals the solution's is right.

    Raises:
        UserError: the order is unknown, the tolerance is outside [0, 1), or a checker is given together with
            another rule.
    """

    order: str = AnswerOrder.FIXED
    """An `AnswerOrder`."""
    tolerance: float = 0.0
    """Numbers within it of an expected float, Decimal or Fraction are right, relative or absolute. For floats, at least
    the tolerance of the ruleset applies.

    Below 1: of two numbers of one sign, each is within the relative distance 1 of the other."""
    checker: str = ""
    """Source of a program that defines `check(arguments, expected, answer)` and returns whether the answer is right.

    `arguments` is the tuple of the arguments in the order of the solution's parameters, `expected` the solution's
    answer. It runs in a process of its own, and only for an answer that does not equal the solution's."""

    def __post_init__(self) -> None:
        if self.order not in list(AnswerOrder):
            raise UnknownName.of("order of answers", str(self.order), map(str, AnswerOrder))
        if type(self.tolerance) not in (int, float) or not 0 <= self.tolerance < 1:
            raise UserError(f"the tolerance of answers must be a number in [0, 1), got {self.tolerance!r}")
        if self.checker and (self.order != AnswerOrder.FIXED or self.tolerance):
            raise UserError("answers can have a checker or an order and tolerance, not both: a checker decides alone")

    @property
    def accepts_others(self) -> bool:
        """Whether answers that do not equal the solution's can be right."""
        return bool(self.checker or self.tolerance) or self.order != AnswerOrder.FIXED

    @property
    def unordered_levels(self) -> int:
        """How many outer levels of lists and tuples are compared without order: 0, 1 or 2."""
        return list(AnswerOrder).index(AnswerOrder(self.order))


EQUAL_ANSWERS = AnswerRules()
"""Only answers that equal the solution's are right."""
