"""The options of `codea1 export`; `exporting_tests` and `exporting_model` run its commands."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from codea1_agents.cli import completing
from codea1_agents.cli.options import (
    DEFAULT_SOURCE,
    Options,
    Problems,
    SessionOptions,
    agent_spec,
    n_suites,
    n_tests,
    output,
    seed_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportTestsOptions(SessionOptions):
    """Run a tester over problems and write its confirmed tests as golden tests (paper, table 4).

    The file is itself a problem source: with --layout own, the same problems with the new golden tests.

    \b
    Example:
      codea1 export tests --agent boundary --problems starter --out tests.jsonl
    """

    agent: Annotated[str, agent_spec("--agent", "The tester (see codea1 list agents).")]
    out: Annotated[Path, output("File to write: Parquet if its name ends in .parquet, else JSON lines.")]
    problems: Problems = DEFAULT_SOURCE
    suites: Annotated[int, n_suites("Suites per problem; a test in several suites is written once.")] = 1
    tests: Annotated[int, n_tests()] = 8
    coder: Annotated[
        str | None,
        agent_spec(
            "--coder", "Coder that writes the program that the tester sees.", show_default="none: the tester is blind"
        ),
    ] = None
    fill: Annotated[
        bool, Option("--fill", help="Keep a test with a wrong prediction, with the solution's value in its place.")
    ] = False
    data_source: Annotated[
        str, Option(help="Value of the column data_source; the release scores golden tests only for kodcode_light.")
    ] = "codea1-env"
    layout: Annotated[
        str, Option(help="release: the release's training rows; own: whole problems with the new golden tests.")
    ] = "release"
    seed: Annotated[int, seed_of("the agents")] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportModelOptions(Options):
    """Export a trained model as a directory that transformers can load: weights, configuration, tokenizer.

    \b
    Example:
      codea1 export model runs/first --role coder -o models/coder
    """

    source: Annotated[
        Path, Argument(help="Run folder of codea1 train, or one of its checkpoints.", autocompletion=completing.runs)
    ]
    role: Annotated[str, Option(help="coder or tester.")]
    out: Annotated[Path, output("Directory to write, new or empty.")]
