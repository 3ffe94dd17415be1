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
from typing import Any, NamedTuple

from codea1_agents.evaluation.metrics import pass_at_k
from codea1_agents.statistics import known_mean, mean_interval
from codea1_agents.train.grpo.env_runner import TreeEnvRunner
from codea1_agents.train.grpo.hyperparameters import Shape
from codea1_agents.train.grpo.rollout import AgentPlayer, GroupEnvs, Player, RolledTree, Task, TreeRoller
from codea1_agents.train.settings.options import CURRENT, EvaluationOptions
from codea1_env.agent import AgentContext, Role, load_agent
from codea1_env.errors import UserError
from codea1_env.facts.verdicts import GoldenFinding
from codea1_env.problems import ProblemSet, load_problems
from codea1_env.rules.rewards import validity
from codea1_env.rules.ruleset import BookRules, BookUpdate, preset
from codea1_env.sandbox import load_sandbox

_STREAM = 1 << 32  # separates the seeds from those of training
_MOST_K = (1, 8)


class SuiteFigures(NamedTuple):
    """The figures of one suite."""

    validity: float
    """Right cases over the number requested, at most 1."""
    right_kill_rate: bool
    """Whether it beats the program by a right case."""
    kill_rate: bool
    """The same by any case, so also where only a wrong prediction was corrected."""
    aim: float
    """The share of its cases that the program fails less the share of golden tests that it fails, which are naive
    inputs; nan if that share is unknown."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What the evaluation found on one problem."""

    position: int
    """Position of the problem among the held-out ones."""
    passed: tuple[bool, ...] = ()
    """Whether each program of the coder passes all golden tests, without programs that could not be judged."""
    golden: tuple[float, ...] = ()
    """Share of golden tests that each of these programs passes."""
    suites: Mapping[str, tuple[SuiteFigures, ...]] = field(default_factory=dict)
    """By opponent, the figures of each suite for a program of its."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """The evaluation on held-out problems, for RLlib's `evaluation(custom_evaluation_function=HeldOut(options))`."""

    options: EvaluationOptions

    def __call__(self, algorithm: Any, runners: Any) -> tuple[dict[str, float], int, int]:
        """Return the figures of the models with the weights of the runners (see `summarise`).

        RLlib expects two counts with them; both are the number of problems.

        Args:
            algorithm: a `GRPO`; the figures become its results.
            runners: those of evaluations; None: those of the training.

        Raises:
            RunnerFailed: a runner raised an exception.
        """
        positions = range(len(load_held_out(self.options.problems, self.options.limit)))
        by_position: dict[int, Finding] = {}
        work = partial(_evaluate, self.options)
        for findings in algorithm.pool(runners).map(positions, work, by_position.__contains__):
            by_position.update({finding.position: finding for finding in findings})
        figures = summarise([by_position[position] for position in sorted(by_position)])
        algorithm.log_evaluation(figures)
        return figures, len(by_position), len(by_position)


def summarise(findings: Sequence[Finding]) -> dict[str, float]:
    """Return means over problems, without figures that are nan.

    `coder_pass_at_1`, and with eight samples or more `coder_pass_at_8`, are the unbiased estimates; `..._low` and
    `..._high` are the ends of the first one's 95 % bootstrap interval over problems. `coder_golden_rate` is the share
    of golden tests passed. `tester_validity/OPPONENT` and `tester_right_kill_rate/OPPONENT` follow, the share of suites
    for valid programs that beat their program by a right case; `tester_kill_rate/OPPONENT` counts all cases, so it also
    rises with wrong answers. `tester_aim/OPPONENT` says how much more often than
    golden tests the cases fail these programs. `problems` is the number of problems.
    """
    figures = {"problems": float(len(findings))}
    for k in _MOST_K:
        figures[f"coder_pass_at_{k}"] = known_mean(pass_at_k(len(f.passed), sum(f.passed), k) for f in findings)
    passed = mean_interval({str(f.position): [pass_at_k(len(f.passed), sum(f.passed), 1)] for f in findings})
    figures |= {"coder_pass_at_1_low": passed.low, "coder_pass_at_1_high": passed.high}
    figures["coder_golden_rate"] = known_mean(known_mean(f.golden) for f in findings)
    for opponent in sorted({name for f in findings for name in f.suites}):
        for name in SuiteFigures._fields:
            of_problems = (known_mean(getattr(each, name) for each in f.suites.get(opponent, ())) for f in findings)
            figures[f"tester_{name}/{opponent}"] = known_mean(of_problems)
    return {name: value for name, value in figures.items() if not math.isnan(value)}


@lru_cache(maxsize=4)
def load_held_out(source: str, limit: int) -> ProblemSet:
    """Return the problems of an evaluation, which a process reads once.

    Raises:
        UserError: the source does not exist.
    """
    return load_problems(source, limit=limit or None)


def _evaluate(options: EvaluationOptions, positions: Sequence[int], runner: TreeEnvRunner) -> list[Finding]:
    """Return the findings of one runner, about the problems at some positions."""
    bench = _Bench(runner, options)
    tasks = [Task(position, bench.problems[position].id) for position in positions]
    golden = bench.golden(tasks) if runner.settings.module_of("coder") and options.samples else {}
    suites = bench.suites(tasks) if runner.settings.module_of("tester") and options.suites else {}
    findings = []
    for place, task in enumerate(tasks):
        programs = golden.get(task.problem_id, [])
        findings.append(
            Finding(
                position=task.number,
                passed=tuple(each.passed for each in programs if each.passed is not None),
                golden=tuple(each.pass_rate for each in programs if each.pass_rate is not None),
                suites={opponent: of_tasks[place] for opponent, of_tasks in suites.items()},
            )
        )
    return findings


class _Bench:
    """Problems, players and environments of an evaluation, in a runner."""

    def __init__(self, runner: TreeEnvRunner, options: EvaluationOptions) -> None:
        self.problems = load_held_out(options.problems, options.limit)
        self._runner, self._options = runner, options
        # The figures must not depend on the rewards of the training.
        self._rules = replace(
            runner.settings.rules,
            reward=preset("fixed").reward,
            book=BookRules(update=BookUpdate.OFF, n_replayed=0),
        )

    def golden(self, tasks: Sequence[Task]) -> dict[str, list[GoldenFinding]]:
        """Return by problem, of those that have golden tests, how each sampled program does in them."""
        with closing(self._envs(self._options.samples, 0)) as envs:
            roller = self._roller(envs, {"coder": self._player("coder")})
            turns = roller.coder_turns([task for task in tasks if self.problems.by_id(task.problem_id).golden])
            problem_ids = [turn.info["problem_id"] for turn in turns]
            results = envs.referee.golden(problem_ids, [answer.reply for answer in roller.answers("coder", turns)])
        by_problem: dict[str, list[GoldenFinding]] = {}
        for problem_id, each in zip(problem_ids, results, strict=True):
            by_problem.setdefault(problem_id, []).append(each)
        return by_problem

    def suites(self, tasks: Sequence[Task]) -> dict[str, list[tuple[SuiteFigures, ...]]]:
        """Return by opponent the suites for its programs, task by task, without those that could not be judged."""
        by_opponent: dict[str, list[tuple[SuiteFigures, ...]]] = {}
        with closing(self._envs(self._options.programs, self._options.suites, golden=True)) as envs:
            for opponent in self._options.opponents:
                players = {"coder": self._opponent(opponent), "tester": self._player("tester")}
                trees = self._roller(envs, players).roll(tasks).trees
                by_opponent[opponent] = [tuple(_suite_figures(tree, self._rules.tests_per_suite)) for tree in trees]
        return by_opponent

    def _player(self, role: Role) -> Player:
        in_training = self._runner.sampling(role)
        sampling = replace(in_training, temperature=self._options.temperature, top_p=self._options.top_p)
        return self._runner.player(role, sampling)

    def _opponent(self, name: str) -> Player:
        if name == CURRENT:
            is_model = self._runner.settings.module_of("coder")
            return self._player("coder") if is_model else self._runner.player("coder")
        context = AgentContext(self.problems, self._runner.env.referee.sandbox, self._runner.settings.seed)
        return AgentPlayer(load_agent(name, context, role="coder"), f"coder {name}")

    def _envs(self, n_candidates: int, n_suites: int, *, golden: bool | None = None) -> GroupEnvs:
        n_problems = self._runner.settings.rollout.problems_at_once
        shape = Shape(n_candidates=n_candidates, n_suites=n_suites, problems_at_once=n_problems)
        return self._runner.group_envs(self.problems, self._rules, shape, golden)

    def _roller(self, envs: GroupEnvs, players: Mapping[str, Player]) -> TreeRoller:
        return TreeRoller(envs, players, seed=self._runner.settings.seed + _STREAM)


def _suite_figures(tree: RolledTree, n_requested: int) -> Iterator[SuiteFigures]:
    for n, report in enumerate(tree.judged.report.candidates if tree.judged.report is not None else ()):
        if not report.has_internal_error:
            golden_rate = math.nan if report.golden_pass_rate is None else report.golden_pass_rate
            for m, suite in enumerate(report.suites):
                if not tree.suites[n][m].unavailable:
                    evidence = [case.verdict.is_failure for case in suite.cases if case.verdict.is_evidence]
                    aim = known_mean(evidence) - (1 - golden_rate)
                    yield SuiteFigures(validity(suite, n_requested), suite.beats_rightly, suite.beats, aim)


def require_evaluation(options: EvaluationOptions, sandbox: str) -> None:
    """Raise UserError for settings that make no evaluation. It builds nothing.

    Args:
        options: how to evaluate.
        sandbox: name of the run's back end.
    """
    if not options.every:
        return
    if not options.problems:
        raise UserError("evaluation.problems: name the problems to evaluate on, or set evaluation.every = 0")
    context = AgentContext(load_held_out(options.problems, options.limit), load_sandbox(sandbox))
    for opponent in options.opponents if options.suites else ():
        if opponent != CURRENT:
            load_agent(opponent, context, role="coder")
