"""The defects found in the official release (D1 to D24), each shown gone in `fixed`.

Where a defect is a rule rather than a leak of the implementation, `release` is shown to have it. Everything runs in the
real sandbox. What one module decides alone is tested there: D7 and D20 in `rules/test_replies_*`, D14 in
`rules/test_mistake_book`, and D21 and D22, which are about training, in `train/grpo`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from codea1_env import values
from codea1_env.book.store import MistakeBook
from codea1_env.facts.submissions import Candidate, RejectionReason
from codea1_env.facts.verdicts import CandidateReport, ProblemReport, ValidCase, Verdict
from codea1_env.judging.judge import Duel, Judge
from codea1_env.problems import GoldenCase, Problem
from codea1_env.rules.mistake_book import Provenance
from codea1_env.rules.replies import read_candidate, read_suite
from codea1_env.rules.rewards import CandidateRewards, score
from codea1_env.rules.ruleset import preset
from codea1_env.sandbox import Limits, Sandbox
from tests.support.toys import fenced

FAST = Limits(cpu_s=0.5, wall_s=10)


def problem(solution: str, entry_point: str = "f", **more: object) -> Problem:
    return Problem("toy/f", f"def {entry_point}(x): ...", entry_point, solution, (), **more)  # type: ignore[arg-type]


IDENTITY = problem("def f(x):\n    return x")


def judged(
    sandbox: Sandbox, of: Problem, programs: list[str], *suites: str, rules: str = "fixed", replayed: Any = ()
) -> ProblemReport:
    ruleset = preset(rules)
    candidates = tuple(read_candidate(fenced(p), ruleset.reading, entry_point=of.entry_point) for p in programs)
    asked = tuple(read_suite(fenced(s), ruleset.reading, entry_point=of.entry_point) for s in suites)
    duel = Duel(of, candidates, (asked,) * len(candidates), replayed)
    return Judge(sandbox, ruleset, limits=FAST).judge([duel])[0]


def one(sandbox: Sandbox, of: Problem, program: str, *suites: str, rules: str = "fixed") -> CandidateReport:
    return judged(sandbox, of, [program], *suites, rules=rules).candidates[0]


def passed(report: CandidateReport, n: int = 0) -> list[bool]:
    return [case.verdict is Verdict.PASSED for case in report.suites[n].cases]


def rewards(report: CandidateReport, rules: str = "fixed") -> CandidateRewards:
    return score(report, preset(rules))


def after_round(report: ProblemReport, rules: str = "fixed", book: MistakeBook | None = None) -> MistakeBook:
    book = book or MistakeBook()
    book.record(report, preset(rules).book, Provenance(episode_id="e", round=0))
    return book


def replays(book: MistakeBook, rules: str = "fixed") -> tuple[ValidCase, ...]:
    return tuple(entry.to_valid_case() for entry in book.retrieve("toy/f", preset(rules).book))


CHEATS = {
    "D1 prints the judge's markers": """
def f(x):
    for i in range(100):
        for b in range(100):
            print(f"__GEN_PASS__{b}_{i}")
            print(f"__GT_PASS__{b}_{i}")
    print("__CODE_VALID__", "__PASS__")
    return "wrong"
""",
    "D2 looks for the answers in the process": """
import gc, sys
def f(x):
    frame = sys._getframe()
    while frame is not None:
        for names in (frame.f_locals, frame.f_globals):
            for name in ("expected", "valid_asserts_list", "spec", "answers"):
                if name in names:
                    return names[name]
        frame = frame.f_back
    for found in gc.get_objects():
        if isinstance(found, dict) and "expected" in found:
            return found["expected"]
    return "wrong"
""",
    "D2 redefines builtins": """
import builtins, json
builtins.print = builtins.repr = lambda *a, **k: ""
json.dumps = lambda *a, **k: "null"
def f(x):
    return "wrong"
""",
    "D2 leaves early": """
import os, sys
def f(x):
    os._exit(0)
""",
    "D3 is equal to everything": """
class Yes:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
    def __repr__(self): return "1"
def f(x):
    return Yes()
""",
    "D3 is a list that is equal to everything": """
class Yes(list):
    def __eq__(self, other): return True
    def __iter__(self): return iter([])
    def __len__(self): return 0
def f(x):
    return Yes()
""",
}


@pytest.mark.parametrize("name", CHEATS)
@pytest.mark.parametrize("rules", ["fixed", "release"])
def test_d1_d2_d3_no_cheat_passes_a_case(sandbox, name, rules):
    suite = "assert f(1) == 1\nassert f([]) == []\nassert f('a') == 'a'"
    assert passed(one(sandbox, IDENTITY, CHEATS[name], suite, rules=rules)) == [False] * 3


def test_d4_nothing_of_the_solution_is_in_reach_of_a_candidate(sandbox):
    of = problem("class Solution:\n  def f(self, x): return x\nSECRET = 7\nhelp_me = lambda x: x\ndef f(x): return x")
    for program in ("pass", "f = Solution().f", "f = help_me"):
        assert not one(sandbox, of, program, "assert f(1) == 1").loads
    report = one(sandbox, of, "def f(x):\n    return SECRET", "assert f(7) == 7")
    assert passed(report) == [False]


def test_d5_a_test_cannot_change_the_process_that_later_tests_run_in(sandbox):
    suite = "assert f(globals().update(f=lambda x: 0)) == None\nassert f(5) == 5"
    for rules in ("fixed", "release"):
        report = one(sandbox, IDENTITY, "def f(x):\n    return x", suite, rules=rules)
        assert report.suites[0].cases[-1].case.case.expression == "f(5)"
        assert report.suites[0].cases[-1].verdict is Verdict.PASSED


@pytest.mark.parametrize("rules", ["fixed", "release"])
def test_d6_a_prediction_that_raises_shifts_nothing(sandbox, rules):
    suite = "assert f(1) == undefined\nassert f(2) == 2\nassert f(3) == 3\nassert f(4) == 4"
    report = one(sandbox, IDENTITY, "def f(x):\n    return x", suite, rules=rules)
    assert all(passed(report))
    assert after_round(ProblemReport("toy/f", (report,)), rules).size() == 0


AWKWARD = [
    repr(each) for each in ("a\nb", "back\\slash", "it's", 'say "it\'s"', "\0", "\ud800", "{}", "__TO_BE_FILLED__")
]


@pytest.mark.parametrize("text", AWKWARD)
@pytest.mark.parametrize("rules", ["fixed", "release"])
def test_d8_a_stored_case_stays_the_case_it_was(sandbox, text, rules):
    first = judged(sandbox, IDENTITY, ["def f(x):\n    return None"], f"assert f({text}) == {text}", rules=rules)
    book = after_round(first, rules)
    assert book.size() == 1
    again = judged(sandbox, IDENTITY, ["def f(x):\n    return x"], "", rules=rules, replayed=replays(book, rules))
    assert [case.verdict for case in again.candidates[0].replayed] == [Verdict.PASSED]
    assert after_round(again, rules, book).size() == 0


def test_d9_answers_that_are_no_plain_data_are_rejected_and_poison_nothing(sandbox):
    of = problem("import collections as c\ndef f(x): return [object(), (i for i in ()), f, c.defaultdict(int)][x]")
    first = judged(sandbox, of, ["def f(x):\n    return x"], "\n".join(f"assert f({i}) == 0" for i in range(4)))
    suite = first.candidates[0].suites[0].suite
    opaque = [r.source for r in suite.rejections if r.reason is RejectionReason.OPAQUE_VALUE]
    assert len(opaque) == 3
    assert [case.case.expression for case in suite.cases] == ["f(3)"]  # a defaultdict is a dict: plain data
    book = after_round(first)
    again = judged(sandbox, of, ["def f(x):\n    return {}"], "", replayed=replays(book))
    assert again.candidates[0].loads


def test_d10_nan_and_inf_can_be_passed_stored_and_retired(sandbox):
    suite = "assert f(float('nan')) == float('nan')\nassert f(float('inf')) == float('inf')"
    assert passed(one(sandbox, IDENTITY, "def f(x):\n    return x", suite)) == [True, True]
    book = after_round(judged(sandbox, IDENTITY, ["def f(x):\n    return 0"], suite))
    assert book.size() == 2
    again = judged(sandbox, IDENTITY, ["def f(x):\n    return x"], "", replayed=replays(book))
    assert after_round(again, book=book).size() == 0
    # The release compares with ==, so that a right program never passes a nan.
    assert passed(one(sandbox, IDENTITY, "def f(x):\n    return x", suite, rules="release")) == [False, True]


def test_d11_set_valued_answers_are_one_entry_however_often_they_return(sandbox):
    of, suite, book = problem("def f(x):\n    return set(x)"), "assert f(['pear', 'fig', 'plum']) == 0", MistakeBook()
    for _ in range(3):
        after_round(judged(sandbox, of, ["def f(x):\n    return x"], suite), book=book)
    assert [entry.frequency for entry in book.retrieve("toy/f", preset("fixed").book)] == [3]


def test_d12_a_shared_mutable_answer_does_not_change_earlier_cases(sandbox):
    of = problem("seen = []\ndef f(x):\n    seen.clear()\n    seen.append(x)\n    return seen")
    report = one(sandbox, of, "def f(x):\n    return [x]", "assert f(1) == [1]\nassert f(2) == [2]")
    assert passed(report) == [True, True]
    assert [values.describe(case.case.expected) for case in report.suites[0].cases] == ["[1]", "[2]"]


def test_d13_the_book_is_bounded_in_fixed_and_not_in_release(sandbox):
    sizes = {}
    for rules in ("fixed", "release"):
        book = MistakeBook()
        for start in range(0, 100, 50):
            suite = "\n".join(f"assert f({i}) == {i}" for i in range(start, start + 50))
            after_round(judged(sandbox, IDENTITY, ["def f(x):\n    return None"], suite, rules=rules), rules, book)
        sizes[rules] = book.size()
    assert sizes == {"fixed": 64, "release": 100}


def test_d15_float_noise_is_forgiven_in_fixed_and_not_in_release(sandbox):
    of = problem("def f(x):\n    return 0.3 * x")
    suite = "assert f(1.1) == 0.33\nassert f(3.3) == 0.99"
    noisy = "def f(x):\n    return 0.1 * x + 0.2 * x"
    assert passed(one(sandbox, of, noisy, suite)) == [True, True]
    assert False in passed(one(sandbox, of, noisy, suite, rules="release"))


@pytest.mark.parametrize(
    "condition",
    [
        "f(1.1) == 0.33",
        "(f(1.1) == 0.33) is True",
        "(f(1.1) == 0.33) == 1",
        "not f(1.1) != 0.33",
        "bool(f(1.1) == 0.33)",
        "f(1.1) in [0.33]",
        "f(1.1) - 0.33 == 0",
        "str(f(1.1)) == '0.33'",
        "f'{f(1.1)}' == '0.33'",
        "f(1.1) in (0.33, 0.34)",
        "not f(1.1) > 0.33",
    ],
)
def test_d15_the_tolerance_cannot_be_dodged_by_the_way_an_equality_is_put(sandbox, condition):
    of = problem("def f(x):\n    return 0.3 * x")
    report = one(sandbox, of, "def f(x):\n    return 0.1 * x + 0.2 * x", f"assert {condition}")
    assert [case.prediction_right for case in report.suites[0].suite.cases] == [True]
    assert passed(report) == [True]


@pytest.mark.slow
def test_d16_a_hang_costs_only_its_own_case_and_never_enters_other_suites(sandbox):
    hangs_at_one = "def f(x):\n    while x == 1: pass\n    return x"
    report = one(sandbox, IDENTITY, hangs_at_one, "assert f(1) == 1", "assert f(2) == 2\nassert f(3) == 3")
    assert passed(report, 0) == [False]
    assert passed(report, 1) == [True, True]
    assert after_round(ProblemReport("toy/f", (report,))).size() == 1


@pytest.mark.slow
def test_d16_an_input_on_which_the_solution_is_slow_is_the_testers_fault(sandbox):
    of = problem("def f(x):\n    for _ in range(x): pass\n    return x")
    report = one(sandbox, of, "def f(x):\n    return x", "assert f(10 ** 12) == 10 ** 12\nassert f(2) == 2")
    assert report.loads
    assert passed(report) == [True]
    assert report.suites[0].suite.rejections[0].reason is RejectionReason.SOLUTION_TIME_LIMIT


@pytest.mark.slow
def test_d16_what_was_never_run_is_no_evidence_and_enters_no_book(sandbox):
    suite = "\n".join(f"assert f({i}) == {i}" for i in range(12))
    report = one(sandbox, IDENTITY, "def f(x):\n    while True: pass", suite)
    verdicts = [case.verdict for case in report.suites[0].cases]
    n_failed = verdicts.count(Verdict.TIME_LIMIT)
    assert verdicts.count(Verdict.NOT_RUN) == len(verdicts) - n_failed > 0
    assert after_round(ProblemReport("toy/f", (report,))).size() == n_failed
    assert rewards(report).coder.value == 0.0


def test_d17_passing_the_tenth_case_passes_no_other(sandbox):
    suite = "\n".join(f"assert f({i}) == {i}" for i in range(13))
    report = one(sandbox, IDENTITY, "def f(x):\n    return x if x == 10 else None", suite, rules="release")
    assert [case.case.case.expression for case in report.suites[0].cases if case.verdict is Verdict.PASSED] == ["f(10)"]
    golden = replace(IDENTITY, golden=tuple(GoldenCase(f"f({i})", f"{i}") for i in range(11)))
    duel = Duel(golden, (Candidate("def f(x):\n    return x if x == 10 else None"),), ((),))
    (found,) = Judge(sandbox, preset("golden"), limits=FAST).judge([duel])
    assert found.candidates[0].golden_pass_rate == pytest.approx(1 / 11)


@pytest.mark.parametrize(
    "program",
    [
        "try:\n    import no_such_thing\nexcept ImportError:\n    pass\ndef f(x):\n    return x",
        "def f(x):\n    return x\nif __name__ == '__main__':\n    import sys",
        "class Helper:\n    import math\ndef f(x):\n    return x",
        "from __future__ import annotations\nimport math\ndef f(x):\n    return x",
    ],
)
def test_d18_imports_stay_where_the_program_has_them(sandbox, program):
    assert passed(one(sandbox, IDENTITY, program, "assert f(1) == 1")) == [True]


def test_d19_one_candidates_imports_help_and_hurt_no_other(sandbox):
    programs = ["import math\ndef f(x):\n    return x", "def f(x):\n    return math.floor(x)", "import no_such_thing"]
    report = judged(sandbox, IDENTITY, programs, "assert f(1) == 1")
    assert [passed(candidate) for candidate in report.candidates] == [[True], [False], [False]]
    assert [candidate.loads for candidate in report.candidates] == [True, True, False]


def test_d23_unicode_costs_nothing_in_fixed_and_something_in_release(sandbox):
    suite = "assert f('żółw 🐢') == 'żółw 🐢'"
    for rules, costs in (("fixed", False), ("release", True)):
        parts = rewards(one(sandbox, IDENTITY, "def f(x):\n    return x", suite, rules=rules), rules).testers[0].parts
        assert [part.value > 0.0 for part in parts if part.name == "nonprintable"] == [costs]


def test_d24_knowing_no_answer_earns_half_in_release_and_nothing_in_fixed(sandbox):
    suite = "\n".join(f"assert f({i}) == 'no idea'" for i in range(8))
    program = "def f(x):\n    return None"
    for rules, earned in (("release", 0.5), ("fixed", 0.0)):
        report = one(sandbox, IDENTITY, program, suite, rules=rules)
        assert rewards(report, rules).testers[0].value == earned


def test_d24_what_takes_no_knowledge_earns_no_validity_in_fixed(sandbox):
    program = "def f(x):\n    return None"
    vacuous = [f"assert f({i}) == f({i})\nassert 1 or f({i})\nassert (f({i}), 1)" for i in range(8)]
    assert rewards(one(sandbox, IDENTITY, program, "\n".join(vacuous))).testers[0].value == 0.0


def test_d24_one_answer_is_paid_once_however_it_is_written(sandbox):
    suites = ["assert f(3) == 3", "\n".join(f"assert f(3) + {k} == 3 + {k}" for k in range(8))]
    report = one(sandbox, IDENTITY, "def f(x):\n    return None", *suites)
    plain, cosmetic = (tester.value for tester in rewards(report).testers)
    assert cosmetic == plain > 0.0
