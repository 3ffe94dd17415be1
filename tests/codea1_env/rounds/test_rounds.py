"""Batches of trees, with replies that are known: whose turn it is, what runs, what it pays."""

from __future__ import annotations

import math
import statistics
import threading
from collections.abc import Sequence
from dataclasses import replace
from operator import methodcaller
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from codea1_env import MistakeBook
from codea1_env.errors import SandboxError, UserError
from codea1_env.facts.verdicts import Verdict
from codea1_env.judging.judge import Duel, Judge
from codea1_env.rounds.referee import Referee
from codea1_env.rounds.rounds import JudgedTree, RoundOptions, Rounds, SuitesPer, Tests, Tree
from codea1_env.rules.replies import read_candidate, read_suite
from codea1_env.rules.rewards import mean_over_candidates, score_group
from codea1_env.rules.ruleset import preset
from codea1_env.sandbox import Sandbox
from tests.support.toys import ADD, BROKEN, FALSE, GONE, LAST, LOOKS_RIGHT, NAIVE, RIGHT, RULES, SHARP, WRONG


def played(rounds: Rounds, programs: Sequence[object], suites: Sequence[Tests]) -> list[JudgedTree]:
    """Play all phases; the testers give their replies in turns."""
    return rounds.play(lambda _: programs, lambda turns: [suites[n % len(suites)] for n in range(len(turns))])


def values(numbers: np.ndarray) -> list[object]:
    """Return numbers with None for nan, so that they compare."""
    return [None if np.isnan(each) else round(float(each), 9) for each in numbers.ravel()]


def opened(sandbox: Sandbox, *trees: Tree, **options: Any) -> Rounds:
    return Referee((ADD, LAST), RULES, sandbox=sandbox).open(trees, RoundOptions(**options))


@pytest.mark.parametrize("rules", ["fixed", "paper", "release", "golden", "cure"])
@pytest.mark.parametrize("suites_per", list(SuitesPer))
def test_a_tree_is_what_the_judge_says_of_its_replies(sandbox, rules, suites_per):
    ruleset = replace(preset(rules), tests_per_suite=2)
    tree = Tree(ADD, n_candidates=3, n_suites=2, suites_per=suites_per)
    programs, suites = [RIGHT, LOOKS_RIGHT, WRONG], [NAIVE, SHARP]
    (found,) = played(Referee((ADD,), ruleset, sandbox=sandbox).open([tree]), programs, suites)
    read = [read_candidate(text, ruleset.reading, entry_point="add") for text in programs]
    tests = [read_suite(text, ruleset.reading, entry_point="add", tests_per_suite=2) for text in suites]
    duel = replace(Duel.crossed(ADD, read, tests), shares_suites=suites_per is SuitesPer.PROBLEM)
    (report,) = Judge(sandbox, ruleset).judge([duel])
    assert found.report == report
    assert found.rewards == score_group(report, ruleset)
    assert values(found.coder_rewards) == [round(each.coder.value, 9) for each in found.rewards]
    assert found.tester_rewards.shape == (tree.n_groups, 2)


def test_turns_say_who_sees_what_and_where_it_stands(sandbox):
    trees = [Tree(ADD, n_candidates=2, n_suites=2, name="00000007", seed=(5, 7)), Tree(LAST, 1, 1, name="b")]
    rounds = opened(sandbox, *trees)
    turns = rounds.coder_turns()
    assert [(each.tree, each.candidate) for each in turns] == [(0, 0), (0, 1), (1, 0)]
    assert {each.info["role"] for each in turns} == {"coder"}
    assert [each.seed for each in turns] == [(5, 7, 0, 0, 0), (5, 7, 0, 1, 0), (0, 0, 0)]
    assert [each.info["episode_id"] for each in turns] == ["00000007-0-0", "00000007-1-0", "b-0-0"]
    rounds.submit_programs([RIGHT, BROKEN, RIGHT])
    turns = rounds.tester_turns()
    assert [(each.tree, each.candidate, each.suite) for each in turns] == [(0, 0, 0), (0, 0, 1)]
    assert turns[0].observation["program"] == "def add(a, b):\n    return a + b"
    assert turns[1].seed == (5, 7, 1, 0, 1)
    assert turns[0].info["tests_per_suite"] == 2


def test_samples_and_views_are_the_drivers(sandbox):
    rounds = opened(sandbox, Tree(ADD, 2), sample_of=lambda candidate, _: candidate, tester_view="black_box")
    rounds.submit_programs([RIGHT, WRONG])
    turns = rounds.tester_turns()
    assert len(turns) == 2
    labels = {"tester_view": "black_box", "group_id": "toy/add/tester"}
    for n, turn in enumerate(turns):
        assert turn.observation["program"] == ""
        assert turn.info.items() >= {"episode_id": f"toy/add/{n}", "sample": n, **labels}.items()


def test_a_program_that_does_not_load_has_no_tester_and_runs_no_more(watched):
    (tree,) = played(opened(watched, Tree(ADD, 3, 2)), [WRONG, BROKEN, "no code"], [SHARP])
    assert [len(group) for group in tree.suites] == [2, 0, 0]
    verdicts = [Verdict.PASSED, Verdict.SYNTAX_ERROR, Verdict.NO_CODE]
    assert [each.verdict for each in tree.report.candidates] == verdicts
    assert tree.report.candidates[1].candidate.program.strip() == "def add(a, b:"
    assert values(tree.coder_rewards) == [0.0, 0.0, 0.0]
    assert values(tree.tester_rewards[1:]) == [None] * 4
    checks, *later = watched.batches
    assert len(checks) == 2  # a reply without code is not a job
    assert not any("def add(a, b:" in job.program for batch in later for job in batch)


def test_a_tester_may_be_wanted_for_every_program(watched):
    rounds = opened(watched, Tree(ADD, 2), skips_invalid=False)
    rounds.submit_programs([WRONG, BROKEN])
    assert len(rounds.tester_turns()) == 2
    assert watched.batches == []
    rounds.submit_suites([SHARP, SHARP])
    (tree,) = rounds.results()
    assert values(tree.tester_rewards) == [1.0, 0.0]
    assert tree.report.candidates[1].verdict is Verdict.SYNTAX_ERROR


def test_an_empty_suite_pays_nobody_but_is_no_fault_of_ours(sandbox):
    (tree,) = played(opened(sandbox, Tree(ADD)), [RIGHT], [""])
    assert values(tree.coder_rewards) == [0.5]  # `no_evidence`
    assert values(tree.tester_rewards) == [0.0]
    assert tree.book_report == tree.report


def test_suites_for_all_candidates_are_blind_and_can_be_had_before_the_programs(sandbox):
    rounds = opened(sandbox, Tree(ADD, 3, 2, SuitesPer.PROBLEM))
    turns = rounds.tester_turns()
    assert [(each.candidate, each.suite, each.observation["program"]) for each in turns] == [(0, 0, ""), (0, 1, "")]
    rounds.submit_programs([RIGHT, WRONG, BROKEN])
    rounds.submit_suites([NAIVE, SHARP])
    (tree,) = rounds.results()
    assert tree.report.shares_suites
    # alpha .5, K 2, the mean over the two that load: NAIVE beats one of two in one of two cases, SHARP in both.
    assert values(tree.tester_rewards) == [0.5 + 0.5 * 0.25, 0.5 + 0.5 * 0.5]
    assert values(tree.coder_rewards) == [1.0, 0.25, 0.0]


def test_a_program_that_did_not_come_is_masked_and_has_no_tester(sandbox):
    (tree,) = played(opened(sandbox, Tree(ADD, 2, 2)), [GONE, WRONG], [SHARP])
    assert [len(group) for group in tree.suites] == [0, 2]
    assert values(tree.coder_rewards) == [None, 0.0]
    assert tree.why_masked(0) == "gone"
    assert tree.report.candidates[0].verdict is Verdict.INTERNAL_ERROR
    assert tree.book_report == replace(tree.report, candidates=tree.report.candidates[1:])  # it hides nothing


@pytest.mark.parametrize("suites_per", list(SuitesPer))
def test_a_suite_that_did_not_come_masks_itself_and_the_programs_it_might_have_failed(sandbox, suites_per):
    tree = Tree(ADD, 3, 2, suites_per)
    (found,) = played(opened(sandbox, tree), [WRONG, RIGHT, BROKEN], [GONE, SHARP])
    assert values(found.coder_rewards) == [None, None, 0.0]
    expected = [None, 1.0, None, 0.5, None, None] if suites_per is SuitesPer.CANDIDATE else [None, 0.75]
    assert values(found.tester_rewards) == expected
    assert found.why_masked(1) == "gone"


def test_what_the_sandbox_fails_at_is_masked_and_hidden_from_the_book(broken_sandbox):
    (tree,) = played(opened(broken_sandbox, Tree(ADD, 2, 2)), [RIGHT, WRONG], [])
    assert np.isnan(tree.coder_rewards).all()
    assert tree.book_report is None
    assert tree.why_masked(0) == "internal error"


def test_a_sandbox_that_cannot_be_used_at_all_is_raised_or_masked(watched):
    watched.error = "no processes left"
    referee = Referee((ADD, LAST), RULES, sandbox=watched)
    rounds = referee.open([Tree(ADD)])
    with pytest.raises(SandboxError, match="no processes"):
        rounds.submit_programs([RIGHT])
    with pytest.raises(RuntimeError, match=r"submit_programs\(\) must be called first"):
        rounds.tester_turns()
    watched.error = ""
    rounds.submit_programs([RIGHT])
    watched.error = "no processes left"
    with pytest.raises(SandboxError, match="no processes"):
        rounds.submit_suites([SHARP])
    watched.error = ""
    rounds.submit_suites([SHARP])
    assert values(rounds.results()[0].coder_rewards) == [1.0]
    watched.error = "no processes left"
    masked = RoundOptions(masks_sandbox_errors=True, skips_invalid=False)
    (tree,) = played(referee.open([Tree(ADD, 2)], masked), [RIGHT, WRONG], [SHARP])
    assert (tree.report, tree.rewards, tree.book_report) == (None, (), None)
    assert values(tree.coder_rewards) == values(tree.tester_rewards) == [None, None]
    (tree,) = played(referee.open([Tree(ADD)], replace(masked, skips_invalid=True)), [RIGHT], [])
    assert values(tree.coder_rewards) == [None]


@pytest.mark.parametrize("has_programs", [False, True])
def test_giving_up_masks_everything_and_runs_nothing_more(watched, has_programs):
    rounds = opened(watched, Tree(ADD, 2))
    if has_programs:
        rounds.submit_programs([RIGHT, BROKEN])
        rounds.tester_turns()
    before = len(watched.batches)
    rounds.give_up("the server is down")
    (tree,) = rounds.results()
    assert len(watched.batches) == before
    gone = (Verdict.INTERNAL_ERROR, "the server is down")
    assert [(each.verdict, each.detail) for each in tree.report.candidates] == [gone] * 2
    assert bool(tree.report.candidates[0].candidate.program) is has_programs
    assert values(tree.coder_rewards) == [None, None]


def test_replayed_cases_come_with_the_tree_and_what_is_learnt_goes_back(sandbox):
    referee = Referee((ADD, LAST), RULES, sandbox=sandbox)
    with MistakeBook() as book:
        (tree,) = played(referee.open([Tree(ADD, 2)]), [LOOKS_RIGHT, WRONG], [SHARP])
        delta = book.record(tree.book_report, RULES.book)
        assert (delta.added, delta.size) == (2, 2)
        replayed = tuple(entry.to_valid_case() for entry in book.retrieve("toy/add", RULES.book))
        (tree,) = played(referee.open([Tree(ADD, 2, replayed=replayed)]), [RIGHT, BROKEN], [NAIVE])
        assert [case.verdict for case in tree.report.candidates[0].replayed] == [Verdict.PASSED] * 2
        assert [case.verdict for case in tree.report.candidates[1].replayed] == [Verdict.NOT_RUN] * 2
        assert book.record(tree.book_report, RULES.book).decremented + book.size() > 0


def test_a_fork_meets_other_suites_and_checks_nothing_again(watched):
    base = opened(watched, Tree(ADD, 2))
    with pytest.raises(RuntimeError, match="submit_programs"):
        base.fork()
    base.submit_programs([LOOKS_RIGHT, BROKEN])
    first, second = base.fork(), base.fork(tester_view="blind")
    assert first.tester_turns()[0].observation["program"]
    assert not second.tester_turns()[0].observation["program"]
    assert len(watched.batches) == 1
    first.submit_suites([NAIVE])
    second.submit_suites([SHARP, NAIVE, FALSE], [[3, 0]])
    assert values(first.results()[0].coder_rewards) == [1.0, 0.0]
    (tree,) = second.results()
    assert [len(each.suites) for each in tree.report.candidates] == [3, 0]
    assert tree.tester_rewards.shape == (2, 3)


def test_what_the_referee_starts_never_waits_so_that_rounds_overlap(watched):
    watched.gate.clear()
    referee = Referee((ADD, LAST), RULES, sandbox=watched)
    batches = [referee.open([Tree(ADD, 2)]), referee.open([Tree(LAST), Tree(ADD)])]
    programs = [RIGHT, WRONG], ["def last(items): return items[-1]", WRONG]
    begun = [referee.start(batch.submit_programs, each) for batch, each in zip(batches, programs, strict=True)]
    assert not watched.threads
    watched.gate.set()
    for batch, work in zip(batches, begun, strict=True):
        work.result()
        referee.start(batch.submit_suites, [SHARP] * len(batch.tester_turns())).result()
    found = [tree for batch in batches for tree in batch.results()]
    assert [values(tree.coder_rewards) for tree in found] == [[1.0, 0.0], [0.5], [0.0]]
    assert all(name.startswith("codea1-judging") for name in watched.threads)
    assert all(batch.judge_s > 0 for batch in batches)
    referee.close()


def test_everything_else_runs_in_the_callers_thread(watched):
    played(opened(watched, Tree(ADD)), [WRONG], [SHARP])
    assert watched.threads == {threading.current_thread().name}


@pytest.mark.parametrize(
    ("replies", "said"),
    [
        (None, "must be a list, got NoneType"),
        ("ab", "must be a list, got str"),
        ([1, "x"], "must be texts, .* or AgentUnavailable, got int"),
        (["x", b"y"], "must be texts, .* or AgentUnavailable, got bytes"),
    ],
)
def test_what_is_no_reply_is_refused_by_name(sandbox, replies, said):
    rounds = opened(sandbox, Tree(ADD, 2), skips_invalid=False)
    with pytest.raises(UserError, match=f"programs {said}"):
        rounds.submit_programs(replies)
    rounds.submit_programs([RIGHT, RIGHT])
    with pytest.raises(UserError, match=f"suites {said}"):
        rounds.submit_suites(replies)


def test_too_few_replies_and_phases_out_of_order_are_refused(sandbox):
    assert played(opened(sandbox), [], [SHARP]) == []  # no trees are no work
    rounds = opened(sandbox, Tree(ADD, 2))
    for early in (rounds.tester_turns, rounds.results):
        with pytest.raises(RuntimeError, match=r"submit_programs\(\) must be called first"):
            early()
    with pytest.raises(ValueError, match="expected programs for 2 turns, got 1"):
        rounds.submit_programs([RIGHT])
    rounds.submit_programs([RIGHT, BROKEN])
    with pytest.raises(RuntimeError, match="submit_suites"):
        rounds.results()
    with pytest.raises(ValueError, match="expected suites for 1 turns, got 2"):
        rounds.submit_suites([SHARP, SHARP])
    with pytest.raises(ValueError, match="one size for each group"):
        rounds.submit_suites([SHARP], [[1]])


def test_programs_and_suites_that_were_read_before_may_be_submitted(sandbox):
    candidate = read_candidate(WRONG, RULES.reading, entry_point="add")
    suite = read_suite(SHARP, RULES.reading, entry_point="add", tests_per_suite=2)
    read, raw = (played(opened(sandbox, Tree(ADD)), *each) for each in (([candidate], [suite]), ([WRONG], [SHARP])))
    assert read[0].report == raw[0].report


@pytest.mark.parametrize("per", list(SuitesPer))
def test_the_parts_of_suites_add_up_to_their_rewards(sandbox, per):
    shared = per is SuitesPer.PROBLEM
    suites = [SHARP, FALSE] if shared else [SHARP, FALSE, NAIVE, SHARP]  # BROKEN gets none of its own
    (found,) = played(opened(sandbox, Tree(ADD, 3, 2, per)), [WRONG, BROKEN, RIGHT], suites)
    whole = sum(0.5 * found.of_suites(methodcaller("part", name)) for name in ("validity", "adversarial"))
    assert whole == pytest.approx(found.tester_rewards, nan_ok=True)
    assert np.isnan(whole).any() == (not shared)


NAN = float("nan")
REWARD = st.floats(-1, 1).map(lambda x: round(x, 3))
GROUPS = arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 8)), elements=REWARD | st.just(NAN))


def test_a_tree_needs_a_candidate(toys):
    for sizes in ({"n_candidates": 0}, {"n_suites": -1}):
        with pytest.raises(UserError, match="must be a whole number of"):
            Tree(toys[0], **sizes)


@given(GROUPS)
def test_a_suite_of_all_candidates_is_worth_the_mean_over_those_that_tell(rewards: np.ndarray) -> None:
    found = mean_over_candidates(rewards)
    assert found.shape == rewards.shape[1:]
    for column, value in zip(rewards.T, found, strict=True):
        known = [reward for reward in column if not math.isnan(reward)]
        assert value == pytest.approx(statistics.mean(known)) if known else math.isnan(value)


@given(GROUPS, st.randoms(use_true_random=False))
def test_neither_the_order_of_candidates_nor_those_that_tell_nothing_matter(rewards: np.ndarray, random) -> None:
    order = list(range(len(rewards)))
    random.shuffle(order)
    silent = np.full((1, rewards.shape[1]), NAN)
    other = mean_over_candidates(np.concatenate([rewards[order], silent]))
    np.testing.assert_allclose(mean_over_candidates(rewards), other, atol=1e-12)
