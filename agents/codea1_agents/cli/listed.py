"""The options of `codea1 list`; `listing` runs its commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from typer import Argument

from codea1_agents.cli import completing
from codea1_agents.cli.options import Options


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentsOptions(Options):
    """List the registered agents with roles, options and missing packages, or show one agent and its options.

    \b
    Example:
      codea1 list agents
      codea1 list agents mutant
    """

    name: Annotated[
        str,
        Argument(
            help="An agent to show: a name or module:attribute.", show_default=False, autocompletion=completing.agents
        ),
    ] = ""


class ProblemsOptions(Options):
    """List the registered problem sources; files, folders and module:attribute are sources too.

    \b
    Example:
      codea1 list problems
    """


class RewardsOptions(Options):
    """List the rewards that installed packages have registered; --rules takes their names beside those of presets.

    \b
    Example:
      codea1 list rewards
    """


class SandboxesOptions(Options):
    """List the registered sandboxes; codea1 sandbox check NAME tests one.

    \b
    Example:
      codea1 list sandboxes
    """


class PresetsOptions(Options):
    """List the presets of codea1 train; a TOML file can extend a preset.

    \b
    Example:
      codea1 list presets
    """


class PromptsOptions(Options):
    """List the wordings of prompts; a TOML file is a wording too.

    \b
    Example:
      codea1 list prompts
    """
