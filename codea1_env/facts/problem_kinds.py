"""The kinds of problems, by how their programs are called.

Each kind is a row of `PROGRAMS`. All other code asks its `Programs` what it needs to know, and never which kind it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from codea1_env.facts.answers import OutputForm
from codea1_env.facts.entry_points import is_method


class ProblemKind(StrEnum):
    """How the programs of a problem are called."""

    FUNCTION = "function"
    """A function is called with arguments."""
    METHOD = "method"
    """A method is called on a new instance of its class: `Solution().two_sum([2, 7], 9)`."""
    STDIN = "stdin"
    """The program runs anew for each input, which it reads from standard input; tests write `run("the input")`."""
    COMMAND_LINE = "command_line"
    """The program runs anew for each list of arguments, which are in `sys.argv`; tests write `run("3", "4")`."""


class Script(StrEnum):
    """How programs that run anew for each call get its texts, and what counts in their output."""

    WORDS = "words"
    EXACT = "exact"
    COMMAND_LINE_WORDS = "command_line words"
    COMMAND_LINE_EXACT = "command_line exact"

    @property
    def kind(self) -> ProblemKind:
        """The kind of problem; texts without one are of programs on standard input."""
        return ProblemKind(self.value.rpartition(" ")[0] or ProblemKind.STDIN)

    @property
    def output(self) -> OutputForm:
        """What counts in an output."""
        return OutputForm(self.value.rpartition(" ")[2])


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs of one kind of problem."""

    fits: Callable[[str], bool]
    """Whether a text can be their entry point."""
    entry_point_form: str
    """What an entry point is, for messages."""
    takes_call_forms: bool = False
    """Whether tests may use `CallForms`."""
    scripts: tuple[Script, ...] = ()
    """How programs run that run anew for each call: one for each form of their output. Such programs define nothing,
    and their entry point is `RUN`. Empty for all others."""
    given_as: str | None = None
    """In a row's golden test, the key of what a call is given; the other key is `output`."""
    takes_list: bool = False
    """Whether a call has a list of texts; else it has one."""
    same_input: Callable[[str], str] | None = None
    """Converts a text to the one of all texts that count as the same input; None: every character counts."""
    receives: str = ""
    """A statement that gives a program the list `texts` in a process that lives on."""


def kind_of(entry_point: str) -> ProblemKind:
    """Return the kind of problem in which programs define an entry point."""
    return ProblemKind.METHOD if is_method(entry_point) else ProblemKind.FUNCTION


def _same_input(text: str) -> str:
    """Return an input without white space at the ends of lines and of the text."""
    return "\n".join(line.rstrip() for line in text.split("\n")).rstrip("\n")


RUN = "run"
"""The entry point of programs that run anew for each call."""

PROGRAMS = {
    ProblemKind.FUNCTION: Programs(str.isidentifier, "a Python name", takes_call_forms=True),
    ProblemKind.METHOD: Programs(is_method, "a method such as Solution().two_sum"),
    ProblemKind.STDIN: Programs(
        RUN.__eq__,
        f"{RUN}, as in {RUN}('3 4') == '7'",
        scripts=(Script.WORDS, Script.EXACT),
        given_as="input",
        same_input=_same_input,
        receives="sys.stdin = io.TextIOWrapper(io.BytesIO(texts[0].encode()))",
    ),
    ProblemKind.COMMAND_LINE: Programs(
        RUN.__eq__,
        f"{RUN}, as in {RUN}('3', '4') == '7'",
        scripts=(Script.COMMAND_LINE_WORDS, Script.COMMAND_LINE_EXACT),
        given_as="args",
        takes_list=True,
        receives="sys.argv = ['program.py', *texts]",
    ),
}

SCRIPTS = {(kind, script.output): script for kind, programs in PROGRAMS.items() for script in programs.scripts}
"""How programs run that run anew for each call, by the kind of their problem and what counts in their output."""
