"""Trees of all shapes, played by agents whose replies are known: who is asked, what ran, what it earned."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

from codea1_agents.train.grpo.advantages import group_advantages
from codea1_agents.train.grpo.batch import StoredResponse, planned
from codea1_agents.train.grpo.hyperparameters import AdvantageSettings, Shape
from codea1_agents.train.grpo.metrics import tree_figures
from codea1_agents.train.grpo.rollout import AgentPlayer, Reply, RolledTree, Task, TreeRoller
from codea1_agents.train.grpo.settings import TrainingSettings
from codea1_agents.train.loop.samples import duels_of
from codea1_env.agent import AgentContext, load_agent
from codea1_env.facts.verdicts import Outcome, OutcomeKind
from codea1_env.group_env import GroupEnv
from codea1_env.problems import ProblemSet
from codea1_env.rounds.rounds import Turn
from codea1_env.rules.ruleset import preset
from codea1_env.sandbox import Job, JobReport, Sandbox
from tests.support.advantages import by_hand
from tests.support.sandboxes import Counting, Wrapper
from tests.support.toys import BROKEN, FALSE, LOOKS_RIGHT, NAIVE, RIGHT, RULES, SHARP, WRONG, fenced
from tests.support.trees import PER_PROBLEM, Scripted, group_envs, rolled


def test_suites_per_problem_meet_every_candidate_and_earn_the_mean_over_valid_ones(sandbox, toys):
    players = {"coder": Scripted(RIGHT, LOOKS_RIGHT, WRONG, BROKEN), "tester": Scripted(NAIVE, SHARP, FALSE)}
    (tree,) = rolled(sandbox, toys, players, PER_PROBLEM)
    assert len(players["tester"].turns) == 3
    assert [len(each.suites) for each in tree.judged.report.candidates] == [3, 3, 3, 3]
    # alpha .5, K 2. Kills of NAIVE: none, none, one; of SHARP: none, one, both (one each for a + b and a - b).
    adversarial = {"naive": (0 + 0 + 0.5) / 3, "sharp": (0 + 0.5 + 1.0) / 3}
    expected = [0.5 + 0.5 * adversarial["naive"], 0.5 + 0.5 * adversarial["sharp"], 0.0]
    assert tree.tester_rewards.shape == (1, 3)
    assert tree.tester_rewards[0] == pytest.approx(expected)
    assert tree.kept.tolist() == [True]
    assert tree.tester.is_trained.tolist() == [[True] * 3]
    # FALSE's inputs are filled in and count for the coder, suite by suite.
    assert tree.coder_rewards == pytest.approx([1.0, (1 + 0.5 + 1) / 3, (0.5 + 0 + 0) / 3, 0.0])


def test_the_solution_is_asked_once_about_a_suite_that_all_candidates_meet(sandbox, toys):
    counted = Counting(sandbox)
    players = {"coder": Scripted(RIGHT, WRONG), "tester": Scripted(NAIVE, SHARP)}
    rolled(counted, toys, players, replace(PER_PROBLEM, n_candidates=2, n_suites=2))
    asked = [job for job in counted.jobs if job.program == toys.by_id("toy/add").solution]
    assert [len(job.calls) for job in asked] == [4, 4]  # all questions once, in both orders


def test_a_tester_of_all_candidates_is_shown_none(sandbox, toys):
    players = {"coder": Scripted(WRONG), "tester": Scripted(NAIVE)}
    envs = group_envs(sandbox, toys, PER_PROBLEM, tester_view="white_box")
    TreeRoller(envs, players).roll([Task(0, "toy/add")])
    assert {turn.observation["program"] for turn in players["tester"].turns} == {""}
    assert len({turn.seed for turn in players["tester"].turns}) == 3


def test_where_no_candidate_is_valid_or_the_sandbox_is_not_there_suites_per_problem_teach_nothing(
    sandbox, broken_sandbox, toys
):
    for where, coder, reward in ((sandbox, BROKEN, 0.0), (broken_sandbox, RIGHT, math.nan)):
        (tree,) = rolled(where, toys, {"coder": Scripted(coder), "tester": Scripted(NAIVE, SHARP)}, PER_PROBLEM)
        assert np.isnan(tree.tester_rewards).all()
        assert not tree.kept.any()
        assert tree.coder_rewards == pytest.approx([reward] * 4, nan_ok=True)


def test_a_suite_that_was_not_given_is_masked_and_costs_the_others_nothing(sandbox, toys):
    players = {"coder": Scripted(RIGHT, WRONG), "tester": Scripted(NAIVE, "", SHARP)}
    (tree,) = rolled(sandbox, toys, players, PER_PROBLEM)
    assert np.isnan(tree.tester_rewards[0]).tolist() == [False, True, False]
    whole = {"coder": Scripted(RIGHT, WRONG), "tester": Scripted(NAIVE, SHARP, SHARP)}
    (other,) = rolled(sandbox, toys, whole, PER_PROBLEM)
    assert tree.tester_rewards[0, [0, 2]] == pytest.approx(other.tester_rewards[0, [0, 2]])


class Unchecking(Wrapper):
    """The shared sandbox, which fails at whatever asks nothing of a program: the check of the first candidate."""

    def __init__(self, sandbox: Sandbox) -> None:
        super().__init__(sandbox)
        self._has_failed = False

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        reports = self._sandbox.run(jobs)
        if not self._has_failed and not jobs[0].calls:
            self._has_failed = True
            reports[0] = JobReport(Outcome(OutcomeKind.INTERNAL_ERROR), ())
        return reports


def test_a_program_that_could_not_be_checked_is_masked(sandbox, toys):
    players = {"coder": Scripted(RIGHT, RIGHT, WRONG), "tester": Scripted(SHARP, NAIVE)}
    (tree,) = rolled(Unchecking(sandbox), toys, players, Shape(n_candidates=3, n_suites=2))
    assert [len(group) for group in tree.suites] == [0, 2, 2]
    assert np.isnan(tree.coder_rewards).tolist() == [True, False, False]
    assert not tree.coder.is_trained[0]


def test_a_program_is_masked_where_a_suite_that_might_have_failed_it_is_missing(sandbox, toys):
    players = {"coder": Scripted(LOOKS_RIGHT, WRONG), "tester": Scripted(NAIVE, "", NAIVE, SHARP)}
    rules = replace(preset("release"), tests_per_suite=2)
    (tree,) = rolled(sandbox, toys, players, Shape(n_candidates=2, n_suites=2), rules)
    assert np.isnan(tree.coder_rewards).tolist() == [True, False]
    assert np.isnan(tree.tester_rewards).tolist() == [[False, True], [False, False]]


def test_suites_per_candidate_are_as_before(sandbox, toys):
    players = {"coder": Scripted(RIGHT, WRONG, BROKEN), "tester": Scripted(NAIVE, SHARP)}
    (tree,) = rolled(sandbox, toys, players, Shape(n_candidates=3, n_suites=2))
    assert [len(group) for group in tree.suites] == [2, 2, 0]
    assert tree.tester_rewards[:2] == pytest.approx(np.array([[0.5, 0.5], [0.75, 1.0]]))
    assert np.isnan(tree.tester_rewards[2]).all()
    assert tree.kept.tolist() == [False, True, False]


def test_groups_without_spread_are_learnt_from_only_where_they_are_kept(sandbox, toys):
    players = {"coder": Scripted(RIGHT), "tester": Scripted(NAIVE)}
    shape = Shape(n_candidates=2, n_suites=2)
    (dropped,) = rolled(sandbox, toys, players, shape)
    (kept,) = rolled(sandbox, toys, players, replace(shape, keep_zero_std_groups=True))
    assert (dropped.kept.tolist(), kept.kept.tolist()) == ([False, False], [True, False])
    for of_role in ("coder", "tester"):
        assert not getattr(dropped, of_role).is_trained.any()
        assert getattr(kept, of_role).is_trained.all()
        assert not getattr(kept, of_role).values.any()
    assert tree_figures(kept, 2)["coder_spread_share"] == tree_figures(kept, 2)["tester_spread_share"] == 0.0


class Meeting(Scripted):
    """A coder whose second batch is written while the sandbox is at work, and who holds it up till then."""

    def __init__(self, sandbox: Sandbox, *texts: str) -> None:
        super().__init__(*texts)
        self.name, self.guarantee, self._sandbox = sandbox.name, sandbox.guarantee, sandbox
        self._runs, self._writes = threading.Event(), threading.Event()

    def answer(self, turns: Sequence[Turn], *_: object) -> list[Reply]:
        if self.turns:
            self._writes.set()
            assert self._runs.wait(20), "the sandbox does nothing while programs are written"
        return super().answer(turns)

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        self._runs.set()
        assert self._writes.wait(20), "no programs are written while the sandbox is at work"
        return self._sandbox.run(jobs)


def test_the_next_problems_are_generated_while_the_sandbox_is_at_work(sandbox, toys):
    both = Meeting(sandbox, RIGHT, WRONG)
    shape = Shape(n_candidates=2, n_suites=2, problems_at_once=2)
    trees = rolled(both, toys, {"coder": both, "tester": Scripted(NAIVE, SHARP)}, shape, n=5)
    assert [tree.task.number for tree in trees] == [0, 1, 2, 3, 4]
    assert [tree.coder_rewards.tolist() for tree in trees] == [trees[0].coder_rewards.tolist()] * 5


def test_without_suites_nobody_need_play_the_tester(sandbox, toys):
    shape = Shape(n_candidates=3, n_suites=0)
    (tree, _) = rolled(sandbox, toys, {"coder": Scripted(RIGHT, WRONG, BROKEN)}, shape, preset("golden"), n=2)
    assert tree.coder_rewards.tolist() == [1.0, 0.0, 0.0]
    assert tree.tester_rewards.shape == (3, 0)
    assert not tree.kept.any()
    assert tree.coder.is_trained.all()


def test_schemes_that_compare_candidates_see_the_whole_problem(sandbox, toys):
    players = {"coder": Scripted(RIGHT, LOOKS_RIGHT, WRONG), "tester": Scripted(NAIVE, SHARP, FALSE)}
    shape = replace(PER_PROBLEM, n_candidates=3)
    (tree,) = rolled(sandbox, toys, players, shape, replace(preset("cure"), tests_per_suite=2))
    # Golden: add(1, 2) == 3 and add(-1, 1) == 0, so abs(a + b) is right by them and a - b the only wrong one.
    assert tree.coder_rewards.tolist() == [1.0, 1.0, 0.0]
    assert tree.tester_rewards[0] == pytest.approx([0.5, 1.0, 0.0])


HALF = fenced("assert add(-1, -2) == -3\nassert add(2, 1) == 4")
"""Half of it contradicts the solution; beats LOOKS_RIGHT with its right half."""


def by_parts(sandbox, toys, players, shape, form, valid_from=0.5, **more):
    envs = group_envs(sandbox, toys, shape, **more)
    settings = AdvantageSettings(form, valid_from)
    return TreeRoller(envs, players, advantages=settings).roll([Task(0, "toy/add")]).trees[0]


@pytest.mark.parametrize("form", ["sum", "decoupled", "conditioned"])
def test_suites_of_a_candidate_are_compared_by_parts(sandbox, toys, form):
    players = {"coder": Scripted(LOOKS_RIGHT, WRONG), "tester": Scripted(NAIVE, SHARP, HALF, FALSE)}
    tree = by_parts(sandbox, toys, players, Shape(n_candidates=2, n_suites=4), form, valid_from=1.0)
    adversarial = {0: [0.0, 0.5, 0.5, 0.0], 1: [0.5, 1.0, 0.5, 0.0]}
    for g, beaten in adversarial.items():
        columns = {"validity": [1.0, 1.0, 0.5, 0.0], "adversarial": beaten}
        expected = by_hand(columns, {"validity": 0.5, "adversarial": 0.5}, form, 1.0)
        assert tree.tester.values[g].tolist() == pytest.approx(expected)
    assert tree.kept.tolist() == [False, True]  # of both forms, the variance of the whole rewards decides
    assert tree.coder.values.tolist() == group_advantages(tree.coder_rewards).values.tolist()


def test_suites_for_all_candidates_are_compared_by_the_means_of_their_parts(sandbox, toys):
    players = {"coder": Scripted(RIGHT, LOOKS_RIGHT, WRONG, BROKEN), "tester": Scripted(NAIVE, SHARP, FALSE)}
    tree = by_parts(sandbox, toys, players, PER_PROBLEM, "conditioned")
    columns = {"validity": [1.0, 1.0, 0.0], "adversarial": [0.5 / 3, 1.5 / 3, 0.0]}
    expected = by_hand(columns, {"validity": 0.5, "adversarial": 0.5}, "conditioned", 0.5)
    assert tree.tester.values[0].tolist() == pytest.approx(expected)


def test_what_cannot_train_is_not_kept_however_much_its_rewards_vary(sandbox, toys):
    """Against WRONG only the adversity of the invalid suite differs, against LOOKS_RIGHT that of valid ones."""
    rules = replace(preset("release"), tests_per_suite=2)
    tests = {WRONG: (FALSE, fenced("assert add(1, 0) == 3\nassert add(5, 0) == 4")), LOOKS_RIGHT: (HALF, HALF)}

    class Aiming(Scripted):
        def answer(self, turns, *_):
            shown = [WRONG if "a - b" in turn.observation["program"] else LOOKS_RIGHT for turn in turns]
            return [Reply(tests[program][n % 2]) for n, program in enumerate(shown)]

    players = {"coder": Scripted(WRONG, LOOKS_RIGHT), "tester": Aiming()}
    shape, more = Shape(n_candidates=2, n_suites=2), {"rules": rules, "tester_view": "white_box"}
    whole, conditioned = (by_parts(sandbox, toys, players, shape, each, **more) for each in ("sum", "conditioned"))
    assert whole.kept.tolist() == [True, False]
    assert conditioned.kept.tolist() == [False, False]
    assert not conditioned.tester.is_trained.any()


def test_what_an_environment_pays_beyond_the_rules_is_a_part_of_its_own(sandbox, toys):
    class Paying(GroupEnv):
        def step(self, actions):
            observations, rewards, *rest = super().step(actions)
            if "tester_1_0" in rewards:
                rewards["tester_1_0"] += 0.25
            return observations, rewards, *rest

    players = {"coder": Scripted(RIGHT, WRONG), "tester": Scripted(NAIVE, SHARP, FALSE)}
    tree = by_parts(sandbox, toys, players, Shape(n_candidates=2, n_suites=3), "decoupled", env=Paying)
    columns = {"validity": [1.0, 1.0, 0.0], "adversarial": [0.5, 1.0, 0.0], "environment": [0.25, 0.0, 0.0]}
    weights = {"validity": 0.5, "adversarial": 0.5, "environment": 1.0}
    assert tree.tester.values[1].tolist() == pytest.approx(by_hand(columns, weights, "decoupled", 0.5))


@pytest.mark.parametrize("coder", [BROKEN, ""])
def test_trees_without_suites_have_no_parts(sandbox, toys, coder):
    players = {"coder": Scripted(coder), "tester": Scripted(NAIVE)}
    for shape in (PER_PROBLEM, Shape(n_candidates=2, n_suites=2), Shape(n_candidates=2, n_suites=0)):
        assert not by_parts(sandbox, toys, players, shape, "conditioned").tester.is_trained.any()


@pytest.mark.parametrize("form", ["decoupled", "conditioned"])
def test_where_no_program_loads_suites_have_nothing_to_be_compared_by(sandbox, toys, form):
    class Patient(GroupEnv):
        def __init__(self, **options):
            super().__init__(**options, skip_invalid=False)

    players = {"coder": Scripted(BROKEN), "tester": Scripted(NAIVE, SHARP)}
    tree = by_parts(sandbox, toys, players, Shape(n_candidates=2, n_suites=2), form, env=Patient)
    assert not any(part for one in tree.judged.rewards for each in one.testers for part in each.parts)
    assert not tree.tester.is_trained.any()


def drawn(sandbox, toys, numbers, seed):
    """Return the calls of each tree's tests, by a player that has played nothing before."""
    tester = AgentPlayer(load_agent("fuzz", AgentContext(toys, sandbox, seed)), "fuzz")
    roller = TreeRoller(
        group_envs(sandbox, toys, replace(PER_PROBLEM, n_candidates=2, n_suites=1)),
        {"coder": Scripted(RIGHT, WRONG), "tester": tester},
        seed=seed,
    )
    trees = roller.roll([Task(number, "toy/add") for number in numbers]).trees
    reports = [tree.judged.report for tree in trees]
    suites = [[each.suites[0].suite for each in report.candidates] for report in reports if report is not None]
    assert all(first == second for first, second in suites), "all candidates run the same tests"
    return [tuple(case.case.expression for case in suite.cases) for suite, _ in suites]


def test_a_run_draws_other_tests_each_time_and_a_resumed_one_the_same(sandbox, toys):
    """Which they are follows from the run's seed and the number of the tree alone."""
    whole = drawn(sandbox, toys, [0, 1, 2, 3], seed=7)
    assert {len(calls) for calls in whole} == {RULES.tests_per_suite}
    assert len({frozenset(calls) for calls in whole}) == 4
    assert all(len(set(calls)) == len(calls) for calls in whole)
    assert drawn(sandbox, toys, [2, 3], seed=7) == whole[2:]
    assert drawn(sandbox, toys, [0, 1, 2, 3], seed=8) != whole


OTHER = fenced("def add(a, b):\n    return a - b - 1")
TURNS = Shape(n_candidates=4, n_suites=2, turns=3)


class Repairing(Scripted):
    """Its programs of each turn, by number of the candidate."""

    def __init__(self, *texts: Sequence[str]) -> None:
        super().__init__()
        self.by_turn = texts

    def answer(self, turns: Sequence[Turn], *_: object) -> list[Reply]:
        self.turns += turns
        numbers = [int(turn.info["episode_id"].split("-")[1]) for turn in turns]
        rounds = [int(turn.observation["round"]) for turn in turns]
        texts = [self.by_turn[round_][number] for round_, number in zip(rounds, numbers, strict=True)]
        return [Reply(text) if text else Reply(unavailable="gone") for text in texts]


def repaired(sandbox: Sandbox, toys: ProblemSet, advantages: AdvantageSettings | None = None) -> RolledTree:
    """Return a tree: right at once, repaired in two turns, never right, and gone in its second turn."""
    coder = Repairing((RIGHT, WRONG, WRONG, WRONG), ("", LOOKS_RIGHT, OTHER, ""), ("", RIGHT, WRONG, ""))
    players = {"coder": coder, "tester": Scripted(SHARP, NAIVE)}
    (tree,) = rolled(sandbox, toys, players, TURNS, advantages=advantages)
    assert len({turn.seed for turn in coder.turns}) == len(coder.turns)
    return tree


@pytest.mark.parametrize(("form", "discount"), [("sum", 1.0), ("sum", 0.5), ("last", 1.0)])
def test_coders_compare_trajectories_and_testers_the_suites_of_a_turn(sandbox, toys, form, discount):
    tree = repaired(sandbox, toys, AdvantageSettings(turn_return=form, turn_discount=discount))
    assert [turn.judged.tree.numbers for turn in tree.turns] == [(0, 1, 2, 3), (1, 2, 3), (1, 2)]
    # By tests passed of SHARP and NAIVE, which have two each: WRONG passes 0 and 1, LOOKS_RIGHT 1 and 2, OTHER none.
    by_turn = [(1.0, 0.25, 0.25, 0.25), (1.0, 0.75, 0.0, math.nan), (1.0, 1.0, 0.25, math.nan)]
    assert tree.coder_rewards == pytest.approx(by_turn[0])
    assert tree.later[1].coder_rewards == pytest.approx(by_turn[2][1:3])
    returns = np.array(
        by_turn[2] if form == "last" else sum(discount**t * np.array(of) for t, of in enumerate(by_turn))
    )
    expected = group_advantages(returns)
    for turn in tree.turns:
        numbers = list(turn.judged.tree.numbers)
        assert turn.coder.values == pytest.approx(expected.values[numbers])
        assert turn.coder.is_trained.tolist() == [number != 3 for number in numbers]  # its worth is not known
        alone = group_advantages(turn.tester_rewards)
        assert turn.tester.values == pytest.approx(alone.values)
        assert turn.kept.sum() == 1
    assert (tree.env_steps(), tree.agent_steps()) == (6, 4 + 8 + 3 + 4 + 2 + 4)
    assert tree.get_rewards()["coder_1"] == pytest.approx(0.25 + 0.75 + 1.0)


def test_figures_and_samples_of_later_turns_have_names_of_their_own(sandbox, toys):
    tree = repaired(sandbox, toys)
    figures = tree_figures(tree, 2)
    single = tree_figures(replace(tree, later=()), 2)
    assert {name: value for name, value in figures.items() if "_turn_" not in name} == single
    of_turns = {name: [figures[f"{name}_turn_{turn}"] for turn in (2, 3)] for name in ("playing", "fixed", "broke")}
    assert of_turns == {"playing": [0.75, 2 / 3], "fixed": [0.0, 0.5], "broke": [0.5, 0.0]}
    duels = list(duels_of([tree], toys, RULES))
    assert [len(each.rounds) for each in duels] == [1, 1, 3, 3, 3, 3, 1]
    assert [each.episode for each in duels] == list(range(7))
    first, second = duels[2:4]
    assert first.rounds[:2] == second.rounds[:2]
    assert [each.round for each in first.rounds] == [0, 1, 2]
    drawn = tree.later[0].judged.tree.trajectories[0].suite
    assert first.rounds[0].tester_reply == (SHARP, NAIVE)[drawn]


def test_a_trajectory_trains_in_one_optimiser_step(sandbox, toys):
    settings = TrainingSettings(module_by_role={"coder": "coder", "tester": "tester"})
    trees = [replace(repaired(sandbox, toys), task=Task(number, "toy/add")) for number in range(6)]
    rows = [
        StoredResponse(role, role, tree.task.number, n, bytes([turn, n]), 3, 5, 1.0)
        for tree in trees
        for turn in range(3)
        for role in ("coder", "tester")
        for n in range(4)
    ]
    assert not list(trees[0].trained_responses(settings))  # nobody sampled them
    plan = planned(rows, 3, (0, 0), attrgetter("task"))
    steps = {(row.module, row.task): row.minibatch for row in plan}
    assert all(steps[row.module, row.task] == row.minibatch for row in plan)
    assert {row.minibatch for row in plan} == {0, 1, 2}
