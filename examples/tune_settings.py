"""Search settings of GRPO with Ray Tune: a grid of learning rates, on the toy models of train_with_rllib.py.

python tune_settings.py

Every value of the grid is a trial in a process of its own, with the same seed. A real search passes folders of models.
"""

import tempfile
from pathlib import Path

import ray
from ray import tune
from train_with_rllib import toy_config

from codea1_agents.train.grpo import GRPO

RATES = (0.02, 0.0002)
STEPS = 8


def main(place):
    config = toy_config(place)
    config.training(lr=tune.grid_search(RATES))
    config.resources(num_cpus_for_main_process=1)  # of a trial: as many run at once as there are cores
    results = tune.Tuner(
        GRPO,
        param_space=config,
        tune_config=tune.TuneConfig(metric="env_runners/valid_candidates", mode="max"),
        run_config=tune.RunConfig(stop={"training_iteration": STEPS}, storage_path=str(place / "trials"), verbose=1),
    ).fit()
    for result in results:
        figures = result.metrics["env_runners"]
        print(f"lr {result.config['lr']:g}  valid_candidates {figures['valid_candidates']:.2f}")
    print(f"best lr {results.get_best_result().config['lr']:g}")


if __name__ == "__main__":
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
