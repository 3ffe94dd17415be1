"""`codea1 book minimise`: smaller cases that the same programs fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from codea1_agents.cli.book import BookOptions, opened_book
from codea1_agents.cli.console import Page, counted, new_table
from codea1_agents.cli.options import NoProgress, SandboxName, only_first, output
from codea1_agents.cli.progress import Progress
from codea1_env.book.store import MistakeBook
from codea1_env.errors import UserError
from codea1_env.problems import load_problems
from codea1_env.rounds.referee import Referee
from codea1_env.rules.mistake_book import combined
from codea1_env.rules.ruleset import Validation, preset
from codea1_env.runs.folder import stored_config
from codea1_env.sandbox import load_sandbox
from codea1_lab.book_history.minimising import Minimised, minimise, without_duplicates
from codea1_lab.book_history.programs import failures_in
from codea1_lab.book_history.simpler import size


@dataclass(frozen=True, slots=True, kw_only=True)
class MinimiseOptions(BookOptions):
    """Shrink each case's input as far as the same programs still fail it, and remove duplicates.

    \b
    Example:
      codea1 book minimise runs/20260304-050607 --out small.sqlite
    """

    out: Annotated[Path, output("File of the new book; it must not exist.")]
    sandbox: SandboxName = "local"
    limit: Annotated[int | None, only_first("cases", show_default="all")] = None
    quiet: NoProgress = False


_SHOWN = 10


def minimise_book(options: MinimiseOptions) -> None:
    """Write a book with smaller cases that the same programs fail, without duplicates.

    Raises:
        UserError: the book does not exist or was judged by another version of the judge, the new book exists already,
            the run with the programs is missing, or the problems are unknown.
        SandboxError: the sandbox cannot be used.
    """
    page, path, into = Page(as_json=options.as_json, quiet=options.quiet), options.book, options.out
    if into.exists():
        raise UserError(f"{into} exists already: name a new file")
    if not path.is_dir():
        raise UserError(f"{path} is a file: name the run folder, which has the programs")
    config, fixed = stored_config(path), preset("fixed")
    known = load_problems(config.problems)
    # Only failures matter here, so tests need no predictions and rewards are never read.
    rules = replace(config.rules, validation=Validation.CALL_ONLY, confirm=0.0, reward=fixed.reward)
    with opened_book(path) as book:
        book.require_this_judge()
        entries = list(book.entries())[: options.limit]
        rounds = {problem_id: book.round_of(problem_id) for problem_id in book.problem_ids()}
    failures = failures_in(path)
    found: list[Minimised] = []
    with page.apart(), closing(load_sandbox(options.sandbox)) as box, Progress("cases", len(entries), page) as progress:
        for each in minimise(entries, Referee(known, rules, sandbox=box, golden=False), failures):
            found.append(each)
            progress.reach(len(found), len(entries))
    kept = without_duplicates([each.after for each in found], combined)
    with _new_book(into) as target:
        target.absorb(kept, rounds)
    _report(page, found, n_kept=len(kept), into=into)


@contextmanager
def _new_book(path: Path) -> Iterator[MistakeBook]:
    """Yield a book to write to. If the block raises, it is deleted."""
    try:
        with MistakeBook(path) as book:
            yield book
    except BaseException:
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        raise


def _report(page: Page, found: Sequence[Minimised], *, n_kept: int, into: Path) -> None:
    smaller = [each for each in found if each.is_smaller]
    smaller.sort(key=lambda each: size(each.after.entry.expression)[1] - size(each.before.entry.expression)[1])
    rows = [(each.before.problem_id, each.before.entry.expression, each.after.entry.expression) for each in smaller]
    if rows and not page.as_json:
        page.show(new_table(("problem", "was", "is"), rows[:_SHOWN], whole=(0,)))
    before = sum(len(each.before.entry.expression) for each in found)
    after = sum(len(each.after.entry.expression) for each in found)
    for why, n in sorted(Counter(each.why for each in found if each.why).items()):
        page.note(f"{counted(n, 'case')} unchanged: {why}")
    page.say(
        f"{into}: {n_kept} of {counted(len(found), 'case')}, {len(smaller)} of them smaller,"
        f" {len(found) - n_kept} equal to others; {before} characters before, {after} after"
    )
    page.finish(
        out=str(into),
        before=len(found),
        size=n_kept,
        smaller=len(smaller),
        characters_before=before,
        characters_after=after,
        attempts=sum(each.n_attempts for each in found),
        cases=[
            {
                "problem_id": each.before.problem_id,
                "before": each.before.entry.expression,
                "after": each.after.entry.expression,
                "why": each.why,
            }
            for each in found
        ],
    )
