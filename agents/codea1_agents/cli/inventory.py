"""`codea1 agents`, `codea1 doctor` and `codea1 problems list`: the options. What they do: `listing`."""

from __future__ import annotations

from codea1_agents.cli.options import Options


class AgentsOptions(Options):
    """List the registered agents: whom they play, their options, what is missing here; module:attribute also is one.

    \b
    Example:
      codea1 agents
    """


class DoctorOptions(Options):
    """Tell what this machine offers, what is missing, and the line that installs it.

    \b
    Example:
      codea1 doctor
    """


class ProblemsOptions(Options):
    """List the registered sources of problems; files, folders and module:attribute also are sources.

    \b
    Example:
      codea1 problems list
    """
