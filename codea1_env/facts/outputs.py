"""The standard output of a program, in the form in which it is compared."""

from __future__ import annotations

from enum import StrEnum


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
