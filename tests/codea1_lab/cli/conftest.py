"""The fixtures of the command line's tests, which the lab's commands use as well."""

from tests.codea1_agents.cli.conftest import *  # noqa: F403
