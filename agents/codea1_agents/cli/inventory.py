"""The options of `codea1 agents`, `codea1 doctor` and `codea1 problems list`; `listing` runs them."""

from __future__ import annotations

from codea1_agents.cli.options import Options


class AgentsOptions(Options):
    """List the registered agents with roles, options and missing packages; module:attribute also names an agent.

    \b
    Example:
      codea1 agents
    """


class DoctorOptions(Options):
    """Show what this machine offers, what is missing, and the command that installs it.

    \b
    Example:
      codea1 doctor
    """


class ProblemsOptions(Options):
    """List the registered problem sources; files, folders and module:attribute are sources too.

    \b
    Example:
      codea1 problems list
    """
