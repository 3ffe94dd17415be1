"""Checks of agents, environments, sandboxes and machines; `codea1 check` and `codea1 check machine` run them."""
