"""Problems whose programs get arguments in `sys.argv` and print their output; they run anew for each test."""

from __future__ import annotations

from codea1_env.facts.problem_kinds import RUN, Programs, Script

PROGRAMS = Programs(
    RUN.__eq__,
    f"{RUN}, as in {RUN}('3', '4') == '7'",
    scripts=(Script.COMMAND_LINE_WORDS, Script.COMMAND_LINE_EXACT),
    given_as="args",
    takes_list=True,
    receives="sys.argv = ['program.py', *texts]",
)
