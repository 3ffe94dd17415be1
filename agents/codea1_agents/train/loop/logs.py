"""Logs of figures, apart from `metrics.jsonl`: TensorBoard; Weights & Biases and MLflow if the settings name them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

from codea1_agents.train.loop.options import TrainingConfig
from codea1_env.errors import UserError, extra_needed
from codea1_env.secret import without_secrets


class Log(Protocol):
    """Receives the figures of steps."""

    def write(self, step: int, figures: Mapping[str, float]) -> None:
        """Write the figures of a step; their names have slashes."""

    def close(self) -> None:
        """Write everything and close."""


@contextmanager
def opened_logs(config: TrainingConfig, folder: Path, done: int) -> Iterator[list[Log]]:
    """Open the logs that the settings of a run name.

    Args:
        config: of the run.
        folder: of the run.
        done: steps done so far; TensorBoard drops events of later steps.

    Raises:
        MissingExtra: a package is not installed.
        UserError: a log cannot be opened, e.g. because its server refuses the key.
    """
    options = config.logging
    with ExitStack() as stack:
        logs: list[Log] = []

        def opened(log: Log) -> None:
            stack.callback(log.close)  # at once: the next one may not open
            logs.append(log)

        if options.tensorboard:
            opened(_TensorBoard(folder / "tensorboard", done))
        if options.wandb:
            opened(_Wandb(options.wandb, config, folder))
        if options.mlflow:
            opened(_MLflow(options.mlflow, config, folder))
        yield logs


def flat(line: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of a step's line as `part/name`, and the number of its alarms."""
    found = {f"{part}/{name}": value for part in ("figures", "times") for name, value in line.get(part, {}).items()}
    found |= {f"evaluation/{name}": value for name, value in line.get("evaluation", {}).items()}
    if "alarms" in line:
        found["alarms"] = float(len(line["alarms"]))
    return found


class _TensorBoard:
    def __init__(self, folder: Path, done: int) -> None:
        with extra_needed("logging.tensorboard", "rllib"):
            from tensorboardX import SummaryWriter  # noqa: PLC0415  heavy
        self._writer = SummaryWriter(str(folder), purge_step=done + 1, max_queue=1000, flush_secs=10)

    def write(self, step: int, figures: Mapping[str, float]) -> None:
        for name, value in figures.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        self._writer.close()


class _Wandb:
    def __init__(self, project: str, config: TrainingConfig, folder: Path) -> None:
        with extra_needed("logging.wandb", "wandb"):
            import wandb  # noqa: PLC0415  an extra
        try:
            self._run = wandb.init(
                project=project,
                name=config.run.name or folder.name,
                id=folder.resolve().name,
                resume="allow",
                dir=str(folder),
                config=config.model_dump(mode="json"),
            )
        except wandb.Error as error:  # e.g. no key, or no network
            raise UserError(f"logging.wandb: {without_secrets(' '.join(str(error).split()))}") from error

    def write(self, step: int, figures: Mapping[str, float]) -> None:
        self._run.log(dict(figures), step=step)

    def close(self) -> None:
        self._run.finish()


class _MLflow:
    def __init__(self, experiment: str, config: TrainingConfig, folder: Path) -> None:
        with extra_needed("logging.mlflow", "mlflow"):
            import mlflow  # noqa: PLC0415  an extra
        self._mlflow = mlflow
        try:
            mlflow.set_experiment(experiment)
            mlflow.start_run(run_name=config.run.name or folder.name)
            mlflow.log_dict(config.model_dump(mode="json"), "config.json")
        except mlflow.exceptions.MlflowException as error:  # e.g. a server that it cannot write to
            raise UserError(f"logging.mlflow: {without_secrets(' '.join(str(error).split()))}") from error

    def write(self, step: int, figures: Mapping[str, float]) -> None:
        # MLflow's names hold no colon or comma, which an opponent's options may have.
        named = {"".join(c if c.isalnum() or c in "_-./ " else "_" for c in name): v for name, v in figures.items()}
        self._mlflow.log_metrics(named, step=step)

    def close(self) -> None:
        self._mlflow.end_run()
