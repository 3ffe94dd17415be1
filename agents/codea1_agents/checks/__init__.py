"""Checks of agents, environments, sandboxes and machines; `codea1 check` runs them."""
