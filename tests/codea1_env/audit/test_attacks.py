"""The attacks as data."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import pytest

from codea1_env.audit.attacks import NEEDLE, Truth, load_attacks, read_candidate, read_program, read_suite
from codea1_env.errors import BrokenInput, UnknownName
from codea1_env.facts.submissions import RejectionReason
from codea1_env.facts.verdicts import OutcomeKind
from codea1_env.sandbox import Limits

ATTACKS = load_attacks()
TESTBEDS = {suite.testbed.problem.entry_point: suite.testbed for suite in ATTACKS.suites}
HARMFUL = re.compile(
    r"os\.(?:fork|forkpty|system|popen|posix_spawn|killpg|pidfd_open|memfd_create)\b|os\.kill\(|\bsubprocess\b"
    r"|socket\.socket|/dev/shm/|O_CREAT|open\([^)]*[\"'][wxa]|ptrace|bytearray\(1 <<"
)
PROGRAM = 'tries = "x"\nprogram = "def f(x): return x"\ncalls = ["f(1)"]\nright = ["2"]\n'
CANDIDATE = (
    'tries = "x"\nsolution = "def f(x): return x"\nprogram = "def f(x): return 1"\n'
    'asserts = ["assert f({n}) == {n}"]\ntruth = ["fails"]\n'
)
read_total = partial(read_suite, testbeds=TESTBEDS)
SUITE = 'tries = "x"\nground = "total"\nreply = "assert total(1) == 1"\n'


def test_there_are_many_of_each_kind_with_names_of_their_own() -> None:
    assert len(ATTACKS.programs) >= 70
    assert len(ATTACKS.suites) >= 40
    assert len(ATTACKS.candidates) >= 60
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS)


def test_what_may_run_outside_a_sandbox_has_nothing_in_it_that_harms() -> None:
    # `stop_itself` signals itself; `unpickling_runs_code` names a command that only an unpickler would run.
    excused = {"stop_itself", "unpickling_runs_code"}
    found = {a.name: HARMFUL.findall(a.program) for a in ATTACKS.programs if a.is_safe and a.name not in excused}
    found |= {a.name: HARMFUL.findall(a.program + a.solution) for a in ATTACKS.candidates if a.is_safe}
    assert {name: hits for name, hits in found.items() if hits} == {}


def test_what_a_candidate_is_judged_by_stands_in_its_asserts() -> None:
    for attack in ATTACKS.candidates:
        assert all(line.count("assert ") == 1 and "\n" not in line for line in attack.asserts), attack.name
        assert all(case.expected for case in attack.golden), attack.name
        assert attack.n_golden <= len(attack.golden), attack.name


def test_outcomes_and_rejections_of_every_kind_but_our_own_failure_are_provoked() -> None:
    kinds = {kind for attack in ATTACKS.programs for kind in attack.outcomes}
    assert kinds == set(OutcomeKind) - {OutcomeKind.INTERNAL_ERROR}
    reasons = {reason for suite in ATTACKS.suites for reason in suite.reasons or ()}
    release_only, by_luck = {RejectionReason.NO_COMPARISON}, {RejectionReason.FLAKY, RejectionReason.UNKNOWABLE}
    never_hostile = {RejectionReason.EMPTY_REPLY, RejectionReason.NO_CODE, RejectionReason.UNPASSABLE}
    assert reasons == set(RejectionReason) - release_only - by_luck - never_hostile


def n_failing(program: str, reply: str) -> int:
    failing, scope = 0, {}
    exec(program, scope)
    for line in reply.splitlines():
        try:
            exec(line, scope)
        except AssertionError:
            failing += 1
    return failing


@pytest.mark.parametrize("name", TESTBEDS)
def test_a_testbeds_programs_are_as_right_and_as_wrong_as_it_states(name: str) -> None:
    testbed = TESTBEDS[name]
    assert NEEDLE in testbed.problem.solution
    assert NEEDLE not in "".join((*testbed.right, *testbed.wrong, *testbed.honest, testbed.problem.statement))
    expected = dict.fromkeys((testbed.problem.solution, *testbed.right), (0, 0))
    expected |= dict.fromkeys(testbed.wrong, testbed.n_beating)
    for program, numbers in expected.items():
        assert tuple(n_failing(program, reply) for reply in testbed.honest) == tuple(numbers)


def test_limits_and_outcomes_are_read() -> None:
    attack = read_program(PROGRAM + 'outcomes = ["value", "crashed"]\n[limits]\ncpu_s = 0.5\n', "x")
    assert attack.outcomes == {OutcomeKind.VALUE, OutcomeKind.CRASHED}
    assert attack.limits == Limits(cpu_s=0.5)
    assert attack.to_job().calls[0].expression == "f(1)"
    assert not attack.is_safe


def test_a_reply_can_be_repeated_and_written_with_escapes() -> None:
    text = 'tries = "x"\nground = "total"\nrepeat = 2\nreply = "assert total({n})\\n"\n'
    assert read_suite(text, "x", TESTBEDS).reply == "assert total(0)\nassert total(1)\n"
    text = "tries = 'x'\nground = 'total'\nescaped = true\nreply = 'é\\x00\\ud83d'\n"
    assert read_suite(text, "x", TESTBEDS).reply == "é\0\ud83d"


@pytest.mark.parametrize(
    ("read", "text", "complaint"),
    [
        (read_program, "tries = ", "not TOML"),
        (read_program, PROGRAM.replace("tries", "attempts"), "tries: Field required"),
        (read_program, PROGRAM.replace('"x"', "1"), "tries"),
        (read_program, PROGRAM.replace('["f(1)"]', "[1]"), "calls.0: expected a valid string"),
        (read_program, PROGRAM.replace('right = ["2"]', ""), "no expected result is stated"),
        (read_program, PROGRAM.replace('["2"]', '["2", "3"]'), "one value per call"),
        (read_program, PROGRAM + 'outcomes = ["vaule"]', "outcomes.0: expected 'value', 'opaque'"),
        (read_candidate, CANDIDATE.replace('["fails"]', "[]"), "truth needs one word per assert"),
        (read_candidate, CANDIDATE.replace("fails", "false"), "truth.0.*: expected 'fails', 'passes'"),
        (read_candidate, CANDIDATE + 'rules = "loose"', "unknown rules 'loose'"),
        (read_candidate, CANDIDATE + "reply = ''", "reply: Extra inputs"),
        (read_total, SUITE.replace("total", "nowhere", 1), "unknown testbed 'nowhere'"),
        (read_total, SUITE + "n_valid = true", "n_valid"),
        (read_total, SUITE + "reasons = { bad_luck = 1 }", "reasons.bad_luck"),
        (read_total, SUITE + "calls = []", "calls: Extra inputs"),
    ],
)
def test_an_attack_that_cannot_be_read_is_broken_input(read: Callable[..., object], text: str, complaint: str) -> None:
    with pytest.raises(BrokenInput, match=f"^name: .*{complaint}"):
        read(text, "name")


def test_a_candidate_is_read_with_its_truth() -> None:
    text = CANDIDATE + 'repeat = 2\ngolden = ["f(1) == 1"]\nn_golden = 1\nrules = "paper"\n[limits]\ncpu_s = 0.5\n'
    attack = read_candidate(text, "x")
    assert attack.asserts == ("assert f(0) == 0", "assert f(1) == 1")
    assert attack.truth == (Truth.FAILS, Truth.FAILS)
    assert (attack.problem.golden[0].expression, attack.n_golden) == ("f(1)", 1)
    assert (attack.rules.name, attack.limits) == ("paper", Limits(cpu_s=0.5))
    rejected = read_candidate(CANDIDATE.replace("fails", "too_many_calls"), "x")
    assert rejected.truth == (RejectionReason.TOO_MANY_CALLS,)


def test_one_attack_can_be_chosen() -> None:
    assert [attack.name for attack in ATTACKS.only("always_equal")] == ["always_equal"]
    assert [attack.name for attack in ATTACKS.only("walrus")] == ["walrus"]
    with pytest.raises(UnknownName, match="always_equal"):
        ATTACKS.only("allways_equal")
