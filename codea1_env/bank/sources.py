"""Loads a judged bank from everything that a user may name as a bank."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from codea1_env.bank.building import BankRecipe, bank_of_run, build_bank
from codea1_env.bank.cache import BankCache
from codea1_env.bank.entries import Bank, load_bank_file
from codea1_env.bank.judged import JudgedBank
from codea1_env.bank.judging import judge_bank
from codea1_env.problems import ProblemSet, load_problems
from codea1_env.rules.ruleset import Ruleset, preset
from codea1_env.sandbox import Limits, Sandbox, load_sandbox

BANK_ENDING = ".bank.jsonl"
"""End of the names of bank files, which `Bank.save` writes."""

BankSource = str | Path | ProblemSet | Bank


def load_bank(
    source: BankSource,
    *,
    rules: str | Ruleset = "fixed",
    recipe: BankRecipe | None = None,
    limit: int | None = None,
    sandbox: Sandbox | str = "local",
    limits: Limits | None = None,
    cache: BankCache | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> JudgedBank:
    """Return a judged bank.

    Args:
        source: a `Bank`, a file whose name ends in `.bank.jsonl`, a run folder (its programs and suites), or any source
            of problems, from which a bank is built by `recipe`.
        rules: a `Ruleset` or the name of one.
        recipe: contents of the bank; for a run folder only `solution` is used, and its default is False.
        limit: number of problems to use, from the first; None: all.
        sandbox: where programs run.
        limits: bounds per call of a program.
        cache: stores banks and verdicts; None: the user's cache folder.
        progress: called with the number of judged problems and the number of all problems.

    Raises:
        UserError: the source does not exist, or contains no programs or suites.
        SandboxError: a problem could not be judged.
    """
    ruleset = preset(rules) if isinstance(rules, str) else rules
    backend = load_sandbox(sandbox)
    bank_cache = cache if isinstance(cache, BankCache) else BankCache(cache)
    bank = _existing_bank(source, recipe, limit)
    if bank is None:
        assert not isinstance(source, Bank)  # `_existing_bank` returns it
        problems = load_problems(source, limit=limit)
        bank = build_bank(problems, ruleset, backend, recipe=recipe, cache=bank_cache)
    return judge_bank(bank, ruleset, backend, limits=limits, cache=bank_cache, progress=progress)


def _existing_bank(source: BankSource, recipe: BankRecipe | None, limit: int | None) -> Bank | None:
    """Return the bank in the source; None if it is a source of problems."""
    if isinstance(source, Bank):
        return _cut(source, limit)
    if isinstance(source, ProblemSet):
        return None
    path = Path(source)
    if path.name.endswith(BANK_ENDING):
        return _cut(load_bank_file(path), limit)
    if (path / "episodes.jsonl").is_file():
        return _cut(bank_of_run(path, solution=recipe is not None and recipe.solution), limit)
    return None


def _cut(bank: Bank, limit: int | None) -> Bank:
    return bank if limit is None else Bank(bank.name, bank.problems[: max(1, limit)])
