"""The name under which checkpoints of before `rules.rewards` held these classes pickle them; import from there."""

from codea1_env.rules.rewards import MASKED, CandidateRewards, Reward, RewardPart

__all__ = ["MASKED", "CandidateRewards", "Reward", "RewardPart"]
