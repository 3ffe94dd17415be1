"""Evaluates a coder: samples programs, judges them by golden tests, and computes pass@k and avg@n."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from math import nan

from codea1_agents.evaluation.metrics import pass_at_k
from codea1_agents.evaluation.records import CoderSample
from codea1_agents.evaluation.turns import sample_turn
from codea1_agents.play.named_agent import NamedAgent, TurnAndReply
from codea1_agents.statistics import Estimate, mean_interval
from codea1_env.facts.verdicts import GoldenFinding
from codea1_env.problems.problem import Problem
from codea1_env.rounds.referee import Referee
from codea1_env.sandbox.interface import Sandbox

USUAL_K = (1, 2, 5, 10, 32, 100)
"""The k for which pass@k is reported, if there are at least k samples."""

CHUNK = 64
"""Samples that are requested and judged together, where the coder does not yield them as they end."""


def evaluate_coder(
    problems: Iterable[Problem],
    coder: NamedAgent,
    sandbox: Sandbox,
    *,
    samples: int = 1,
    known: Collection[tuple[str, int]] = (),
) -> Iterator[list[CoderSample]]:
    """Yield judged samples as the replies end. A caller that stores them can later request only the missing ones.

    Programs are read strictly, and values are compared as under the rules `fixed`. After 64 replies in a row for which
    the coder is unavailable, it is asked no more.

    Args:
        problems: problems without golden tests are left out.
        coder: the coder.
        sandbox: where programs run.
        samples: replies per problem, at least 1.
        known: problem id and number of each sample that exists already.

    Raises:
        UserError: the coder failed.
        SandboxError: the sandbox cannot be used at all.
    """
    all_problems = list(problems)
    turns = [
        sample_turn(problem, "coder", sample)
        for problem in all_problems
        if problem.golden
        for sample in range(samples)
        if (problem.id, sample) not in known
    ]
    referee = Referee(all_problems, sandbox=sandbox)
    n_missing = 0
    for replied in coder.stream(turns, CHUNK):
        ids = [one.turn.info["problem_id"] for one in replied]
        findings = referee.golden(ids, [one.reply for one in replied])
        yield list(map(judged_sample, replied, findings))
        n_missing = 0 if any(isinstance(one.reply, str) for one in replied) else n_missing + len(replied)
        if n_missing >= CHUNK:
            return


def judged_sample(replied: TurnAndReply, finding: GoldenFinding) -> CoderSample:
    """Return the record of a reply with the findings of the golden tests."""
    turn, text = replied.turn, replied.reply if isinstance(replied.reply, str) else None
    return CoderSample(
        problem_id=turn.info["problem_id"],
        sample=turn.info["sample"],
        reply=text,
        passed=finding.passed,
        pass_rate=finding.pass_rate,
        verdict="" if text is None else finding.verdict.value,
        detail=finding.detail,
        masked=finding.masked,
        n_own_tests=finding.n_own_tests,
    )


@dataclass(frozen=True, slots=True)
class CoderFigures:
    """The figures of a coder's samples; estimates are means over problems with 95 % intervals."""

    n_problems: int
    n_samples: int
    """Unmasked samples."""
    n_masked: dict[str, int]
    """Masked samples by reason: `agent`, `sandbox`, `test`."""
    pass_at: dict[int, Estimate]
    """k -> pass@k. A problem with fewer than k unmasked samples does not enter, and counts as masked."""
    average: Estimate
    """avg@n: the share of samples that pass all golden tests."""
    verdicts: dict[str, int]
    """Number of samples by verdict: `passed`, or the verdict of the first golden test that failed."""
    n_with_own_tests: int
    """Samples whose program came with tests of its own, which were left out."""


def figures_of_coder(samples: Collection[CoderSample], *, seed: int = 0) -> CoderFigures:
    """Return the figures of judged samples, with pass@k for each k for which some problem has k samples."""
    by_problem = _flags(samples)
    most = max(map(len, by_problem.values()), default=0)
    average = {problem: [float(flag) for flag in flags] for problem, flags in by_problem.items()}
    return CoderFigures(
        n_problems=len(by_problem),
        n_samples=sum(map(len, by_problem.values())),
        n_masked=dict(Counter(sample.masked for sample in samples if sample.masked)),
        pass_at={
            k: mean_interval({p: [v] for p, v in pass_at_k_by_problem(samples, k).items()}, seed=seed)
            for k in USUAL_K
            if k <= most
        },
        average=mean_interval(average, seed=seed),
        verdicts=dict(Counter(sample.verdict for sample in samples if sample.passed is not None).most_common()),
        n_with_own_tests=sum(sample.n_own_tests > 0 for sample in samples),
    )


def pass_at_k_by_problem(samples: Iterable[CoderSample], k: int) -> dict[str, float]:
    """Return each problem's pass@k; nan where fewer than k samples are unmasked."""
    return {problem: pass_at_k(len(flags), sum(flags), k) for problem, flags in _flags(samples).items()}


def avg_by_problem(samples: Iterable[CoderSample]) -> dict[str, float]:
    """Return each problem's share of unmasked samples that pass; nan where there are none."""
    return {p: sum(flags) / len(flags) if flags else nan for p, flags in _flags(samples).items()}


def _flags(samples: Iterable[CoderSample]) -> dict[str, list[bool]]:
    by_problem: dict[str, list[bool]] = {}
    for sample in samples:
        flags = by_problem.setdefault(sample.problem_id, [])
        if sample.passed is not None:
            flags.append(sample.passed)
    return by_problem
