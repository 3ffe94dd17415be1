"""Problems whose programs define a function, which tests call with arguments."""

from __future__ import annotations

from codea1_env.facts.problem_kinds import Programs

PROGRAMS = Programs(str.isidentifier, "a Python name", takes_call_forms=True)
