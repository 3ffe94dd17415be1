"""`codea1 check`: the options. What they do: `checking`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from typer import Argument, Option

from codea1_agents.cli.options import NoProgress, Options, Sandbox


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckProblemsOptions(Options):
    """Run every solution against its own golden tests and examples, several times.

    Tells wrong, flaky, slow, untested and unparsable rows; exits with 1 if there is any.

    \b
    Example:
      codea1 check problems humaneval
    """

    source: Annotated[str, Argument(help="Source by name or path.")]
    limit: Annotated[int | None, Option(min=1, help="Check only so many, from the front.")] = None
    runs: Annotated[int, Option(min=1, max=1000, help="Runs of each solution; every second one in reverse order.")] = 2
    slow: Annotated[float, Option(min=0, help="Processor seconds per run above which a row is slow.")] = 5.0
    sandbox: Sandbox = "local"
    quiet: NoProgress = False


class CheckEnvOptions(Options):
    """Run the conformance tests of PettingZoo and Gymnasium on this environment, warnings as errors.

    \b
    Example:
      codea1 check env
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckAgentOptions(Options):
    """Test an agent: seeds, batches, strange observations, errors, time.

    Exits with 1 if a test fails, with 3 if the agent could not be asked.

    \b
    Example:
      codea1 check agent mutant,strength=0.3
      codea1 check agent my_module:my_function --role tester
    """

    spec: Annotated[str, Argument(metavar="AGENT", help="A name with its options, or module:attribute.")]
    role: Annotated[str, Option(help="coder or tester.", show_default="what it says that it plays, else both")] = ""
    slow: Annotated[float, Option(min=0, help="Seconds above which a single reply is a fault.")] = 60.0
    sandbox: Sandbox = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSandboxOptions(Options):
    """Obtain every kind of outcome from a small program, twice, and say what the sandbox promises here.

    \b
    Example:
      codea1 check sandbox
      codea1 check sandbox --require namespaces
    """

    name: Annotated[str, Argument(help="Which sandbox.")] = "local"
    require: Annotated[
        str, Option(metavar="TIER", help="Weakest tier to accept: namespaces, bwrap, landlock, seccomp, rlimits.")
    ] = ""
