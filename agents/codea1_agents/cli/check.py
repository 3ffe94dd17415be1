"""The options of `codea1 check`; `checking` runs its commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from typer import Argument, Option

from codea1_agents.cli.options import (
    REPLY_TIMEOUT_S,
    NoProgress,
    Options,
    Problems,
    ReplyTimeout,
    Sandbox,
    TestsPerSuite,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckProblemsOptions(Options):
    """Run every solution against its own golden tests and examples, several times.

    Reports wrong, flaky, slow, untested and unparsable rows, and exits with 1 if there are any.

    \b
    Example:
      codea1 check problems humaneval
    """

    source: Annotated[str, Argument(help="Problem source: a name or a path.")]
    limit: Annotated[int | None, Option(min=1, help="Check only the first so many problems.")] = None
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

    spec: Annotated[str, Argument(metavar="AGENT", help="An agent's name with its options, or module:attribute.")]
    role: Annotated[
        str, Option(help="coder or tester.", show_default="the role that the agent declares, else both")
    ] = ""
    slow: Annotated[float, Option(min=0, help="A reply that takes more seconds than this fails the check.")] = 60.0
    reply_timeout: ReplyTimeout = REPLY_TIMEOUT_S
    sandbox: Sandbox = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSandboxOptions(Options):
    """Produce every kind of outcome with small programs, twice, and print what the sandbox guarantees here.

    \b
    Example:
      codea1 check sandbox
      codea1 check sandbox --require namespaces
    """

    name: Annotated[str, Argument(help="Sandbox to check.")] = "local"
    require: Annotated[
        str, Option(metavar="TIER", help="Weakest tier to accept: namespaces, bwrap, landlock, seccomp, rlimits.")
    ] = ""


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
    limit: Annotated[int, Option(min=1, help="Use only the first so many problems.")] = 8
    prompts: Annotated[str, Option(help="Wording of the prompts: a name or a file.")] = "default"
    max_tokens: Annotated[
        int | None,
        Option(min=1, help="Longest reply, in tokens.", show_default="1024, or half of a shorter context"),
    ] = None
    tests: TestsPerSuite = 8
    seed: Annotated[int, Option(min=0, help="Seed of the replies, mutants and intervals.")] = 0
    sandbox: Sandbox = "local"
