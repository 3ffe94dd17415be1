"""The records of an evaluation: one JSON line per sample or problem. They contain no time, host or path."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer

from codea1_env.runs.records import Text


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


_OF_LATER_TURNS = ("turn", "kept", "feedback", "suite", "tester_feedback")


class CoderSample(_Record):
    """One reply of a coder, judged by the problem's golden tests."""

    problem_id: str
    sample: int
    """From 0."""
    reply: Text | None
    """None if the coder was unavailable."""
    passed: bool | None
    """Whether the program passes all golden tests; None: masked."""
    pass_rate: float | None = None
    """Share of golden tests passed, in [0, 1]."""
    verdict: str = ""
    """Verdict of the first golden test that failed, or of reading the reply; `passed` if nothing failed."""
    detail: Text = ""
    masked: str = ""
    """Reason of the mask: `agent`, `sandbox` or `test` (a golden test is itself broken); empty if it is not."""
    n_own_tests: int = 0
    """Statements that were left out of the program, as they only test it."""
    turn: int = 1
    """From 1; in later turns the reply repairs the one before."""
    kept: str = ""
    """Why the turn left the program as it was: `passed` (all tests shown), `unchanged` (by the coder), `untested` (no
    test was right), `coder`, `tester` (unavailable), `sandbox` or `masked` (the turn before); empty if it did not."""
    feedback: Text = ""
    """What the coder was shown of the turn before."""
    suite: Text = ""
    """The tester's reply about the program of the turn before, of which this feedback is."""
    tester_feedback: Text = ""
    """What the tester is shown of that suite when it tests this turn's program."""

    @model_serializer(mode="wrap")
    def _without_turns(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = serialize(self)
        return {name: fields[name] for name in fields if self.turn > 1 or name not in _OF_LATER_TURNS}


class TestRecord(_Record):
    """One requested test."""

    __test__: ClassVar[bool] = False  # pytest would collect the class otherwise

    source: Text
    """One line of Python; empty if no test could be read."""
    right: bool
    """Whether the solution passes it."""
    fault: str = ""
    """A `RejectionReason`; empty if it is right."""


class SelectionRecord(_Record):
    """N candidates for one problem, and how a tester's unique tests rank them."""

    problem_id: str
    passed: tuple[bool | None, ...]
    """(N,) whether each passes all golden tests; None: masked."""
    pass_rate: tuple[float | None, ...]
    """(N,) share of golden tests passed."""
    scores: tuple[int | None, ...]
    """(N,) number of unique tests passed; None: the sandbox failed."""
    n_tests: int
    """Unique tests of all suites."""
    n_suites: int
    """Suites that the tester wrote; suites for which it was unavailable do not count."""
    masked: str = ""


class TesterRecord(_Record):
    """A tester's tests for one problem, and their measures."""

    __test__: ClassVar[bool] = False  # likewise

    problem_id: str
    replies: tuple[Text, ...] = ()
    tests: tuple[TestRecord, ...] = ()
    """As many as were requested."""
    n_valid: int = 0
    """Number of tests that count under the game's rules: right, without duplicates."""
    killed_by: tuple[int | None, ...] = ()
    """Per mutant the position of the first right test that kills it."""
    n_masked_mutants: int = 0
    """Mutants left out of `killed_by`: the sandbox failed on them."""
    answers: float | None = None
    """Mean over its tests of the tester's probability of the right answer less that of the base; None without a base,
    or without a test that states one answer."""
    masked: str = ""
    """`agent` or `sandbox` if the problem is masked: then no other field is set."""
