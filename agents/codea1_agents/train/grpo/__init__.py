"""GRPO on RLlib: two language models train against each other in one environment.

In one iteration, each problem of a batch is an episode of `code_a1_v0.group_env`. N coders write one program each. M
testers write one suite each for every program that loads. The sandbox judges many episodes together. GRPO then compares
the replies of each group. Both roles may be one model (self-play). Either role may be frozen, scripted or any agent::

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
    path = algorithm.save_to_path()  # weights, optimisers, Mistake Book, position in the data
    again = GRPO.from_checkpoint(path)

It is an RLlib algorithm like any other: `tune.Tuner(GRPO, param_space=config)`, callbacks, evaluation, own learners and
modules and fault tolerance work; settings of RLlib that would change nothing are refused (docs/training.md).
`environment(env=...)` takes a class derived from `code_a1_v0.group_env`, or a name that `ray.tune.register_env` knows.
The rewards are those that its `step` returns. `multi_agent(policy_mapping_fn=...)` maps `coder_*` and `tester_*` to
modules. `GRPO` adds:

- **Results do not depend on the layout.** Each response has its own random numbers, and the loss is a mean over the
  tokens of the whole batch. Runners, learners and micro-batches change the weights by rounding only.
- **Failures of the sandbox are no evidence.** A rollout without a verdict is masked; it never gets a reward of 0.
  Groups of equal rewards are counted, and dropped unless `keep_zero_std_groups`. Without any group, no step is made.
  Problems too long for a model are skipped and counted in `problems_skipped`. The log and `GRPO.last_step.skipped` name
  them with the reason.
- **Errors end a run with one sentence**: `train.failures.NotFinite` (the weights are those before the step) and
  `LearnerLost` (all learners have ended). A lost runner is no error: other runners roll out its problems.

`examples/train_with_rllib.py` is a complete script. `codea1 train` adds settings files and run folders
(docs/training.md). Memory and time at scale: docs/training-scale.md.

The modules, in the order of the data of one iteration:

- `config` (`GRPOConfig`), `hyperparameters`, `settings`, `rllib_settings`: what one can set.
- `algorithm` (`GRPO`, an RLlib `Algorithm`): the iteration. `runners`: what it has its runners do.
- `env_runner` (`TreeEnvRunner`), `rollout`, `sampling`, `vllm_engine`: a group of replies to each problem.
- `advantages`, `batch`: what each reply is worth, and in which optimiser step a learner sees it.
- `learner_group`, `learner` (`GRPOTorchLearner`), `rl_module` (`CausalLMModule`), `causal_models`, `loss`: the update.
- `weights`, `vllm_worker`: the new weights on their way to the samplers, and the proof that they arrived.
- `metrics`, `progress`: what is reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codea1_agents.train.lazy_names import lazy_names

if TYPE_CHECKING:
    from codea1_agents.train.grpo.algorithm import GRPO, GRPOConfig
    from codea1_agents.train.grpo.settings import LoraSettings, ModelSettings

__all__ = ["GRPO", "GRPOConfig", "LoraSettings", "ModelSettings"]

_PLACES = {
    "GRPO": "algorithm",
    "GRPOConfig": "algorithm",
    "LoraSettings": "settings",
    "ModelSettings": "settings",
}


__getattr__ = lazy_names(__name__, _PLACES)
