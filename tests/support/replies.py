"""Tests of `f` as a tester replies them, read strictly."""

from __future__ import annotations

from typing import Any

from codea1_env.facts.submissions import RejectionReason, Suite, TestCase
from codea1_env.facts.verdicts import ValidSuite
from codea1_env.rules.replies import read_suite
from codea1_env.rules.ruleset import Reading
from tests.support.toys import fenced


def bare(text: str, **options: Any) -> Suite:
    return read_suite(text, Reading.STRICT, entry_point="f", **options)


def block(text: str, **options: Any) -> Suite:
    """Return the suite of a reply that holds nothing but a block of Python."""
    return bare(fenced(text), **options)


def claims(suite: Suite) -> list[str]:
    """Return what each case expects of which expression."""
    return [f"{case.expression} => {case.prediction}" for case in suite.cases]


def reasons(suite: Suite | ValidSuite) -> list[RejectionReason]:
    return [rejection.reason for rejection in suite.rejections]


def accepted(text: str) -> TestCase:
    """Return the only case of a block of which nothing is rejected."""
    suite = block(text)
    assert suite.rejections == ()
    (case,) = suite.cases
    return case


def rejected(text: str) -> list[RejectionReason]:
    """Return why the tests of a block without a case were rejected."""
    suite = block(text)
    assert suite.cases == ()
    return reasons(suite)
