"""Judges a bank with the same judge as all episodes; verdicts that are in the cache are not judged again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from codea1_env.bank.cache import BankCache, bank_digest
from codea1_env.bank.entries import Bank, ProblemBank
from codea1_env.bank.judged import JudgedBank, JudgedProblem
from codea1_env.errors import SandboxError
from codea1_env.facts.verdicts import ProblemReport
from codea1_env.rounds.referee import Referee
from codea1_env.rounds.rounds import SuitesPer, Tree
from codea1_env.rules.ruleset import Ruleset
from codea1_env.sandbox.interface import Limits, Sandbox

_PROBLEMS_AT_ONCE = 8  # limits the memory for a large bank, and lets `progress` be called often
_TRIES = 3


def judge_bank(
    bank: Bank,
    rules: Ruleset,
    sandbox: Sandbox,
    *,
    limits: Limits | None = None,
    cache: BankCache | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> JudgedBank:
    """Return the bank with its verdicts.

    Args:
        bank: what to judge.
        rules: how replies are read, validated, compared and scored.
        sandbox: where programs run.
        limits: bounds per call of a program.
        cache: stores verdicts between runs; None: no cache.
        progress: called with the number of judged problems and the number of all problems.

    Raises:
        UserError: the bank is empty, or the rules reward golden tests and a problem has none.
        SandboxError: a problem could not be judged in three tries. An unknown payoff is never estimated.
    """
    referee = Referee(bank.problem_set, rules, sandbox=sandbox, limits=limits)
    judge = referee.judge
    names = [bank_digest(each, rules, judge.limits, golden=judge.golden) for each in bank]
    reports = [cache.find(name) if cache is not None else None for name in names]
    missing = [position for position, report in enumerate(reports) if report is None]
    for start in range(0, len(missing), _PROBLEMS_AT_ONCE):
        chunk = missing[start : start + _PROBLEMS_AT_ONCE]
        for position, report in zip(chunk, _judge_until_known([bank.problems[p] for p in chunk], referee), strict=True):
            reports[position] = report
            if cache is not None:
                cache.keep(names[position], report)
        if progress is not None:
            progress(len(bank.problems) - len(missing) + start + len(chunk), len(bank.problems))
    judged = (JudgedProblem(each, report) for each, report in zip(bank, reports, strict=True) if report is not None)
    return JudgedBank(bank, rules, tuple(judged))


def _judge_until_known(banks: Sequence[ProblemBank], referee: Referee) -> list[ProblemReport]:
    reports: dict[int, ProblemReport] = {}
    for _ in range(_TRIES):
        left = [position for position in range(len(banks)) if position not in reports]
        judged = zip(left, _judge_once([banks[position] for position in left], referee), strict=True)
        reports |= {
            position: report
            for position, report in judged
            if not any(each.has_internal_error for each in report.candidates)
        }
    failed = [bank.problem.id for position, bank in enumerate(banks) if position not in reports]
    if failed:
        raise SandboxError(f"the sandbox failed {_TRIES} times on the bank of {', '.join(failed)}")
    return [reports[position] for position in range(len(banks))]


def _judge_once(banks: Sequence[ProblemBank], referee: Referee) -> list[ProblemReport]:
    """Return one report per problem: every program with every suite, each pair as a separate round."""
    trees = [Tree(bank.problem, len(bank.programs), len(bank.suites), SuitesPer.PROBLEM) for bank in banks]
    rounds = referee.open(trees)
    rounds.submit_programs([entry.reply for each in banks for entry in each.programs])
    rounds.submit_suites([entry.reply for each in banks for entry in each.suites])
    return [replace(judged.report, shares_suites=False) for judged in rounds.results() if judged.report is not None]
