"""How GPUs are read from text and from nvidia-smi."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_agents.train.sizing.devices import Devices, Gpu, devices_here, parse_devices
from codea1_env.errors import UserError


@pytest.mark.parametrize(
    ("text", "n", "name", "memory"),
    [
        ("24GB", 1, "", 24),
        ("1 x 24GB", 1, "", 24),
        ("8x80 gb", 8, "", 80),
        ("8 x H100 80GB", 8, "H100", 80),
        ("4 x A100", 4, "A100", 80),
        ("4 x A100 40GB", 4, "A100", 40),
        ("rtx 4090", 1, "RTX 4090", 24),
        (" 2 x H20 96GB ", 2, "H20", 96),
        ("1 x 22.5GB", 1, "", 22.5),
    ],
)
def test_forms(text: str, n: int, name: str, memory: float) -> None:
    devices = parse_devices(text)
    assert (devices.n_gpus, devices.gpu.name, devices.gpu.memory_gb) == (n, name, memory)
    assert bool(devices.gpu.tflops) == bool(name)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *((text, "--on: cannot parse") for text in ("", "8", "8 x", "0 x 24GB", "0GB", "24GB x 8", "-1 x 24GB")),
        ("H100 0GB", "did you mean 'H100'"),
        ("H10", "did you mean 'H100'"),
        ("4 x A100 24GB", "A100 has 80 or 40 GB, not 24"),
    ],
)
def test_other_texts_are_refused_in_one_sentence(text: str, said: str) -> None:
    with pytest.raises(UserError, match=said) as error:
        parse_devices(text)
    assert "\n" not in str(error.value)


@given(st.integers(1, 99), st.integers(1, 500))
def test_what_is_printed_is_read_again(n: int, memory: int) -> None:
    devices = Devices(n, Gpu("", memory))
    assert parse_devices(str(devices)) == devices


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        devices = parse_devices(text)
    except UserError:
        return
    assert devices.n_gpus > 0


@pytest.fixture
def nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program of that name, first on the path."""
    command = tmp_path / "nvidia-smi"
    command.write_text(  # like the real one, it lists all, or those of `-i`, its last argument
        "#!/bin/sh\nfor last; do :; done\ncase $last in --*) last=0,1;; esac\n"
        "for n in $(echo $last | tr , ' '); do echo 'NVIDIA H100 80GB HBM3, 81559'; done\n"
    )
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return command


@pytest.mark.parametrize(("visible", "n"), [(None, 2), ("1", 1), ("0,1", 2), ("", 0)])
def test_gpus_of_this_machine(visible: str | None, n: int, nvidia_smi: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    devices = devices_here()
    assert devices.n_gpus == n
    assert devices.host_gb > 0
    if n:
        assert devices.gpu == Gpu("H100", 79.6, 989, 3.35)


def test_a_failing_nvidia_smi_means_no_gpu(nvidia_smi: Path) -> None:
    nvidia_smi.write_text("#!/bin/sh\nexit 9\n")
    devices = devices_here()
    assert devices is None or devices.n_gpus == 0
