"""Cross-play whose results are given."""

from __future__ import annotations

from typing import Any

import numpy as np

from codea1_lab.crossplay.cells import Cells, CrossPlay, GameFigures


def play_of(coder: Any, tester: Any = None, **fixed: tuple[int, ...]) -> CrossPlay:
    """Return cross-play of rewards (C, T, P), which add up to 1 without the testers'; a coder's are who survives."""
    rewards = np.stack([coder, 1 - np.array(coder) if tester is None else tester], axis=-1).tolist()
    cells = Cells.of(
        [
            [[[GameFigures(survives=c, coder_reward=c, tester_reward=t)] for c, t in pair] for pair in row]
            for row in rewards
        ]
    )
    n_coders, n_testers, n = cells.survives.shape
    names = (tuple(f"{kind}{i}" for i in range(size)) for kind, size in (("c", n_coders), ("t", n_testers)))
    problems = tuple(f"p{i:03d}" for i in range(n))
    return CrossPlay(*names, problems, np.full((n_coders, n), np.nan), cells, None, **fixed)
