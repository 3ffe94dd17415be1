from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from codea1_env.audit import load_attacks
from tests.support import ROOT
from tests.support.command_line import codea1, one_object, refused

pytestmark = pytest.mark.xdist_group("watches the machine")

WEAK = """\
from codea1_env.facts.verdicts import Outcome, OutcomeKind
from codea1_env.sandbox import Guarantee, JobReport
from codea1_env.values import encode


class Weak:
    '''Runs a program in this process, with all that it needs to know.'''

    name = "weak"
    guarantee = Guarantee.TRUSTED_ONLY

    def run(self, jobs):
        return [JobReport(Outcome(OutcomeKind.VALUE, encode(None)), self.answers(job)) for job in jobs]

    def answers(self, job):
        names = {}
        exec(job.program, names)
        if "Joker" in job.program:
            return tuple(Outcome(OutcomeKind.VALUE, encode(right)) for right in (42, [42]))
        return tuple(Outcome(OutcomeKind.VALUE, encode(eval(call.expression, names))) for call in job.calls)

    def close(self):
        pass


weak = Weak()
"""


@pytest.fixture
def weak(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.syspath_prepend(folder)
    (folder / "weak.py").write_text(WEAK)
    return "weak:weak"


@pytest.mark.slow
def test_an_attack_that_is_held_is_told_and_exits_with_0() -> None:
    result = codea1("sandbox", "audit", "--only", "always_equal", "--json")
    assert result.exit_code == 0, result.stderr
    data = one_object(result.stdout)
    assert {name: n for name, n in data["counts"].items() if n} == {"held": 1}
    assert data["attacks"][0]["tries"] in result.stderr


def test_a_wrong_result_exits_with_1_though_nothing_was_gained(monkeypatch: pytest.MonkeyPatch) -> None:
    only = load_attacks().only("walrus")
    stale = replace(only, suites=(replace(only.suites[0], n_valid=6),))
    monkeypatch.setattr("codea1_agents.cli.sandbox_audit.load_attacks", lambda: stale)
    result = codea1("sandbox", "audit")
    assert result.exit_code == 1
    assert "walrus: wrong result: " in result.stdout


def test_a_forged_verdict_is_told_and_exits_with_1(weak: str) -> None:
    result = codea1("sandbox", "audit", "--sandbox", weak, "--only", "always_equal", "--json")
    assert result.exit_code == 1, result.stderr
    data = one_object(result.stdout)
    assert (data["sandbox"], data["guarantee"], data["tier"]) == ("weak", "trusted only", "")
    assert (data["is_sound"], data["counts"]["held"], data["counts"]["forged"]) == (False, 0, 1)
    assert "f(1) counts as 42" in data["attacks"][0]["sentence"]
    assert "FORGED" in result.stderr


@pytest.mark.parametrize(("attack", "kind"), [("walrus", "suite"), ("bytes_for_numbers", "candidate")])
def test_a_suite_or_a_candidate_can_be_judged_alone(attack: str, kind: str) -> None:
    data = one_object(codea1("sandbox", "audit", "--only", attack, "--json").stdout)
    assert [(each["kind"], each["result"]) for each in data["attacks"]] == [(kind, "held")]


def test_the_documents_list_every_attack_and_no_other() -> None:
    lists = (ROOT / "docs" / "experiments" / "attacks" / "report.md").read_text().partition("\n## ")[2]
    told = dict(re.findall(r"(?m)^- (\w+): (.*)$", lists))
    tries = {attack.name: attack.tries for attack in load_attacks()}
    assert sorted([*told, *re.findall(r"`(\w+)`", lists)]) == sorted(tries)
    assert told.items() <= tries.items()


@pytest.mark.parametrize("arguments", [["--only", "nothing"], ["--sandbox", "lokal"], ["--sandbox", "weak:lost"]])
def test_bad_usage_is_bad_input(weak: str, arguments: list[str]) -> None:
    refused("sandbox", "audit", *arguments)
