"""`codea1 play`: the options. What it does: `playing`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

# None stands for "not given", so that a resumed run can tell what was asked from what is merely the default.
_Problems = Annotated[
    str | None, typer.Option("--problems", "-p", help="Source by name or path.", show_default="humaneval")
]
_Coder = Annotated[
    str | None,
    typer.Option(
        help="Coder: a name (see codea1 agents), options behind it as in mutant,strength=0.3, or module:attribute.",
        show_default="mutant",
    ),
]
_Tester = Annotated[str | None, typer.Option(help="Tester: likewise.", show_default="fuzz")]
_Episodes = Annotated[
    int | None, typer.Option("--episodes", "-n", min=1, help="Episodes; number k plays problem k.", show_default="10")
]
_Rounds = Annotated[
    int | None,
    typer.Option(
        min=1, max=1_000_000, help="Rounds per episode; from the second on the coder may repair.", show_default="1"
    ),
]
_Seed = Annotated[int | None, typer.Option(min=0, help="Of everything random.", show_default="0")]
_Rules = Annotated[
    str | None,
    typer.Option(
        "--rules",
        "--preset",
        help="fixed, paper, release, skillxiv, golden, zero_sum, cure, utrl, atgen or learnability.",
        show_default="fixed",
    ),
]
_Alpha = Annotated[
    float | None,
    typer.Option(min=0, max=1, help="Weight of validity in the tester's reward.", show_default="the preset's"),
]
_TestsPerSuite = Annotated[
    int | None, typer.Option(min=1, max=10_000, help="Cases asked of the tester.", show_default="the preset's")
]
_TesterView = Annotated[
    str | None,
    typer.Option(help="white_box (the tester sees the program) or black_box.", show_default="white_box"),
]
_Sandbox = Annotated[str | None, typer.Option(help="Where programs run.", show_default="local")]
_Limit = Annotated[
    int | None, typer.Option(min=1, help="Use only so many problems, from the front.", show_default="all")
]
_Strict = Annotated[
    bool | None, typer.Option("--strict", help="Fail at a broken row of the source instead of skipping it.")
]
_Concurrency = Annotated[
    int, typer.Option(min=1, max=4096, help="Games in progress at the same time; never two of one problem.")
]
_Show = Annotated[int | None, typer.Option(min=0, help="Duels to picture.", show_default="1; 0 with --json or --quiet")]
_Out = Annotated[Path | None, typer.Option(help="Run folder, new or empty.", show_default="a new one under runs/")]
_Resume = Annotated[
    Path | None, typer.Option(help="Continue the run in this folder; other options must agree with it.")
]
_Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, all else on stderr.")]
_Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only the summary.")]


def play(
    problems: _Problems = None,
    coder: _Coder = None,
    tester: _Tester = None,
    episodes: _Episodes = None,
    rounds: _Rounds = None,
    seed: _Seed = None,
    rules: _Rules = None,
    alpha: _Alpha = None,
    tests_per_suite: _TestsPerSuite = None,
    tester_view: _TesterView = None,
    sandbox: _Sandbox = None,
    limit: _Limit = None,
    strict: _Strict = None,
    concurrency: _Concurrency = 1,
    show: _Show = None,
    out: _Out = None,
    resume: _Resume = None,
    as_json: _Json = False,
    quiet: _Quiet = False,
) -> None:
    """Play games and record them: each is one problem, one program, one suite of tests.

    Every run writes a folder: config.toml, episodes.jsonl (one line per episode), book.sqlite, metrics.json.
    Names of the form module:attribute also find modules of the current folder.
    A game in which an agent cannot be asked is masked; eight in a row stop the run, which --resume continues.

    \b
    Example:
      codea1 play --problems humaneval --coder mutant,strength=0.5 --tester fuzz -n 20
    """
    from codea1_agents.cli.playing import Asked, run  # noqa: PLC0415  heavy

    asked = Asked(
        problems=problems,
        coder=coder,
        tester=tester,
        episodes=episodes,
        rounds=rounds,
        seed=seed,
        rules=rules,
        alpha=alpha,
        tests_per_suite=tests_per_suite,
        tester_view=tester_view,
        sandbox=sandbox,
        limit=limit,
        strict=strict,
    )
    run(asked, out=out, resume=resume, concurrency=concurrency, n_shown=show, as_json=as_json, quiet=quiet)
