"""Problems whose programs define a method, which tests call on a new instance of its class each time."""

from __future__ import annotations

from codea1_env.facts.entry_points import is_method
from codea1_env.facts.problem_kinds import Programs

PROGRAMS = Programs(is_method, "a method such as Solution().two_sum")
