"""The options of `codea1 eval ...`, `select` and `export-tests`; `evaluating_*` run them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from codea1_agents.cli.options import DEFAULT_SOURCE, Options, Problems, SessionOptions, TestsPerSuite

_Agent = Annotated[str, Option(help="An agent's name (see codea1 agents) with its options, or module:attribute.")]
_Temperature = Annotated[
    float | None, Option(min=0, help="Sampling temperature of the agent.", show_default="the agent's own")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationOptions(SessionOptions):
    """The options of the commands that can store their records in a folder."""

    problems: Problems = DEFAULT_SOURCE
    without: Annotated[str, Option(help="Ids of problems to leave out, separated by commas.")] = ""
    out: Annotated[
        Path | None,
        Option(
            "--out", "-o", help="Folder for records and figures; the same command continues in it.", show_default="none"
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CoderOptions(EvaluationOptions):
    """Measure a coder by golden tests: pass@k (unbiased) and avg@n, with intervals over problems.

    \b
    Example:
      codea1 eval coder --agent mutant,strength=0.5 --problems humaneval --samples 10
    """

    agent: _Agent
    samples: Annotated[int, Option("--samples", "-n", min=1, help="Replies per problem.")] = 1
    temperature: _Temperature = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TesterOptions(EvaluationOptions):
    """Measure a tester on right programs, as in UnLeakedTestBench: validity, pass@k, mut@k, cov@k, Mul.

    Figures with "fixed" in their name are means over all problems; the others leave some problems out.

    \b
    Example:
      codea1 eval tester --agent boundary --problems starter --limit 10
    """

    agent: _Agent
    tests: Annotated[int, Option(min=1, max=1000, help="K, tests per problem.")] = 5
    mode: Annotated[
        str, Option(help="queries (one test per reply, with the former tests in the prompt) or suite (all at once).")
    ] = "queries"
    mutants: Annotated[int, Option(min=0, help="Most mutants per solution; 0: none.")] = 40
    coder: Annotated[
        str | None,
        Option(help="Also measure best-of-N gain and fidelity on this coder's programs.", show_default="none"),
    ] = None
    candidates: Annotated[int, Option(min=2, help="N, programs of --coder per problem.")] = 8
    temperature: _Temperature = None
    seed: Annotated[int, Option(min=0, help="Seed of the agents, the sampling of mutants and the intervals.")] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions(Options):
    """Compare two evaluations problem by problem, and estimate how many problems would show each difference.

    \b
    Example:
      codea1 eval compare runs/base runs/trained
    """

    before: Annotated[Path, Argument(help="Folder that codea1 eval wrote with --out.")]
    after: Annotated[Path, Argument(help="Another such folder, of the same kind.")]
    seed: Annotated[int, Option(min=0, help="Seed of the intervals.")] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectOptions(EvaluationOptions):
    """Choose among candidates by blind tests: the candidate that passes most distinct tests wins (paper, table 5).

    Prints the share of right programs before and after the choice, and how often the tie-break decides.

    \b
    Example:
      codea1 select --coder mutant --tester boundary --problems starter -n 8 -m 4
    """

    coder: Annotated[str, Option(help="Agent that writes the candidates (see codea1 agents).")]
    tester: Annotated[str, Option(help="Agent that writes the suites without seeing the candidates.")]
    candidates: Annotated[int, Option("--candidates", "-n", min=1, help="N, per problem.")] = 16
    suites: Annotated[int, Option("--suites", "-m", min=1, help="M, per problem.")] = 16
    tests: TestsPerSuite = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportTestsOptions(SessionOptions):
    """Run a tester over problems and write its confirmed tests as golden tests (paper, table 4).

    The file is itself a problem source: with --layout own, the same problems with the new golden tests.

    \b
    Example:
      codea1 export-tests --agent boundary --problems starter --out tests.jsonl
    """

    agent: Annotated[str, Option(help="The tester (see codea1 agents).")]
    out: Annotated[
        Path, Option("--out", "-o", help="File to write: Parquet if its name ends in .parquet, else JSON lines.")
    ]
    problems: Problems = DEFAULT_SOURCE
    suites: Annotated[int, Option(min=1, help="Suites per problem; a test in several suites is written once.")] = 1
    tests: TestsPerSuite = 8
    coder: Annotated[
        str | None,
        Option(help="Coder that writes the program that the tester sees.", show_default="none: the tester is blind"),
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
    seed: Annotated[int, Option(min=0, help="Seed of the agents.")] = 0
