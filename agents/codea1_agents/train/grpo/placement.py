"""Where runners and learners compute: on GPUs of their own, or each runner with a learner on one GPU.

Ray places processes by the shares of a GPU that they request, and starts runners before learners. If a runner requests
more than half of a GPU and a learner the rest, no two runners fit on one, and no two learners where a runner is. So
shares alone make pairs, on one machine and on several, also after a lost runner starts again.
"""

from __future__ import annotations

from typing import Any

from codea1_env.errors import UserError

PLACEMENTS = ("separate", "colocated")


def require_colocation(config: Any) -> None:
    """Check that runners and learners can share GPUs in pairs.

    Args:
        config: a `GRPOConfig`.

    Raises:
        UserError: they cannot.
    """
    runner, learner = config.num_gpus_per_env_runner, config.num_gpus_per_learner
    if config.overlap:
        raise UserError("placement='colocated': samplers release the GPUs while learners work; overlap must be 0")
    if not config.num_env_runners or config.num_env_runners != config.num_learners:
        raise UserError("placement='colocated': it needs as many remote runners as remote learners, at least one each")
    if (runner or learner) and not (0.5 < runner < 1 and 0 < learner <= 1 - runner + 1e-9):
        raise UserError(
            "placement='colocated': a runner needs more than half of a GPU and a learner the rest, e.g."
            " gpus_per_env_runner=0.6 and gpus_per_learner=0.4, so that Ray puts one of each on a GPU"
        )
