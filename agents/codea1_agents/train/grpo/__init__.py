"""GRPO on RLlib: two language models trained against each other in one environment.

One iteration: every problem of a batch is an episode of `code_a1_v0.group_env`, in which N coders write a program each
and M testers write suites for each that loads; the sandbox judges many episodes together, and each role learns from how
its replies compare within their group. Both roles may be one model (self-play); either may be frozen, scripted, or any
agent at all::

    from codea1_agents.train.grpo import GRPO, GRPOConfig

    config = (
        GRPOConfig()  # the paper's defaults
        .environment(rules="fixed", tester_view="white_box")
        .problems("humaneval")
        .llm_agents(coder="path/to/coder", tester="path/to/tester")
        .training(lr=1e-6, problems_per_step=16, max_tokens={"coder": 512, "tester": 512})
        .env_runners(num_env_runners=2)
        .learners(num_learners=1, num_gpus_per_learner=1)
    )
    algorithm = config.build_algo()
    figures = algorithm.train()["env_runners"]  # rewards and their parts, validity, kill rate, lengths, ...
    path = algorithm.save_to_path()  # weights, optimisers, Mistake Book, place in the data
    again = GRPO.from_checkpoint(path)

It is an RLlib algorithm like any other: `tune.Tuner(GRPO, param_space=config)`, callbacks, fault tolerance. The
environment that is trained on is the one that is played: `environment(env=...)` takes a class derived from
`code_a1_v0.group_env`, or what `ray.tune.register_env` knows by a name, and rewards are what its `step` returns.
`multi_agent(policy_mapping_fn=...)` says which module plays `coder_*` and which `tester_*`. It adds:

- **Results do not depend on the layout.** A response's randomness is its own, the loss is a mean over the tokens of
  the whole batch: neither runners, learners nor micro-batches change the weights beyond rounding.
- **Our failures are no evidence.** What the sandbox or a lost process leaves open is masked, never a reward of 0.
  Groups without spread are counted, and dropped unless `keep_flat_groups`; where nothing is left, no step is made.
  Problems too long for a model are skipped, counted in `problems_skipped`, and named with their reason in the log and
  in `GRPO.last_step.skipped`.
- **Errors end a run with one sentence**: `failures.NotFinite` (the weights are as before the step) and
  `failures.LearnerLost`. A lost runner is no error: others roll out its problems.

A complete script is `examples/train_with_rllib.py`; `codea1 train` wraps all of it in files and run folders
(docs/training.md). Parts: `group_envs` makes environments, `trees` rolls out in them, `grouping` computes advantages,
`batches` plans an update, `loss` and `learner` make it, `algorithm` ties them together. Memory and time at scale:
docs/training-scale.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codea1_agents.train.lazy_names import lazy_names

if TYPE_CHECKING:
    from codea1_agents.train.grpo.algorithm import GRPO, GRPOConfig
    from codea1_agents.train.grpo.model_settings import LoraSettings, ModelSettings

__all__ = ["GRPO", "GRPOConfig", "LoraSettings", "ModelSettings"]

_PLACES = {
    "GRPO": "algorithm",
    "GRPOConfig": "algorithm",
    "LoraSettings": "model_settings",
    "ModelSettings": "model_settings",
}


__getattr__ = lazy_names(
    __name__, _PLACES, needs=("ray", "torch", "transformers"), what="training with GRPO", extra="rllib"
)
