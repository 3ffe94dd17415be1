"""Runs `codea1 train --dry-run`: prints what a run needs, by arithmetic. No model is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import typer

from codea1_agents.cli.boundary import NOT_OK
from codea1_agents.cli.console import Page, new_table
from codea1_agents.train.loop.fitting import advice
from codea1_agents.train.loop.game import require_game
from codea1_agents.train.loop.run_size import RunSize, size_of
from codea1_agents.train.settings.options import TrainingConfig
from codea1_agents.train.sizing.devices import Devices, devices_here, parse_devices
from codea1_agents.train.sizing.placement import Process
from codea1_agents.train.sizing.timing import LEARNS_AT, SAMPLES_AT, assumptions
from codea1_env.errors import UserError


def show_dry_run(config: TrainingConfig, on: str, page: Page) -> None:
    """Print memory by process and GPU, tokens and minutes of a step, and whether the run fits.

    Args:
        config: the settings of the run.
        on: the GPUs, as text; empty: those of this machine.
        page: receives the output.

    Raises:
        UserError: the settings make no run or no game, a model's shape is unknown, or the GPUs are.
        typer.Exit: the run does not fit (1).
    """
    require_game(config)
    size = size_of(config, _devices(config, on))
    sentence = advice(config, size)
    page.say("By arithmetic; nothing was run. GB are 10^9 bytes.")
    page.show(_processes_table(size))
    page.show(_gpus_table(size))
    page.say(_step_text(size))
    page.say(sentence[0].upper() + sentence[1:] + ".")
    page.finish(**_facts(size), advice=sentence)
    if size.faults:
        raise typer.Exit(NOT_OK)


def _devices(config: TrainingConfig, on: str) -> Devices:
    if on:
        return parse_devices(on)
    here = None if config.cluster.address else devices_here()
    if here is None:
        raise UserError("the GPUs of this run cannot be examined from here: name them, e.g. --on '8 x H100 80GB'")
    return here


def _processes_table(size: RunSize) -> Any:
    rows = []
    for kind, alike in _by_kind(size).items():
        first = alike[0]
        device = f"GPU, {first.gpus:g} of it each" if first.gpus else "host"
        parts = [(part, device) for part in first.parts] + [(part, "host") for part in first.host_parts]
        for part, place in parts:
            if part.n_bytes:
                rows.append((f"{len(alike)} x {kind}", place, part.name, _gb(part.n_bytes)))
    return new_table(("process", "on", "part", "GB each"), rows, right=(3,), whole=(0, 1, 2))


def _by_kind(size: RunSize) -> dict[str, list[Process]]:
    found: dict[str, list[Process]] = {}
    for process in size.placement.processes:
        found.setdefault(process.kind, []).append(process)
    return found


def _gpus_table(size: RunSize) -> Any:
    placement, gpu = size.placement, size.devices.gpu
    rows = [
        (f"GPU {number}", _names(held), _gb(placement.gpu_bytes(number)), f"{gpu.memory_gb:g}" if gpu else "")
        for number, held in enumerate(placement.by_gpu)
    ]
    host = f"{size.devices.host_gb:.0f}" if size.devices.host_gb else "unknown"
    rows.append(("host", _names(placement.on_host), _gb(placement.host_bytes), host))
    if placement.unplaced:
        rows.append(("no GPU left", _names(placement.unplaced), "", ""))
    return new_table(("device", "processes", "GB", "of"), rows, right=(2, 3), whole=(0,))


def _names(processes: Sequence[Process]) -> str:
    return ", ".join(f"{each.kind} {each.number}" for each in processes)


def _step_text(size: RunSize) -> str:
    replies = " and ".join(
        f"{each.sampled:,} replies of the {each.role} ({each.reply} tokens after a prompt of {each.prompt}, on average)"
        for each in size.work
    )
    learned = sum(each.learned_tokens for each in size.work)
    return f"A step samples {replies}: {size.tokens:,} tokens; it learns from {learned:,} tokens. {_minutes_text(size)}"


def _minutes_text(size: RunSize) -> str:
    if size.engine_fault:
        return "Without engines there are no minutes."
    if not size.devices.n_gpus:
        return "There are no minutes without GPUs."
    if size.seconds is None:
        return "The speed of these devices is unknown; name a GPU for minutes, e.g. --on '1 x H100'."
    seconds = size.seconds
    parts = {"decode": seconds.decode, "prefill": seconds.prefill, "learn": seconds.learn}
    minutes = ", ".join(f"{name} {value / 60:.1f}" for name, value in parts.items())
    minutes += ", sampling beside learning" if seconds.overlap else ""
    return (
        f"That takes {size.seconds.total / 60:.1f} minutes ({minutes}) if sampling reaches {SAMPLES_AT:.0%} of"
        f" the bandwidth and learning {LEARNS_AT:.0%} of the peak."
    )


def _facts(size: RunSize) -> dict[str, Any]:
    return {
        "devices": asdict(size.devices),
        "fits": not size.faults,
        "faults": list(size.faults),
        "processes": [
            asdict(each) | {"device_bytes": each.device_bytes, "host_bytes": each.host_bytes}
            for each in size.placement.processes
        ],
        "gpus": [
            {"processes": _names(held), "bytes": size.placement.gpu_bytes(number)}
            for number, held in enumerate(size.placement.by_gpu)
        ],
        "host_bytes": size.placement.host_bytes,
        "tokens_per_step": {
            "sampled": size.tokens,
            "learned": sum(each.learned_tokens for each in size.work),
            "largest_micro_batch": size.longest_batch,
        },
        "seconds_per_step": None if size.seconds is None else asdict(size.seconds),
        "assumptions": assumptions(size.work),
    }


def _gb(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.1f}" if n_bytes >= 5e7 or not n_bytes else f"{n_bytes / 1e9:.1g}"
