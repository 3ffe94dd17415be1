"""What is kept of an evaluation: one JSON line per sample or problem. Holds no clock, host or path."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from codea1_env.runs.records import Text


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CoderSample(_Record):
    """One reply of a coder, judged by the problem's golden tests."""

    problem_id: str
    sample: int
    """From 0."""
    reply: Text | None
    """None where the coder was unavailable."""
    passed: bool | None
    """Whether the program passes all golden tests; None: masked, it could not be found out."""
    pass_rate: float | None = None
    """Share of golden tests passed, in [0, 1]."""
    verdict: str = ""
    """Of the first golden test that is not passed, or of the reading; `passed` if there is none."""
    detail: Text = ""
    masked: str = ""
    """Why, if it is: `agent`, `sandbox` or `test` (a golden test is itself broken)."""


class TestRecord(_Record):
    """One test that was asked for."""

    __test__: ClassVar[bool] = False  # pytest would collect the class otherwise

    source: Text
    """One line of Python; empty where none could be read."""
    right: bool
    """Whether the solution passes it."""
    fault: str = ""
    """A `RejectionReason`; empty if it is right."""


class CoverageRecord(_Record):
    """What the tests of one problem reach in its solution."""

    n_lines: int
    n_branches: int
    lines: tuple[int, ...]
    """After the first, the first two, ... tests: how many lines they reach together, right or not."""
    branches: tuple[int, ...]
    right_lines: tuple[int, ...]
    """The same for the right ones among them."""
    right_branches: tuple[int, ...]
    n_run: tuple[int, ...]
    """How many of the first k tests could be run at all."""


class SelectionRecord(_Record):
    """N candidates for one problem, and how a tester's unique tests rank them."""

    problem_id: str
    passed: tuple[bool | None, ...]
    """(N,) whether each passes all golden tests; None: could not be found out."""
    pass_rate: tuple[float | None, ...]
    """(N,) share of golden tests passed."""
    scores: tuple[int | None, ...]
    """(N,) unique tests passed; None: could not be found out."""
    n_tests: int
    """Unique tests of all suites."""
    n_suites: int
    """Suites that the tester gave; those it was unavailable for are left out."""
    masked: str = ""


class TesterRecord(_Record):
    """What one problem says about a tester."""

    __test__: ClassVar[bool] = False  # likewise

    problem_id: str
    replies: tuple[Text, ...] = ()
    tests: tuple[TestRecord, ...] = ()
    """As many as were asked for."""
    n_valid: int = 0
    """Tests that count under the game's rules: right, and no duplicates of each other."""
    killed_by: tuple[int | None, ...] = ()
    """Per mutant the position of the first right test that kills it."""
    n_masked_mutants: int = 0
    """Mutants left out of `killed_by`: the sandbox failed on them."""
    coverage: CoverageRecord | None = None
    """None: it could not be measured."""
    selection: SelectionRecord | None = None
    """None where no candidates were asked for."""
    masked: str = ""
    """`agent` or `sandbox`: then nothing else is set."""
