"""`codea1 eval ...`, `select`, `export-tests`: the options. What they do: `evaluating_*`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from codea1_agents.cli.options import BenchOptions, Options, Problems, TestsPerSuite

_Agent = Annotated[str, Option(help="A name (see codea1 agents) with options behind it, or module:attribute.")]
_Temperature = Annotated[
    float | None, Option(min=0, help="The agent's option of that name.", show_default="the agent's own")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationOptions(BenchOptions):
    """What the commands have whose records a folder can keep."""

    problems: Problems = "humaneval"
    without: Annotated[str, Option(help="Problems to leave out, by id, with commas between them.")] = ""
    out: Annotated[
        Path | None, Option(help="Folder of records and figures; the same command goes on there.", show_default="none")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CoderOptions(EvaluationOptions):
    """Measure a coder: pass@k (unbiased) and avg@n by the problems' golden tests, with intervals over problems.

    \b
    Example:
      codea1 eval coder --agent mutant,strength=0.5 --problems humaneval --samples 10
    """

    agent: _Agent
    samples: Annotated[int, Option("--samples", "-n", min=1, help="Replies per problem.")] = 1
    temperature: _Temperature = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TesterOptions(EvaluationOptions):
    """Measure a tester on right programs, as UnLeakedTestBench does: validity, pass@k, mut@k, cov@k, Mul.

    Figures with "fixed" in their name are means over all problems; the others over those that enter.

    \b
    Example:
      codea1 eval tester --agent boundary --problems starter --limit 10
    """

    agent: _Agent
    tests: Annotated[int, Option(min=1, max=1000, help="K, tests per problem.")] = 5
    mode: Annotated[
        str, Option(help="queries (one test at a time, those before it in view) or suite (all at once).")
    ] = "queries"
    mutants: Annotated[int, Option(min=0, help="At most so many mutants per solution; 0: none.")] = 40
    coder: Annotated[
        str | None,
        Option(help="Also measure best-of-N gain and fidelity on this coder's programs.", show_default="none"),
    ] = None
    candidates: Annotated[int, Option(min=2, help="Its programs per problem, N.")] = 8
    temperature: _Temperature = None
    seed: Annotated[int, Option(min=0, help="Of the agents, the draw of mutants and the intervals.")] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions(Options):
    """Compare two evaluations problem by problem, and say how many problems would show each difference.

    \b
    Example:
      codea1 eval compare runs/base runs/trained
    """

    before: Annotated[Path, Argument(help="Folder that codea1 eval wrote with --out.")]
    after: Annotated[Path, Argument(help="Another one, of the same kind.")]
    seed: Annotated[int, Option(min=0, help="Of the intervals.")] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectOptions(EvaluationOptions):
    """Choose among candidates by tests written blind: the one that passes most distinct tests (paper, table 5).

    Tells the share of right programs before and after the choice, and how often the tie-break decides.

    \b
    Example:
      codea1 select --coder mutant --tester boundary --problems starter -n 8 -m 4
    """

    coder: Annotated[str, Option(help="Who writes the candidates (see codea1 agents).")]
    tester: Annotated[str, Option(help="Who writes the suites, blind to the candidates.")]
    candidates: Annotated[int, Option("--candidates", "-n", min=1, help="N, per problem.")] = 16
    suites: Annotated[int, Option("--suites", "-m", min=1, help="M, per problem.")] = 16
    tests: TestsPerSuite = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportTestsOptions(BenchOptions):
    """Run a tester over problems and write its confirmed tests as golden tests (paper, table 4).

    The file is itself a source of problems: with --layout own, the same ones with other golden tests.

    \b
    Example:
      codea1 export-tests --agent boundary --problems starter --out tests.jsonl
    """

    agent: Annotated[str, Option(help="The tester (see codea1 agents).")]
    out: Annotated[Path, Option(help="File to write: Parquet if its name ends in .parquet, else JSON lines.")]
    problems: Problems = "humaneval"
    suites: Annotated[int, Option(min=1, help="Suites per problem; a test in several is written once.")] = 1
    tests: TestsPerSuite = 8
    coder: Annotated[
        str | None, Option(help="Coder whose program the tester sees.", show_default="none: it is blind")
    ] = None
    fill: Annotated[
        bool, Option("--fill", help="Keep tests with a wrong prediction, with the solution's value instead.")
    ] = False
    data_source: Annotated[
        str, Option(help="Column data_source; the release pays for golden tests of kodcode_light only.")
    ] = "codea1-env"
    layout: Annotated[
        str, Option(help="release: as its training rows; own: the whole problem with these golden tests.")
    ] = "release"
    seed: Annotated[int, Option(min=0, help="Of the agents.")] = 0
