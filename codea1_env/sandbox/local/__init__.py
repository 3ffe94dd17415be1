"""The sandbox on this machine: sealed interpreters that fork the processes of each job."""

from codea1_env.sandbox.local.sandbox import (
    ALLOW_WEAK_VARIABLE,
    EACH_KIND,
    PACKAGES,
    REQUIRE_VARIABLE,
    TIERS,
    WEAK_TIERS,
    LocalSandbox,
    shared_sandbox,
)

__all__ = [
    "ALLOW_WEAK_VARIABLE",
    "EACH_KIND",
    "PACKAGES",
    "REQUIRE_VARIABLE",
    "TIERS",
    "WEAK_TIERS",
    "LocalSandbox",
    "shared_sandbox",
]
