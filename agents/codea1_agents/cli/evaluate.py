"""The options of `codea1 eval`; `evaluating_*` run its commands."""

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
    how_many,
    n_suites,
    n_tests,
    output,
    seed_of,
)

_Agent = Annotated[
    str, agent_spec("--agent", "An agent's name (see codea1 list agents) with its options, or module:attribute.")
]
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
        output("Folder for records and figures; the same command continues in it.", show_default="none"),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CoderOptions(EvaluationOptions):
    """Measure a coder by golden tests: pass@k (unbiased) and avg@n, with intervals over problems.

    \b
    Example:
      codea1 eval coder --agent mutant,strength=0.5 --problems humaneval --samples 10
    """

    agent: _Agent
    samples: Annotated[int, how_many("--samples", "Replies per problem.")] = 1
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
    tests: Annotated[int, n_tests("K, tests per problem.")] = 5
    mode: Annotated[
        str, Option(help="queries (one test per reply, with the former tests in the prompt) or suite (all at once).")
    ] = "queries"
    mutants: Annotated[int, Option(min=0, help="Most mutants per solution; 0: none.")] = 40
    coder: Annotated[
        str | None,
        agent_spec(
            "--coder", "Also measure best-of-N gain and fidelity on this coder's programs.", show_default="none"
        ),
    ] = None
    candidates: Annotated[int, how_many("--candidates", "N, programs of --coder per problem; at least 2.")] = 8
    temperature: _Temperature = None
    seed: Annotated[int, seed_of("the agents, the sampling of mutants and the intervals")] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions(Options):
    """Compare two evaluations problem by problem, and estimate how many problems would show each difference.

    \b
    Example:
      codea1 eval compare runs/base runs/trained
    """

    before: Annotated[Path, Argument(help="Folder that codea1 eval wrote with --out.", autocompletion=completing.runs)]
    after: Annotated[Path, Argument(help="Another such folder, of the same kind.", autocompletion=completing.runs)]
    seed: Annotated[int, seed_of("the intervals")] = 0
    out: Annotated[Path | None, output("File for the comparison, as JSON.", show_default="none")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectOptions(EvaluationOptions):
    """Choose among candidates by blind tests: the candidate that passes most distinct tests wins (paper, table 5).

    Prints the share of right programs before and after the choice, and how often the tie-break decides.

    \b
    Example:
      codea1 eval select --coder mutant --tester boundary --problems starter -n 8 -m 4
    """

    coder: Annotated[str, agent_spec("--coder", "Agent that writes the candidates (see codea1 list agents).")]
    tester: Annotated[str, agent_spec("--tester", "Agent that writes the suites without seeing the candidates.")]
    candidates: Annotated[int, how_many("--candidates", "N, per problem.")] = 16
    suites: Annotated[int, n_suites("M, per problem.")] = 16
    tests: Annotated[int, n_tests()] = 8
