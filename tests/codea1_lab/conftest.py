"""The fixtures of the agents' tests, which the lab's use as well."""

from tests.codea1_agents.conftest import *  # noqa: F403
