"""The hyperparameters of GRPO. Each field states a name, a type, a range, a default and a meaning, once.

`GRPOConfig.training` and `.learners` have these fields as parameters. The tables `[rollout]`, `[training]` and
`[cluster]` of a settings file are these dataclasses, too (`train.settings.options`). To add a hyperparameter, add a
field here and use it. The defaults are those of the paper's hyperparameter table. `train.declared` checks ranges where
values come in.
"""
# Annotations are evaluated here, as pydantic reads them through derived classes in other modules.

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from codea1_agents.train.declared import Count, CountOrZero, Finite, Flag, NotNegative, Positive
from codea1_agents.train.grpo.advantages import AdvantageForm, ReturnForm
from codea1_env.agent import Role
from codea1_env.errors import UserError
from codea1_env.rounds.episodes import MAX_CYCLES
from codea1_env.rounds.rounds import SuitesPer

_TRUNCATIONS = ("top_p", "top_k", "min_p")

CreditForm = Literal["reply", "test", "block"]
OtherText = Literal["nothing", "mean"]


@dataclass(frozen=True)
class Shape:
    """The size of the groups of one problem, and which of them train."""

    n_candidates: Count = 8
    """Candidates per problem (N)."""
    n_suites: CountOrZero = 8
    """Suites per candidate, or per problem (M). 0: there is no tester."""
    suites_per: SuitesPer = SuitesPer.CANDIDATE
    """`candidate`: each suite is written for one candidate. `problem`: each suite tests all candidates."""
    n_kept: Count = 1
    """Candidates per problem whose suites train the tester (l in the paper)."""
    keep_zero_std_groups: Flag = False
    """Whether groups of equal rewards train: with advantages 0, in the divergence and in the mean over tokens. The
    official code drops no group."""
    turns: Annotated[int, Field(ge=1, le=MAX_CYCLES, strict=True)] = 1
    """Rounds per problem. From the second one on, a coder repairs what failed in one of its program's suites."""
    problems_at_once: Count = 8
    """Problems that a runner generates together while the sandbox judges others."""

    @property
    def n_groups(self) -> int:
        """Groups of suites (G): one per candidate, or one."""
        return self.n_candidates if self.suites_per is SuitesPer.CANDIDATE else 1


@dataclass(frozen=True)
class RolloutSettings(Shape):
    """What one iteration samples."""

    problems_per_step: Count = 256
    """Problems per iteration."""
    temperature: Positive = 1.0
    """Sampling temperature of training. There is no `top_p` or `top_k`: the loss trains the whole distribution."""
    sampling_batch_size: Count = 64
    """Most responses sampled at a time."""
    overlap: Annotated[int, Field(ge=0, le=1, strict=True)] = 0
    """1: remote runners sample the next iteration while the learners work, with weights that are one iteration old."""


@dataclass(frozen=True)
class AdvantageSettings:
    """How the advantages of testers compare the suites of a group. Those of coders compare rewards, or returns."""

    advantages: AdvantageForm = "sum"
    """`sum`: by their rewards. `decoupled`: by each part of them. `conditioned`: by validity, and the valid ones by
    adversity (`advantages.advantages_by_parts`)."""
    valid_from: Annotated[float, Field(gt=0, le=1, strict=True)] = 0.5
    """Smallest validity of a suite that `conditioned` calls valid. 1: all of its K tests have right answers."""
    credit: CreditForm = "reply"
    """What tokens of a suite are paid for. `reply`: the suite's reward. `test`: their own test. `block`: those of an
    input for whether the program fails it, those of an answer for whether it is right (`credit`)."""
    other_text: OtherText = "nothing"
    """With `credit` by `test` or `block`: what text outside of tests is paid for: nothing, or the mean of its suite."""
    turn_return: ReturnForm = "sum"
    """With several turns, what the advantages of coders compare: the sum of a trajectory's rewards, or the last one."""
    turn_discount: Annotated[float, Field(gt=0, le=1, strict=True)] = 1.0
    """With `turn_return = "sum"`: factor of each turn's reward for the one of the turn before."""


@dataclass(frozen=True)
class LossSettings(AdvantageSettings):
    """Constants of the loss, and how the advantages in it are computed."""

    clip_low: Annotated[float, Field(gt=0, lt=1, strict=True)] = 0.2
    """The ratio of probabilities is clipped below at 1 - clip_low."""
    clip_high: Positive = 0.28
    """The ratio of probabilities is clipped above at 1 + clip_high."""
    dual_clip: Annotated[float, Field(gt=1, strict=True)] = 10.0
    """The loss of a token with a negative advantage is at most dual_clip times the advantage's size."""
    kl_coeff: NotNegative = 0.001
    """Weight of the divergence from the model as it was loaded. 0: no reference model is kept."""
    entropy_coeff: Finite = 0.0
    """Weight of the entropy bonus."""


@dataclass(frozen=True)
class UpdateSettings(LossSettings):
    """How one iteration updates the weights.

    Raises:
        UserError: weights by importance without log-probabilities of the learner.
    """

    lr: Positive = 1e-6
    """Highest learning rate."""
    warmup_steps: CountOrZero = 10
    """Iterations over which the learning rate rises linearly."""
    epochs_per_step: Count = 1
    """Passes over the responses of an iteration."""
    minibatches_per_epoch: Count = 2
    """Optimiser steps per pass."""
    micro_batch_size: CountOrZero = 8
    """Responses per forward pass. 0: the whole minibatch. It bounds memory and does not change results."""
    micro_batch_tokens: CountOrZero = 0
    """Tokens per forward pass, prompts and padding included; 0: any number."""
    prompt_once: Flag = True
    """Whether the learner computes a prompt once for all responses to it. Without `packing` it has no effect with
    gradient checkpointing, and for models whose cache cannot be repeated. It does not change results."""
    packing: Flag = False
    """Whether a forward pass is one row without padding, in which each response sees its own prompt only. It does not
    change results. Its mask takes two bytes per pair of tokens: bound it by `micro_batch_tokens`."""
    logits_chunk_tokens: CountOrZero = 256
    """Response tokens whose logits exist at the same time; 0: all."""
    old_log_probs: Literal["sampler", "learner"] = "sampler"
    """Whose log-probabilities the ratio of the loss starts from. With `learner`, a sampler of other precision does not
    move it."""
    tis_cap: NotNegative = 0.0
    """With `old_log_probs = "learner"`: a token's loss is weighed by its probability for the learner over that for the
    sampler, at most `tis_cap`. 0: by 1."""
    weight_decay: NotNegative = 0.1
    """Of AdamW."""
    grad_clip: Positive | None = 1.0
    """Largest norm of the gradient. None: any."""

    def __post_init__(self) -> None:
        if self.tis_cap and self.old_log_probs != "learner":
            raise UserError(f"tis_cap needs old_log_probs = 'learner', got {self.old_log_probs!r}")


@dataclass(frozen=True)
class LearnerSettings:
    """How the models are spread over learners, and where these compute. It changes results by rounding only."""

    sharding: Literal["auto", "full", "none"] = "auto"
    """`full`: each learner holds a part of parameters, gradients and AdamW's states (FSDP2). `none`: all (DDP). `auto`:
    a part, with two learners and more, if the models have more than 10^9 parameters, a common base once."""
    placement: Literal["separate", "colocated"] = "separate"
    """`colocated`: each runner shares a GPU with a learner, and its engines release their memory while that works."""
    offload_optimizer: Flag = False
    """Whether the states of AdamW are in the host's memory while learners do not work."""
    offload_parameters: Flag = False
    """Whether sharded parameters, gradients and the states of AdamW are always in the host's memory, where AdamW
    computes. A layer is on the GPU while it is gathered."""
    learner_timeout_s: Positive = 1800.0
    """Seconds that learners wait for one of them, which is then lost."""


@dataclass(frozen=True)
class LengthSettings:
    """Longest texts by role, in tokens. A settings file has them under `agents`."""

    max_tokens: Mapping[Role, Count] = field(default_factory=lambda: {"coder": 4096, "tester": 4096})
    """Longest reply."""
    max_prompt_tokens: Mapping[Role, CountOrZero] = field(default_factory=lambda: {"coder": 4096, "tester": 8192})
    """Longest prompt. The model gets no longer one; that rollout is masked."""


@dataclass(frozen=True)
class RateSettings:
    """What changes the learning rate. A settings file has `agents.ROLE.lr` and `training.lr_schedule` instead."""

    lr_by_module: Mapping[str, Positive] = field(default_factory=dict)
    """Learning rates of single modules, in place of `lr`."""
    total_steps: Count | None = None
    """Iterations after which a cosine brings the learning rate to 0. None: it stays constant after the warm-up."""


def require_groups(roles: Iterable[str], n_candidates: int, n_suites: int, credit: CreditForm) -> None:
    """Check that the replies of each role that learns have others to be compared with.

    Raises:
        UserError: a group has one member, so the role would learn nothing.
    """
    sizes = {"coder": ("n_candidates", n_candidates), "tester": ("n_suites", n_suites)}
    for role in sorted(roles):
        setting, size = sizes[role]
        if size == 1 and (role == "coder" or credit == "reply"):
            raise UserError(
                f"{setting}=1: a group of one has nothing to be compared with, so the {role} learns nothing"
            )


def refuse_truncation(names: Iterable[str]) -> None:
    """Raise UserError if a name is that of a truncated sampling, which training does not have."""
    for name in names:
        if name in _TRUNCATIONS:
            raise UserError(
                f"{name}: training samples the whole distribution at its temperature, as the loss needs "
                "log-probabilities of the distribution that was sampled"
            )
