"""The options of `codea1 check`; `checking` runs its commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from typer import Argument, Option

from codea1_agents.cli import completing
from codea1_agents.cli.options import (
    REPLY_TIMEOUT_S,
    Limit,
    NoProgress,
    Options,
    Problems,
    Prompts,
    ReplyTimeout,
    Sandbox,
    n_tests,
    only_first,
    seed_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckProblemsOptions(Options):
    """Run every solution against its own golden tests and examples, several times.

    Reports wrong, flaky, slow, untested and unparsable rows, and exits with 1 if there are any.

    \b
    Example:
      codea1 check problems humaneval
    """

    source: Annotated[str, Argument(help="Problem source: a name or a path.", autocompletion=completing.sources)]
    limit: Limit = None
    runs: Annotated[
        int, Option(min=1, max=1000, help="Runs of each solution; every second run has its tests in reverse order.")
    ] = 2
    slow: Annotated[float, Option(min=0, help="Processor seconds per run above which a row is slow.")] = 5.0
    sandbox: Sandbox = "local"
    quiet: NoProgress = False


class CheckEnvOptions(Options):
    """Run the conformance tests of PettingZoo and Gymnasium on this environment; warnings count as errors.

    \b
    Example:
      codea1 check env
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckAgentOptions(Options):
    """Test an agent: seeds, batches, unusual observations, errors, time.

    Exits with 1 if a test fails, with 3 if the agent was unavailable.

    \b
    Example:
      codea1 check agent mutant,strength=0.3
      codea1 check agent my_module:my_function --role tester
    """

    spec: Annotated[
        str,
        Argument(
            metavar="AGENT",
            help="An agent's name with its options, or module:attribute.",
            autocompletion=completing.agents,
        ),
    ]
    role: Annotated[
        str, Option(help="coder or tester.", show_default="the role that the agent declares, else both")
    ] = ""
    slow: Annotated[float, Option(min=0, help="A reply that takes more seconds than this fails the check.")] = 60.0
    reply_timeout: ReplyTimeout = REPLY_TIMEOUT_S
    sandbox: Sandbox = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckModelOptions(Options):
    """Check a language model before training: what it is, what it replies, how good it is, what to do next.

    It trains nothing. The model writes one program and one suite for each of a few problems.

    \b
    Example:
      codea1 check model Qwen/Qwen2.5-Coder-0.5B-Instruct
      codea1 check model models/mine -p my.jsonl --max-tokens 512
    """

    model: Annotated[str, Argument(help="Folder or hub id of a causal language model.")]
    problems: Problems = "starter"
    limit: Annotated[int, only_first()] = 8
    prompts: Prompts = "default"
    max_tokens: Annotated[
        int | None,
        Option(min=1, help="Longest reply, in tokens.", show_default="1024, or half of a shorter context"),
    ] = None
    tests: Annotated[int, n_tests()] = 8
    seed: Annotated[int, seed_of("the replies, mutants and intervals")] = 0
    sandbox: Sandbox = "local"


class CheckMachineOptions(Options):
    """Show what this machine offers, what is missing, and the command that installs it.

    \b
    Example:
      codea1 check machine
    """
