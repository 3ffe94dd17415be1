"""The configuration of a run that is not played, and the published schema of records."""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

from codea1_agents.play.summary import Summary, Tally
from codea1_env.rules.ruleset import preset
from codea1_env.runs.config import RunConfig
from codea1_env.runs.records import SCHEMA_VERSION, EpisodeRecord
from codea1_env.sandbox.interface import Limits

EPISODE_SCHEMA: dict[str, Any] = json.loads(
    files("codea1_env.runs").joinpath(f"schemas/episode_v{SCHEMA_VERSION}.json").read_text()
)


def run_config(**changes: Any) -> RunConfig:
    """Return the configuration of a short run with some fields changed."""
    fields: dict[str, Any] = {
        "problems": "starter",
        "problems_digest": "abc",
        "n_problems": 1,
        "coder": "mutant",
        "tester": "fuzz",
        "episodes": 4,
        "rounds": 1,
        "seed": 0,
        "tester_view": "white_box",
        "sandbox": "local",
        "limits": Limits(),
        "rules": preset("fixed"),
        "versions": {},
    }
    return RunConfig(**fields | changes)


def summarise(records: Iterable[EpisodeRecord], *, tests_per_suite: int, seed: int = 0) -> Summary:
    """Return the figures of these episodes, in the order of play."""
    tally = Tally(tests_per_suite=tests_per_suite)
    for record in records:
        tally.add(record)
    return tally.summary(seed=seed)
