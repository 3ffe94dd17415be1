"""The options of `codea1 play`; `playing` runs it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Option

from codea1_agents.cli import completing
from codea1_agents.cli.options import (
    DEFAULT_SOURCE,
    REPLY_TIMEOUT_S,
    Alpha,
    Limit,
    Options,
    ReplyTimeout,
    SummaryOnly,
    agent_spec,
    how_many,
    n_tests,
    output,
    problem_source,
    rules_preset,
    sandbox_name,
    seed_of,
)


# None means "not given": a resumed run must distinguish a given option from a default.
@dataclass(frozen=True, slots=True, kw_only=True)
class PlayOptions(Options):
    """Play and record games: in each, the coder writes a program for a problem and the tester a suite of tests.

    Every run writes a folder: config.toml, episodes.jsonl (one line per episode), book.sqlite, metrics.json.
    Names of the form module:attribute also find modules in the current folder.
    A game with an unavailable agent is masked; eight such games in a row stop the run, and --resume continues it.

    \b
    Example:
      codea1 play --problems humaneval --coder mutant,strength=0.5 --tester fuzz -n 20
    """

    problems: Annotated[str | None, problem_source(show_default=DEFAULT_SOURCE)] = None
    coder: Annotated[
        str | None,
        agent_spec(
            "--coder",
            "Coder: a name (see codea1 list agents) with its options, as in mutant,strength=0.3, or module:attribute.",
            show_default="mutant",
        ),
    ] = None
    tester: Annotated[str | None, agent_spec("--tester", "Tester, in the same form.", show_default="fuzz")] = None
    episodes: Annotated[
        int | None,
        how_many("--episodes", "Number of episodes; episode k plays problem k.", show_default="10"),
    ] = None
    rounds: Annotated[
        int | None,
        Option(
            min=1,
            max=1_000_000,
            help="Rounds per episode; from the second round on, the coder can repair its program.",
            show_default="1",
        ),
    ] = None
    seed: Annotated[int | None, seed_of("all randomness", show_default="0")] = None
    rules: Annotated[str | None, rules_preset(show_default="fixed")] = None
    alpha: Alpha = None
    tests: Annotated[int | None, n_tests(show_default="the preset's")] = None
    tester_view: Annotated[
        str | None, Option(help="white_box (the tester sees the program) or black_box.", show_default="white_box")
    ] = None
    sandbox: Annotated[str | None, sandbox_name(show_default="local")] = None
    limit: Limit = None
    strict: Annotated[
        bool | None, Option("--strict", help="Stop at a broken row of the problem source instead of skipping it.")
    ] = None
    concurrency: Annotated[
        int, Option(min=1, max=4096, help="Most games in progress at once; never two of one problem.")
    ] = 1
    reply_timeout: ReplyTimeout = REPLY_TIMEOUT_S
    show: Annotated[
        int | None, Option(min=0, help="Number of duels to draw.", show_default="1; 0 with --json or --quiet")
    ] = None
    out: Annotated[Path | None, output("Run folder, new or empty.", show_default="a new one under runs/")] = None
    resume: Annotated[
        Path | None,
        Option(
            help="Continue the run in this folder; other options must agree with its configuration.",
            autocompletion=completing.runs,
        ),
    ] = None
    quiet: SummaryOnly = False
