"""Formulas of other distributions, found by their entry points and used by name like our own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from codea1_env.errors import UnknownName, UserError
from codea1_env.facts.verdicts import CandidateReport, ProblemReport, Verdict
from codea1_env.problems import load_problems
from codea1_env.rounds.rounds import require_golden_tests
from codea1_env.rules.rewards import score, score_group
from codea1_env.rules.ruleset import RewardRules, Ruleset, preset, reward_plugin
from tests.support.reports import candidate, met, suite_of

SOURCE = """
from codea1_env.rules.rewards import CandidateRewards, Reward, RewardPart

def kills(group, rules):
    found = []
    for report in group:
        kills = [RewardPart("kill", float(suite.beats), rules.reward.alpha) for suite in report.suites]
        testers = tuple(map(Reward.of, kills))
        beaten = sum(tester.parts[0].value for tester in testers)
        found.append(CandidateRewards(Reward.of(RewardPart("unbeaten", len(testers) - beaten, 1.0)), testers))
    return found

golden = lambda group, rules: kills(group, rules)
golden.needs_golden = True
golden.pays_tester = False
short, none, broken, number = lambda *_: [], lambda *_: None, lambda *_: 1 / 0, 3
"""
NAMES = ("kills", "golden", "short", "none", "broken", "number", "absent")


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A distribution with the metadata that an installer writes."""
    (tmp_path / "codea1_kill_rewards.py").write_text(SOURCE)
    info = tmp_path / "codea1_kill_rewards-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: codea1-kill-rewards\nVersion: 1.0\n")
    points = "".join(f"my-{name} = codea1_kill_rewards:{name}\n" for name in NAMES)
    (info / "entry_points.txt").write_text(f"[codea1_env.rewards]\n{points}")
    monkeypatch.syspath_prepend(str(tmp_path))
    reward_plugin.cache_clear()
    yield
    reward_plugin.cache_clear()
    sys.modules.pop("codea1_kill_rewards", None)


def rules(scheme: str) -> Ruleset:
    return replace(preset("fixed"), reward=RewardRules(scheme=scheme, alpha=0.25))


def judged(*verdicts: Verdict) -> CandidateReport:
    """One suite of one case per verdict."""
    return candidate(*(suite_of(met(verdict)) for verdict in verdicts))


@pytest.mark.parametrize("name", ["my-kills", "codea1_kill_rewards:kills"])
def test_an_installed_formula_is_used_by_its_name(name: str) -> None:
    found = score(judged(Verdict.WRONG_ANSWER, Verdict.PASSED), rules(name))
    assert found.coder.value == 1.0
    assert [tester.value for tester in found.testers] == [0.25, 0.0]


def test_it_scores_groups_and_never_sees_what_is_masked() -> None:
    reports = (judged(Verdict.WRONG_ANSWER), judged(Verdict.INTERNAL_ERROR), judged(Verdict.PASSED))
    found = score_group(ProblemReport("p", reports, shares_suites=True), rules("my-kills"))
    assert [each.coder.masked for each in found] == [False, True, False]
    assert [each.testers[0].value for each in (found[0], found[2])] == [0.25, 0.0]


def test_it_says_itself_what_the_game_must_provide() -> None:
    assert (rules("my-kills").reward.needs_golden, rules("my-kills").reward.pays_tester) == (False, True)
    assert (rules("my-golden").reward.needs_golden, rules("my-golden").reward.pays_tester) == (True, False)
    untested = [replace(load_problems("starter")[0], golden=())]
    require_golden_tests(untested, rules("my-kills"))
    with pytest.raises(UserError, match="pay for golden tests"):
        require_golden_tests(untested, rules("my-golden"))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("my-short", "'my-short' must return one reward per candidate"),
        ("my-none", "'my-none' failed: TypeError"),
        ("my-broken", "'my-broken' failed: ZeroDivisionError: division by zero"),
        ("my-number", "'my-number': expected a function, got int"),
        ("my-absent", "has no attribute 'absent'"),
        ("my-kill", "unknown reward scheme 'my-kill': did you mean 'my-kills'"),
        ("fixd", "did you mean 'fixed'"),
    ],
)
def test_what_is_no_formula_is_one_sentence(name: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        score(judged(Verdict.PASSED), rules(name))


def test_without_its_distribution_a_name_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", sys.path[1:])
    with pytest.raises(UnknownName, match="my-kills"):
        score(judged(Verdict.PASSED), rules("my-kills"))
