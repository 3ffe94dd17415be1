"""Evaluation of the models on held-out problems, during a run.

Runners sample and judge with the same players and sandbox as in rollouts. Each evaluation uses the same seeds, so two
evaluations differ by the weights only. The result of a problem does not depend on the runner that evaluates it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

from codea1_agents.measure.metrics import pass_at_k
from codea1_agents.statistics import known_mean
from codea1_agents.train.grpo.env_runner import TreeEnvRunner
from codea1_agents.train.grpo.hyperparameters import Shape
from codea1_agents.train.grpo.players import AgentPlayer, Player
from codea1_agents.train.grpo.rollout import GroupEnvs, RolledTree, Task, TreeRoller
from codea1_agents.train.grpo.runners import map_over_runners
from codea1_agents.train.grpo.sampling import SamplingRules
from codea1_agents.train.settings.options import CURRENT, EvaluationOptions
from codea1_env.agent import AgentContext, load_agent
from codea1_env.errors import UserError
from codea1_env.facts.verdicts import GoldenFinding
from codea1_env.problems import ProblemSet, load_problems
from codea1_env.rules.reward_parts import n_right
from codea1_env.rules.ruleset import BookRules, BookUpdate, preset
from codea1_env.sandbox import load_sandbox

_STREAM = 1 << 32  # separates the seeds from those of training
_MOST_K = (1, 8)


@dataclass(frozen=True, slots=True)
class Finding:
    """What the evaluation found on one problem."""

    position: int
    """Position of the problem among the held-out ones."""
    passed: tuple[bool, ...] = ()
    """Whether each program of the coder passes all golden tests, without programs that could not be judged."""
    golden: tuple[float, ...] = ()
    """Share of golden tests that each of these programs passes."""
    validity: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """By opponent, the validity of each suite: right cases over the number requested, at most 1."""
    kills: Mapping[str, tuple[bool, ...]] = field(default_factory=dict)
    """By opponent, whether each suite beats the program."""


def evaluate_held_out(algorithm: Any, options: EvaluationOptions) -> dict[str, float]:
    """Return the figures of the models with their present weights; see `summed_up`.

    Args:
        algorithm: a `GRPO`. Only its runners change: they get its weights.
        options: of the evaluation.

    Raises:
        RunnerFailed: a runner raised an exception.
    """
    algorithm.sync_runners()
    positions = range(len(held_out_problems(options.problems, options.limit)))
    found: dict[int, Finding] = {}
    work_on = lambda positions: partial(_evaluated, positions, options)  # noqa: E731
    for findings in map_over_runners(algorithm, positions, work_on, found.__contains__):
        found.update({each.position: each for each in findings})
    return summed_up([found[position] for position in sorted(found)])


def summed_up(findings: Sequence[Finding]) -> dict[str, float]:
    """Return means over problems, without figures that have no value.

    `coder_pass_at_1`, and with eight samples or more `coder_pass_at_8`, are the unbiased estimates. `coder_golden_rate`
    is the share of golden tests passed. `tester_validity/OPPONENT` and `tester_kill_rate/OPPONENT` follow; the kill
    rate is the share of suites for valid programs that beat their program. `problems` is the number of problems.
    """
    figures = {"problems": float(len(findings))}
    for k in _MOST_K:
        figures[f"coder_pass_at_{k}"] = known_mean(pass_at_k(len(f.passed), sum(f.passed), k) for f in findings)
    figures["coder_golden_rate"] = known_mean(known_mean(f.golden) for f in findings)
    for opponent in sorted({name for f in findings for name in f.validity}):
        figures[f"tester_validity/{opponent}"] = known_mean(known_mean(f.validity.get(opponent, ())) for f in findings)
        figures[f"tester_kill_rate/{opponent}"] = known_mean(known_mean(f.kills.get(opponent, ())) for f in findings)
    return {name: value for name, value in figures.items() if not math.isnan(value)}


@lru_cache(maxsize=4)
def held_out_problems(source: str, limit: int) -> ProblemSet:
    """Return the problems of an evaluation, which a process reads once.

    Raises:
        UserError: no such source.
    """
    return load_problems(source, limit=limit or None)


def _evaluated(positions: Sequence[int], options: EvaluationOptions, runner: TreeEnvRunner) -> list[Finding]:
    """Return the findings of one runner, about the problems at some positions."""
    bench = _Bench(runner, options)
    tasks = [Task(position, bench.problems[position].id) for position in positions]
    findings = {task.number: Finding(task.number) for task in tasks}
    if runner.settings.module_of("coder") and options.samples:
        for number, passed, golden in bench.programs(tasks):
            findings[number] = replace(findings[number], passed=passed, golden=golden)
    if runner.settings.module_of("tester") and options.suites:
        for opponent, number, validity, kills in bench.suites(tasks):
            before = findings[number]
            findings[number] = replace(
                before, validity={**before.validity, opponent: validity}, kills={**before.kills, opponent: kills}
            )
    return [findings[task.number] for task in tasks]


class _Bench:
    """Problems, players and environments of an evaluation, in a runner."""

    def __init__(self, runner: TreeEnvRunner, options: EvaluationOptions) -> None:
        self.problems = held_out_problems(options.problems, options.limit)
        self._runner, self._options = runner, options
        # The figures must not depend on the rewards of the training.
        self._rules = replace(
            runner.settings.rules,
            reward=preset("fixed").reward,
            book=BookRules(update=BookUpdate.OFF, n_replayed=0),
            confirm=0.0,
        )

    def programs(self, tasks: Sequence[Task]) -> Iterator[tuple[int, tuple[bool, ...], tuple[float, ...]]]:
        """Yield per problem which samples pass all golden tests, and the share that each passes."""
        with closing(self._envs(self._options.samples, 0)) as envs:
            roller = self._roller(envs, {"coder": self._player("coder")})
            turns = roller.coder_turns([task for task in tasks if self.problems.by_id(task.problem_id).golden])
            problem_ids = [turn.info["problem_id"] for turn in turns]
            results = envs.referee.golden(problem_ids, [answer.reply for answer in roller.answers("coder", turns)])
        found: dict[str, list[GoldenFinding]] = {}
        for problem_id, each in zip(problem_ids, results, strict=True):
            found.setdefault(problem_id, []).append(each)
        for task in tasks:
            if mine := found.get(task.problem_id):
                passed = tuple(each.passed for each in mine if each.passed is not None)
                yield task.number, passed, tuple(each.pass_rate for each in mine if each.pass_rate is not None)

    def suites(self, tasks: Sequence[Task]) -> Iterator[tuple[str, int, tuple[float, ...], tuple[bool, ...]]]:
        """Yield per opponent and problem the validity of each suite, and whether it beats its program."""
        with closing(self._envs(self._options.programs, self._options.suites)) as envs:
            for opponent in self._options.opponents:
                players = {"coder": self._opponent(opponent), "tester": self._player("tester")}
                for tree in self._roller(envs, players).roll(tasks):
                    validity, kills = _measured(tree, self._rules.tests_per_suite)
                    yield opponent, tree.task.number, tuple(validity), tuple(kills)

    def _player(self, role: str) -> Player:
        options, settings = self._options, self._runner.settings
        return self._runner.player(
            role,
            SamplingRules(
                settings.lengths.max_tokens[role],
                options.temperature,
                top_p=options.top_p,
                rows_at_once=settings.rollout.rows_sampled_at_once,
            ),
        )

    def _opponent(self, name: str) -> Player:
        if name == CURRENT:
            return (
                self._runner.player("coder") if not self._runner.settings.module_of("coder") else self._player("coder")
            )
        context = AgentContext(self.problems, self._runner.env.referee.sandbox, self._runner.settings.seed)
        return AgentPlayer(load_agent(name, context, role="coder"), f"coder {name}")

    def _envs(self, n_candidates: int, n_suites: int) -> GroupEnvs:
        n_problems = self._runner.settings.rollout.problems_at_once
        shape = Shape(n_candidates=n_candidates, n_suites=n_suites, problems_at_once=n_problems)
        return self._runner.group_envs(self.problems, self._rules, shape)

    def _roller(self, envs: GroupEnvs, players: Mapping[str, Player]) -> TreeRoller:
        return TreeRoller(envs, players, seed=self._runner.settings.seed + _STREAM)


def _measured(tree: RolledTree, tests_per_suite: int) -> tuple[list[float], list[bool]]:
    validity, kills = [], []
    for n, report in enumerate(tree.judged.report.candidates if tree.judged.report is not None else ()):
        for m, suite in enumerate(report.suites):
            if report.has_internal_error or tree.suites[n][m].unavailable:
                continue
            validity.append(min(1.0, n_right(suite.cases) / tests_per_suite))
            kills.append(suite.beats)
    return validity, kills


def require_evaluation(options: EvaluationOptions, sandbox: str) -> None:
    """Raise UserError for settings that make no evaluation. It builds nothing.

    Args:
        options: of the evaluation.
        sandbox: name of the run's back end.
    """
    if not options.every:
        return
    if not options.problems:
        raise UserError("evaluation.problems: name the problems to evaluate on, or set evaluation.every = 0")
    context = AgentContext(held_out_problems(options.problems, options.limit), load_sandbox(sandbox))
    for opponent in options.opponents if options.suites else ():
        if opponent != CURRENT:
            load_agent(opponent, context, role="coder")
