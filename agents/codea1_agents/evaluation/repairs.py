"""Evaluates a coder over several turns: in each, it repairs its program by what failed of the tests that it is shown.

Every sample has one program per turn, and golden tests judge each of them. Observations and the texts of feedback are
those of a game of as many rounds without a Mistake Book. A sample whose program passes what it is shown, is left as it
was, or could not be tested keeps it for all later turns. Each turn's randomness is its own, since infos say the round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan

from codea1_agents.evaluation.coder import CHUNK, avg_by_problem, evaluate_coder, judged_sample
from codea1_agents.evaluation.records import CoderSample
from codea1_agents.evaluation.turns import sample_turn
from codea1_agents.play.named_agent import NamedAgent, TurnAndReply
from codea1_agents.statistics import Estimate, mean_interval
from codea1_env.agent import Role
from codea1_env.errors import AgentUnavailable
from codea1_env.facts.verdicts import CandidateReport, GoldenFinding
from codea1_env.observations import coder_feedback, tester_feedback
from codea1_env.problems.problem import Problem
from codea1_env.rounds.referee import Referee
from codea1_env.rounds.rounds import JudgedTree, RoundOptions, Tree, Turn, candidate_of
from codea1_env.rounds.trajectories import solves
from codea1_env.sandbox.interface import Sandbox

GOLDEN = "golden"
"""What names golden tests where a tester may be named."""


def is_settled(record: CoderSample) -> bool:
    """Whether a record is final: a broken golden test stays broken, but what was unavailable is requested again."""
    return record.masked in ("", "test") and record.kept not in ("coder", "tester", "sandbox")


def evaluate_turns(
    problems: Iterable[Problem],
    coder: NamedAgent,
    sandbox: Sandbox,
    tester: NamedAgent | None,
    *,
    turns: int,
    samples: int = 1,
    known: Collection[CoderSample] = (),
    absent: Collection[tuple[str, int]] = (),
) -> Iterator[list[CoderSample]]:
    """Yield the samples of turn 1, which are those of `evaluate_coder`, then those of each later turn.

    Args:
        problems: problems without golden tests are left out.
        coder: the coder.
        sandbox: where programs run.
        tester: writes a suite for each program, whose failed tests are shown; None: failed golden tests are.
        turns: at least 1.
        samples: per problem, at least 1.
        known: settled records of former calls; those whose turn before is requested again are, too.
        absent: problem id and number of samples that are not to be requested.

    Raises:
        UserError: an agent failed.
        SandboxError: the sandbox cannot be used at all.
    """
    all_problems, n_missing, renewed = list(problems), 0, set[tuple[str, int]]()
    before = {(each.problem_id, each.sample): each for each in known if each.turn == 1}
    batches = evaluate_coder(all_problems, coder, sandbox, samples=samples, known={*before, *absent})
    repairs = _Repairs(coder, tester, Referee(all_problems, sandbox=sandbox))
    for turn in range(1, turns + 1):
        if turn > 1:
            stored = {(each.problem_id, each.sample): each for each in known if each.turn == turn}
            missing = [record for key, record in before.items() if key in renewed or key not in stored]
            before = {key: stored[key] for key in before if key in stored and key not in renewed}
            batches = repairs.of(missing)
        for batch in batches:
            of_batch = {(each.problem_id, each.sample): each for each in batch}
            before |= of_batch
            renewed |= of_batch.keys()
            yield batch
            are_missing = [each.kept == "coder" for each in batch if each.kept in ("", "unchanged", "coder")]
            n_missing = n_missing + len(are_missing) if all(are_missing) else 0
            if turn > 1 and n_missing >= CHUNK:
                return


@dataclass(frozen=True, slots=True)
class _Repairs:
    coder: NamedAgent
    tester: NamedAgent | None
    referee: Referee

    def of(self, before: Sequence[CoderSample]) -> Iterator[list[CoderSample]]:
        """Yield the records of the turn after these, which have the same."""
        for start in range(0, len(before), CHUNK):
            yield from self._of_chunk(before[start : start + CHUNK])

    def _of_chunk(self, before: Sequence[CoderSample]) -> Iterator[list[CoderSample]]:
        """Yield first the samples that keep their programs, then the others as their replies end."""
        tested = [each for each in before if not (each.kept or each.masked)]
        later = [_later(each, each.kept or "masked") for each in before if each.kept or each.masked]
        later += self._golden_feedback(tested) if self.tester is None else self._feedback_of(self.tester, tested)
        yield [each for each in later if each.kept]
        asked = {(each.problem_id, each.sample): each for each in later if not each.kept}
        for replied in self.coder.stream([self._turn(it, "coder", it.feedback) for it in asked.values()], CHUNK):
            keys = [(one.turn.info["problem_id"], one.turn.info["sample"]) for one in replied]
            findings = self.referee.golden([name for name, _ in keys], [one.reply for one in replied])
            yield list(map(self._repaired, map(asked.__getitem__, keys), replied, findings))

    def _repaired(self, asked: CoderSample, replied: TurnAndReply, finding: GoldenFinding) -> CoderSample:
        if isinstance(replied.reply, AgentUnavailable):
            return asked.model_copy(update={"kept": "coder"})
        kept = "unchanged" if finding.program == self._program(asked) else ""
        return asked.model_copy(update={**judged_sample(replied, finding).model_dump(), "kept": kept})

    def _golden_feedback(self, samples: Sequence[CoderSample]) -> list[CoderSample]:
        programs = [each.reply or "" for each in samples]
        reports = self.referee.golden_reports([each.problem_id for each in samples], programs)
        return [_shown(*each) for each in zip(samples, reports, strict=True)]

    def _feedback_of(self, tester: NamedAgent, samples: Sequence[CoderSample]) -> list[CoderSample]:
        trees = [Tree(self._problem(each)) for each in samples]
        rounds = self.referee.open(trees, RoundOptions(masks_sandbox_errors=True))
        rounds.submit_programs([each.reply or "" for each in samples])
        tested = [samples[turn.tree] for turn in rounds.tester_turns()]
        rounds.submit_suites(tester.replies([self._turn(it, "tester", it.tester_feedback) for it in tested]))
        return [_shown_by_suite(*each) for each in zip(samples, rounds.results(), strict=True)]

    def _turn(self, sample: CoderSample, role: Role, feedback: str) -> Turn:
        return sample_turn(
            self._problem(sample),
            role,
            sample.sample,
            round_=sample.turn - 1,
            program=self._program(sample),
            feedback=feedback,
            tests=self.referee.rules.tests_per_suite,
        )

    def _problem(self, sample: CoderSample) -> Problem:
        return self.referee.problems.by_id(sample.problem_id)

    def _program(self, sample: CoderSample) -> str:
        return candidate_of(sample.reply or "", self._problem(sample), self.referee.rules).program


def _later(before: CoderSample, kept: str, feedback: str = "", suite: str = "", to_tester: str = "") -> CoderSample:
    """Return a sample in the next turn, with the program that it had."""
    texts = {"feedback": feedback, "suite": suite, "tester_feedback": to_tester}
    return before.model_copy(update={"turn": before.turn + 1, "kept": kept, **texts})


def _shown(before: CoderSample, report: CandidateReport, suite: str = "", to_tester: str = "") -> CoderSample:
    return _later(before, "passed" if solves(report) else "", coder_feedback(report), suite, to_tester)


def _shown_by_suite(before: CoderSample, judged: JudgedTree) -> CoderSample:
    suites = judged.suites[0]
    if suites and isinstance(suites[0], AgentUnavailable):
        return _later(before, "tester")
    if judged.report is None or judged.report.candidates[0].has_internal_error:
        return _later(before, "sandbox")
    if isnan(judged.coder_rewards[0]):
        return _later(before, "untested")
    report = judged.report.candidates[0]
    return _shown(before, report, "".join(map(str, suites)), tester_feedback(next(iter(report.suites), None)))


def by_turn(samples: Iterable[CoderSample]) -> dict[int, list[CoderSample]]:
    """Return the samples of each turn, in the order of the turns; turn 1 may have none."""
    turns: dict[int, list[CoderSample]] = {1: []}
    for sample in sorted(samples, key=lambda each: each.turn):
        turns.setdefault(sample.turn, []).append(sample)
    return turns


def name_in_turn(figure: str, turn: int) -> str:
    """Return the name of a figure of one turn: the first one's is the figure's own."""
    return figure if turn == 1 else f"{figure} (turn {turn})"


def gain_by(turn: Sequence[CoderSample], first: Sequence[CoderSample], *, seed: int = 0) -> Estimate:
    """Return the share of samples that pass all golden tests less that of turn 1, over the problems with both."""
    before, after = avg_by_problem(first), avg_by_problem(turn)
    return mean_interval({name: [after[name] - before[name]] for name in after if name in before}, seed=seed)


@dataclass(frozen=True, slots=True)
class RepairCounts:
    """What one turn's repairs changed, in samples."""

    turn: int
    n_repairs: int
    """Programs that the coder changed."""
    n_fixed: int
    """Of these, those that pass all golden tests and did not before."""
    n_broken: int
    """Of these, those that passed all golden tests before and no longer do."""
    n_kept: dict[str, int]
    """Samples without a repair, by reason (`CoderSample.kept`)."""
    n_masked: dict[str, int]
    """Masked samples by reason (`CoderSample.masked`)."""


def count_repairs(turns: Mapping[int, Sequence[CoderSample]], turn: int) -> RepairCounts:
    """Return the counts of one turn, from 2, given the samples `by_turn`."""
    before = {(each.problem_id, each.sample): each.passed for each in turns[turn - 1]}
    repaired = [each for each in turns[turn] if not each.kept]
    changes = [(before.get((each.problem_id, each.sample)), each.passed) for each in repaired]
    return RepairCounts(
        turn,
        len(repaired),
        changes.count((False, True)),
        changes.count((True, False)),
        n_kept=dict(Counter(each.kept for each in turns[turn] if each.kept)),
        n_masked=dict(Counter(each.masked for each in turns[turn] if each.masked)),
    )
