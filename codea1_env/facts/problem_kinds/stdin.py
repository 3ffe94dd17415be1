"""Problems whose programs read standard input and print their output; they run anew for each test."""

from __future__ import annotations

from codea1_env.facts.problem_kinds import RUN, Programs, Script


def _same_input(text: str) -> str:
    """Return an input without white space at the ends of lines and of the text."""
    return "\n".join(line.rstrip() for line in text.split("\n")).rstrip("\n")


PROGRAMS = Programs(
    RUN.__eq__,
    f"{RUN}, as in {RUN}('3 4') == '7'",
    scripts=(Script.WORDS, Script.EXACT),
    given_as="input",
    same_input=_same_input,
    receives="sys.stdin = io.TextIOWrapper(io.BytesIO(texts[0].encode()))",
)
