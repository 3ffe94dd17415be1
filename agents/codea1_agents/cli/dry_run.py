"""Runs `codea1 train --dry-run`: prints what a run needs, by arithmetic. No model is loaded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import typer

from codea1_agents.cli.boundary import NOT_OK
from codea1_agents.cli.console import Page, new_table
from codea1_agents.train.settings.options import TrainingConfig
from codea1_agents.train.settings.run_parts import require_game
from codea1_agents.train.sizing.devices import parse_devices
from codea1_agents.train.sizing.fitting import advice, devices_of
from codea1_agents.train.sizing.run_size import LEARNS_AT, SAMPLES_AT, Process, RunSize, size_of
from codea1_env.errors import UserError


def show_dry_run(config: TrainingConfig, on: str, page: Page) -> None:
    """Print memory by process and GPU, tokens and minutes of a step, and whether the run fits.

    Args:
        config: the settings of the run.
        on: the GPUs, as text; empty: those of this machine.
        page: receives the output.

    Raises:
        UserError: the settings are not a valid run or game, or a model's shape or the GPUs are unknown.
        typer.Exit: the run does not fit (1).
    """
    require_game(config)
    devices = parse_devices(on) if on else devices_of(config)
    if devices is None:
        raise UserError("the GPUs of this run cannot be examined from here: name them, e.g. --on '8 x H100 80GB'")
    size = size_of(config, devices)
    sentence = advice(config, size)
    page.say("By arithmetic; nothing was run. GB are 10^9 bytes.")
    page.show(_processes_table(size))
    page.show(_devices_table(size))
    page.say(_step_text(size))
    page.say(
        f"A checkpoint takes {_gb(size.checkpoint_bytes)} GB of the disk, the {size.n_checkpoints} at a time (with one"
        f" that is being written) {_gb(size.n_checkpoints * size.checkpoint_bytes)}."
    )
    page.say(sentence[0].upper() + sentence[1:] + ".")
    page.finish(**size.to_json(), advice=sentence)
    if size.faults:
        raise typer.Exit(NOT_OK)


def _processes_table(size: RunSize) -> Any:
    """Return the parts of the memory of the processes; those of one kind are alike."""
    kinds: dict[str, Process] = {}
    for each in size.placement.processes:
        kinds.setdefault(each.kind, each)
    numbers = Counter(each.kind for each in size.placement.processes)
    rows = []
    for kind, process in kinds.items():
        device = f"GPU, {process.gpus:g} of it each" if process.gpus else "host"
        for part in (each for each in process.parts if each.n_bytes):
            place = "host" if part.is_on_host else device
            name = f"{part.name} (at the start only)" if part.when == "start" else part.name
            rows.append((f"{numbers[kind]} x {kind}", place, name, _gb(part.n_bytes)))
    return new_table(("process", "on", "part", "GB each"), rows, right=(3,), whole=(0, 1, 2))


def _devices_table(size: RunSize) -> Any:
    placement, devices = size.placement, size.devices
    rows = [
        (f"GPU {number}", _names(held), _gb(placement.gpu_bytes(number)), f"{devices.gpu.memory_gb:g}")
        for number, held in enumerate(placement.by_gpu)
        if devices.gpu
    ]
    on_host = [process for process in placement.processes if not process.gpus]
    host = f"{devices.host_gb:.0f}" if devices.host_gb else "unknown"
    rows.append(("host, at the start", _names(on_host), _gb(placement.start_bytes), host))
    rows.append(("host, later", _names(on_host), _gb(placement.work_bytes), host))
    if placement.unplaced:
        rows.append(("no GPU left", _names(placement.unplaced), "", ""))
    return new_table(("device", "processes", "GB", "of"), rows, right=(2, 3), whole=(0,))


def _names(processes: Iterable[Process]) -> str:
    return ", ".join(f"{each.kind} {each.number}" for each in processes)


def _step_text(size: RunSize) -> str:
    replies = " and ".join(
        f"{each.sampled:,} replies of the {each.role} ({each.reply} tokens after a prompt of {each.prompt}, on average)"
        for each in size.work
    )
    sampled = sum(each.sampled_tokens for each in size.work)
    learned = sum(each.learned_tokens for each in size.work)
    return f"A step samples {replies}: {sampled:,} tokens; it learns from {learned:,} tokens. {_minutes_text(size)}"


def _minutes_text(size: RunSize) -> str:
    seconds = size.seconds
    if seconds is None:
        return "Minutes need engines that start and GPUs of known speed, e.g. --on '1 x H100'."
    parts = {"decode": seconds.decode, "prefill": seconds.prefill, "learn": seconds.learn}
    minutes = ", ".join(f"{name} {value / 60:.1f}" for name, value in parts.items())
    minutes += ", sampling beside learning" if seconds.total < sum(parts.values()) else ""
    most = ", ".join(f"{each.role} {each.longest:,}" for each in size.work)
    return (
        f"That takes {seconds.least / 60:.1f} to {seconds.most / 60:.1f} minutes ({minutes}, hand-over"
        f" {seconds.handover[0] / 60:.1f} to {seconds.handover[1] / 60:.1f}, last replies up to"
        f" {seconds.tail / 60:.1f}) if sampling reaches {SAMPLES_AT:.0%} of the bandwidth and learning"
        f" {LEARNS_AT:.0%} of the peak; the most if each batch has a reply of all tokens allowed ({most})."
    )


def _gb(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.1f}" if n_bytes >= 5e7 or not n_bytes else f"{n_bytes / 1e9:.1g}"
