"""`codea1 play`: the options. What it does: `playing`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Option

from codea1_agents.cli.options import Alpha, Limit, Options, SummaryOnly


# None stands for "not given", so that a resumed run can tell what was asked from a default.
@dataclass(frozen=True, slots=True, kw_only=True)
class PlayOptions(Options):
    """Play games and record them: each is one problem, one program, one suite of tests.

    Every run writes a folder: config.toml, episodes.jsonl (one line per episode), book.sqlite, metrics.json.
    Names of the form module:attribute also find modules of the current folder.
    A game in which an agent cannot be asked is masked; eight in a row stop the run, which --resume continues.

    \b
    Example:
      codea1 play --problems humaneval --coder mutant,strength=0.5 --tester fuzz -n 20
    """

    problems: Annotated[
        str | None, Option("--problems", "-p", help="Source by name or path.", show_default="humaneval")
    ] = None
    coder: Annotated[
        str | None,
        Option(
            help="Coder: a name (see codea1 agents), options behind it as in mutant,strength=0.3, or module:attribute.",
            show_default="mutant",
        ),
    ] = None
    tester: Annotated[str | None, Option(help="Tester: likewise.", show_default="fuzz")] = None
    episodes: Annotated[
        int | None, Option("--episodes", "-n", min=1, help="Episodes; number k plays problem k.", show_default="10")
    ] = None
    rounds: Annotated[
        int | None,
        Option(
            min=1, max=1_000_000, help="Rounds per episode; from the second on the coder may repair.", show_default="1"
        ),
    ] = None
    seed: Annotated[int | None, Option(min=0, help="Of everything random.", show_default="0")] = None
    rules: Annotated[
        str | None,
        Option(
            "--rules",
            "--preset",
            help="fixed, paper, release, skillxiv, golden, zero_sum, cure, utrl, atgen or learnability.",
            show_default="fixed",
        ),
    ] = None
    alpha: Alpha = None
    tests_per_suite: Annotated[
        int | None, Option(min=1, max=10_000, help="Cases asked of the tester.", show_default="the preset's")
    ] = None
    tester_view: Annotated[
        str | None, Option(help="white_box (the tester sees the program) or black_box.", show_default="white_box")
    ] = None
    sandbox: Annotated[str | None, Option(help="Where programs run.", show_default="local")] = None
    limit: Limit = None
    strict: Annotated[
        bool | None, Option("--strict", help="Fail at a broken row of the source instead of skipping it.")
    ] = None
    concurrency: Annotated[
        int, Option(min=1, max=4096, help="Games in progress at the same time; never two of one problem.")
    ] = 1
    show: Annotated[int | None, Option(min=0, help="Duels to picture.", show_default="1; 0 with --json or --quiet")] = (
        None
    )
    out: Annotated[Path | None, Option(help="Run folder, new or empty.", show_default="a new one under runs/")] = None
    resume: Annotated[
        Path | None, Option(help="Continue the run in this folder; other options must agree with it.")
    ] = None
    quiet: SummaryOnly = False
