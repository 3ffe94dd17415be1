"""The command line of training, as far as it needs no Ray; whole runs are in `test_loop`."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console, Group

from codea1_agents.cli import progress, training_table
from codea1_agents.cli.console import Page
from codea1_agents.cli.training_table import LiveTable, PlainLines, tables_of
from codea1_agents.train.grpo.progress import Part, Phase, Progress
from codea1_agents.train.loop import load_training, preset_names
from codea1_agents.train.sizing import fitting
from codea1_agents.train.sizing.devices import Devices
from tests.support.command_line import codea1, document, refused
from tests.support.waiting import Clock

FIGURES = {"book_size": 1234.0, "coder_kl": 0.5, "coder_sampler_gap": 2e-6, "coder_trained": 4.0}
SECONDS = {"step_s": 2.0, "sync_s": 0.1, "rollout_s": 1.5, "generate_s": 1.0, "judge_s": 0.7, "learn_s": 0.4}
TIMES = {**SECONDS, "tokens_per_s": 50.0}
TEN = load_training("", ["run.steps=10"])
LINES: list[dict[str, Any]] = [
    {"step": 0, "evaluation": {"problems": 3.0, "coder_pass_at_1": 0.25}},
    {"step": 1, "figures": {**FIGURES, "coder_reward": 0.1}, "times": TIMES, "alarms": {}},
    {"step": 2, "figures": {**FIGURES, "coder_reward": 0.2}, "times": TIMES, "alarms": {"cut_coder": "90% are cut"}},
]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train"], "name a TOML file or a preset"),
        (["train", "papr-7b"], "did you mean 'paper-7b'"),
        (["train", "paper-7b", "--set", "run.stepz=3"], "did you mean 'run.steps'"),
        (["train", "x.toml", "--resume", "y", "-o", "z"], "cannot be combined with --resume"),
        (["train", "paper-7b", "--on", "24GB"], "--on requires --dry-run"),
        (["train", "--dry-run", "--resume", "y"], "--dry-run needs a TOML file or a preset"),
        (["train", "paper-7b", "--dry-run", "--on", "24"], "--on: cannot parse '24' as GPUs"),
        (["train", "paper-7b", "--dry-run", "--on", "A10"], "did you mean 'A100'"),
        (["train", "paper-7b", "--dry-run", "--set", "game.rules=papr"], "did you mean 'paper'"),
        (["train", "paper-7b", "--dry-run", "--set", "game.sandbox=http://["], "a sandbox's server must be an address"),
        (["train", "paper-7b", "--dry-run", "--set", "rollout.prompts=papr"], "papr"),
        (["train", "paper-7b", "--dry-run", "-p", "humanevl"], "did you mean 'humaneval'"),
        (["train", "paper-7b", "--dry-run", "--held-out", "humanevl"], "did you mean 'humaneval'"),
        (["train", "paper-7b", "--dry-run", "--set", "cluster.address=auto"], "name them, e.g. --on"),
        (["train", "--resume", "nowhere"], "nowhere: no such run folder"),
        (["export", "model", "nowhere", "--role", "coder", "-o", "out"], "nowhere: no such run folder"),
    ],
)
def test_what_is_asked_wrongly_ends_in_one_sentence(arguments, said, tmp_path, monkeypatch):
    if arguments[-1] in ("nowhere", "out"):
        pytest.importorskip("ray", reason="Ray is not installed")
        pytest.importorskip("transformers", reason="transformers is not installed")
    monkeypatch.chdir(tmp_path)
    assert said in refused(*arguments)
    assert not list(tmp_path.iterdir())


def test_a_dry_run_prints_memory_time_and_whether_it_fits() -> None:
    result = codea1("train", "one-gpu", "--dry-run", "--on", "1 x RTX 4090")
    assert result.exit_code == 0, result.stderr
    assert "By arithmetic; nothing was run." in result.stdout
    for part in ("weights", "gradients", "AdamW", "activations", "engines", "GPU 0"):
        assert part in result.stdout
    assert "512 replies of the tester (500 tokens after a prompt of 700, on average): 320,000 tokens" in result.stdout
    assert "minutes (decode" in result.stdout
    assert result.stdout.endswith("This run fits 1 x RTX 4090 24 GB and a host of 11 GB.\n")
    assert "A checkpoint takes 11.9 GB of the disk, the 3 at a time" in result.stdout


def test_a_dry_run_as_json_says_what_does_not_fit_and_which_lengths_are_assumed() -> None:
    result = codea1("train", "paper-7b", "--dry-run", "--on", "1 x 24GB", "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert not found["fits"]
    assert found["seconds_per_step"] is None
    assert {each["kind"] for each in found["processes"]} == {"runner", "learner"}
    assert "the preset one-gpu-lora fits" in found["advice"]
    changes = ("--set", "agents.coder.max_tokens=64", "--set", "agents.tester.max_prompt_tokens=96")
    found = document("train", "one-gpu", "--dry-run", "--on", "24GB", *changes)
    assert found["assumptions"]["reply"] == {"coder": 64, "tester": 500}
    assert found["assumptions"]["prompt"] == {"coder": 700, "tester": 96}


def test_groups_of_one_are_refused_before_the_start() -> None:
    dry = ("train", "one-gpu", "--dry-run", "--on", "24GB")
    for setting, role in (("n_candidates", "coder"), ("n_suites", "tester")):
        refused = codea1(*dry, "--set", f"rollout.{setting}=1")
        assert refused.exit_code == 2
        assert (
            f"{setting}=1: a group of one has nothing to be compared with, so the {role} learns nothing"
            in refused.stderr
        )
    by_tests = codea1(*dry, "--set", "rollout.n_suites=1", "--set", "training.credit=block")
    assert by_tests.exit_code == 0  # the tests of a suite are compared
    plain = codea1(*dry)
    assert "Minutes need engines that start and GPUs of known speed" in plain.stdout


@pytest.mark.parametrize("learners", [0, 1])
def test_a_run_that_needs_a_missing_gpu_ends_before_anything_loads(learners, tmp_path, monkeypatch):
    pytest.importorskip("ray", reason="Ray is not installed")
    pytest.importorskip("transformers", reason="transformers is not installed")
    monkeypatch.setattr(fitting, "devices_here", lambda: Devices(0, None, 64))
    out = tmp_path / "run"
    changes = ("--set", "cluster.gpus_per_env_runner=0", "--set", f"cluster.learners={learners}")
    assert "requests a GPU" in refused("train", "one-gpu", "-o", out, *changes)
    assert not out.exists()


def test_presets_are_listed() -> None:
    told = document("list", "presets")["presets"]
    assert tuple(each["name"] for each in told) == preset_names()
    assert {"paper-1.5b", "paper-3b", "paper-7b"} <= set(preset_names())
    assert all(each["what"] for each in told)


def drawn(lines: list[dict[str, Any]]) -> str:
    return drawn_text(Group(*tables_of(lines)))


def drawn_text(what: Any) -> str:
    console = Console(file=StringIO(), width=80)
    console.print(what)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def cells(text: str, heading: str, row: str) -> dict[str, str]:
    """The cells of a row of the table that begins with a heading, by column."""
    lines = text[text.index(f"\n{heading} ") + 1 :].splitlines()
    found = next(line for line in lines[2:] if line.strip().startswith(row)).strip()
    columns = [each for each in lines[0].split("  ") if each.strip()][1:]
    return dict(zip(map(str.strip, columns), found.removeprefix(row).split(), strict=True))


def test_later_turns_are_listed_by_their_numbers() -> None:
    figures = {f"{name}_turn_{turn}": turn / 100 for turn in (2, 3, 10) for name in ("playing", "fixed")}
    text = drawn([{"step": 1, "figures": figures, "times": LINES[-1]["times"]}])
    assert [cells(text, "turn", f"{turn} ")["fixed"] for turn in (2, 3, 10)] == ["0.020", "0.030", "0.100"]
    assert text.index("0.030") < text.index("0.100")


def test_the_tables_show_one_figure_per_cell_the_split_and_alarms() -> None:
    text = drawn(LINES)
    assert cells(text, "role", "coder")["reward"] == "0.200"
    assert cells(text, "role", "mean of 2")["reward"] == "0.150"
    assert cells(text, "role", "tester")["reward"] == "-"
    assert cells(text, "game", "last step")["book"] == "1234"
    model = cells(text, "model", "coder")
    assert (model["KL"], model["gap"]) == ("0.500", "2e-06")
    assert "generate 1.00, judge 0.70" in text
    assert "50 tokens/s" in " ".join(text.split())
    assert "alarm cut_coder: 90% are cut" in text
    assert cells(text, "held out", "coder_pass_at_1") == {"step 0": "0.250"}
    assert max(map(len, text.splitlines())) <= 80
    assert "coder_pass_at_1" in drawn(LINES[:1])
    later = {"step": 3, "evaluation": {"problems": 3.0, "coder_pass_at_1": 0.75}}
    assert cells(drawn([*LINES, later]), "held out", "coder_pass_at_1") == {"step 0": "0.250", "step 3": "0.750"}


@pytest.mark.parametrize("kind", [PlainLines, LiveTable])
def test_without_a_terminal_there_is_a_line_per_step(kind, capsys):
    with kind(Page()) as watcher:
        watcher.begin(Path("run"), TEN, [])
        for line in LINES:
            watcher.step(line)
        watcher.note("something")
    told = capsys.readouterr()
    if kind is PlainLines:
        assert [line[:10] for line in told.out.splitlines()] == ["step 0 of ", "step 1 of ", "step 2 of "]
        assert "coder 0.200" in told.out
        assert "step 2: cut_coder: 90% are cut" in told.err
    assert "something" in told.err


def test_an_alarm_is_said_once_and_then_counted(capsys: pytest.CaptureFixture[str]) -> None:
    watcher = PlainLines(Page())
    for step, raised in enumerate((("cut",), ("cut", "masked"), ("masked",), ("cut",)), start=1):
        watcher.step({"step": step, "alarms": {name: f"{name} is high" for name in raised}})
    told = capsys.readouterr()
    counted = [line.partition("  ")[2] for line in told.out.splitlines()]
    assert counted == ["", "cut for 2 steps", "masked for 2 steps", ""]
    said = [line.removeprefix("warning: ") for line in told.err.splitlines()]
    assert said == ["step 1: cut: cut is high", "step 2: masked: masked is high", "step 4: cut: cut is high"]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    monkeypatch.setattr(training_table, "time", clock)
    return clock


def test_a_long_step_and_each_phase_before_the_first_are_noted_on_stderr(clock, capsys):
    watcher = PlainLines(Page())
    for now, reported in (
        (2.0, Progress(Phase.STARTING)),
        (5.0, Progress(Phase.LOADING)),
        (7.0, Progress(Phase.SAMPLING, {Part.PROGRAMS: 8}, {Part.PROGRAMS: 4})),
        (34.0, Progress(Phase.SAMPLING, {Part.PROGRAMS: 8}, {Part.PROGRAMS: 5})),
        (38.0, Progress(Phase.LEARNING)),
    ):
        watcher.progress(reported)
        clock.now = now
        watcher.now.tell()
    watcher.step(LINES[1])
    clock.now = 67.0
    watcher.now.tell()
    told = capsys.readouterr()
    assert told.err.splitlines() == [
        "note: starting Ray, elapsed 0:02",
        "note: loading models, elapsed 0:03",
        "note: learning, elapsed 0:04",
    ]
    assert "programs" not in told.out


def test_a_step_says_how_long_the_others_will_take(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    watcher = PlainLines(Page())
    watcher.begin(Path("run"), TEN, [{"step": 4}])
    clock.now = 30.0
    watcher.step({"step": 6})
    watcher.step({"step": 10})
    assert capsys.readouterr().out.splitlines() == ["step 6 of 10  left 1:00", "step 10 of 10"]


def test_a_quiet_page_shows_no_progress(capsys: pytest.CaptureFixture[str]) -> None:
    with PlainLines(Page(quiet=True)) as watcher:
        watcher.progress(Progress(Phase.LOADING))
        watcher.now.rest(0.0)
        watcher.now.tell()
    assert capsys.readouterr() == ("", "")


def test_the_live_table_shows_the_run_s_bar_and_the_progress_of_a_step() -> None:
    watcher = LiveTable(Page())
    watcher.begin(Path("run"), TEN, LINES)  # it continues where the run stopped
    assert "2 of 10 steps" in drawn_text(watcher.draw()).splitlines()[0]
    watcher.begin(Path("run"), TEN, [])
    watcher.step(LINES[1])
    watcher.progress(Progress(Phase.LEARNING, {Part.MINIBATCHES: 4}, {Part.MINIBATCHES: 3}))
    bar, phase, *_ = drawn_text(watcher.draw()).splitlines()
    assert "1 of 10 steps" in bar
    assert phase.strip() == "learning: minibatches 3 of 4"
