"""Training runs: settings in TOML, a run folder that survives a crash, and the loop around `codea1_agents.train.grpo`.

Use it by `from codea1_agents.train.loop import load_training, train`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codea1_agents.train.lazy_names import lazy_names

if TYPE_CHECKING:
    from codea1_agents.train.loop.export import export_model
    from codea1_agents.train.loop.loop import resume, train
    from codea1_agents.train.settings.loading import load_training, preset_names
    from codea1_agents.train.settings.options import TrainingConfig

__all__ = ["TrainingConfig", "export_model", "load_training", "preset_names", "resume", "train"]

_PLACES = {
    "TrainingConfig": ".settings.options",
    "export_model": "export",
    "load_training": ".settings.loading",
    "preset_names": ".settings.loading",
    "resume": "loop",
    "train": "loop",
}


__getattr__ = lazy_names(__name__, _PLACES)
