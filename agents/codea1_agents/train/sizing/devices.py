"""The GPUs and the memory that a training runs on: by name, or those of this machine."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

from codea1_agents.train.nvidia_smi import gpu_figures
from codea1_env.errors import UnknownName, UserError

_FORMS = "e.g. '24GB', '1 x 24GB', '8 x H100 80GB' or '4 x A100'"
_TEXT = re.compile(
    r"(?:(?P<n>[1-9]\d*)\s*x\s*)?(?P<name>[a-z][\w ]*?)?\s*(?:(?P<gb>[1-9]\d*(?:\.\d+)?)\s*gb)?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Gpu:
    """One kind of GPU. Makers' GB are 2^30 bytes and are counted as 10^9: CUDA and fragments take the difference."""

    name: str
    """Empty if unknown; times are then not estimated."""
    memory_gb: float
    tflops: float = 0.0
    """Peak speed in dense bfloat16, as the maker states it."""
    bandwidth_tb: float = 0.0
    """TB per second, by the maker."""

    def __str__(self) -> str:
        return f"{self.name} {self.memory_gb:g} GB".strip()


SHEETS = (
    Gpu("RTX 4090", 24, 165, 1.01),
    Gpu("L40S", 48, 362, 0.86),
    Gpu("A100", 80, 312, 2.04),
    Gpu("A100", 40, 312, 1.56),
    Gpu("H100", 80, 989, 3.35),
    Gpu("H200", 141, 989, 4.8),
    Gpu("H20", 96, 148, 4.0),
)
"""Figures of the makers' data sheets; the first of a name is the one that the name alone means."""


@dataclass(frozen=True, slots=True)
class Devices:
    """What processes can be placed on."""

    n_gpus: int
    gpu: Gpu | None = None
    """The kind of all GPUs; None: there is none."""
    host_gb: float = 0.0
    """Memory of the machine; 0: unknown."""

    def __str__(self) -> str:
        return f"{self.n_gpus} x {self.gpu}" if self.gpu else f"a machine of {self.host_gb:.0f} GB without a GPU"


def parse_devices(text: str) -> Devices:
    """Return the GPUs that a text such as '8 x H100 80GB' describes.

    Raises:
        UserError: the text has another form, or names an unknown GPU, or one that is not sold with such a memory.
    """
    matched = _TEXT.fullmatch(text.strip())
    if matched is None or not (matched["name"] or matched["gb"]):
        raise UserError(f"--on: cannot parse {text!r} as GPUs; {_FORMS}")
    n, name, memory = int(matched["n"] or 1), matched["name"], float(matched["gb"] or 0)
    if not name:
        return Devices(n, Gpu("", memory))
    sold = [each for each in SHEETS if each.name.casefold() == name.casefold()]
    if not sold:
        raise UnknownName(f"--on: {UnknownName.of('GPU', name, sorted({each.name for each in SHEETS}))}")
    meant = [each for each in sold if memory in (0, each.memory_gb)]
    if not meant:
        raise UserError(f"--on: {name} has {' or '.join(f'{each.memory_gb:g}' for each in sold)} GB, not {memory:g}")
    return Devices(n, meant[0])


def processor_has_bfloat16() -> bool:
    """Return whether this machine's processor has instructions for bfloat16; without them it computes in it slowly."""
    try:
        words = set(Path("/proc/cpuinfo").read_text("utf-8").split())
    except OSError:
        return False
    return bool(words & {"avx512_bf16", "amx_bf16", "bf16"})  # the last: of Arm


def devices_here() -> Devices | None:
    """Return the GPUs and the memory of this machine; None: there are GPUs that cannot be examined."""
    host = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    listed = []
    for name, mib in gpu_figures("name", "memory.total"):  # such as "NVIDIA H100 80GB HBM3"
        memory = float(mib) / 1024
        sheets = [sheet for sheet in SHEETS if re.search(rf"\b{sheet.name}\b", name)]
        closest = min(sheets, key=lambda sheet: abs(sheet.memory_gb - memory), default=Gpu("", memory))
        listed.append(replace(closest, memory_gb=round(memory, 1)))
    if not listed:
        return None if Path("/dev/kfd").exists() else Devices(0, None, host)
    return Devices(len(listed), min(listed, key=lambda gpu: gpu.memory_gb), host)
