from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.support.command_line import codea1, finished, refused, started
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

FAST = ["play", "-p", "starter", "--coder", "mutant,strength=0.9", "-n", "12", "--seed", "2"]

SLOW = """\
import asyncio, os

async def tester(observation, info):
    if os.environ.get("SLOW") == info["problem_id"]:
        await asyncio.sleep(60)
    return observation["examples"]
"""


def test_a_run_is_the_same_with_any_concurrency() -> None:
    arguments = [*FAST, "--limit", 5, "--rounds", 2, "--tester", "boundary", "--quiet"]
    assert codea1(*arguments, "--out", "one").exit_code == 0
    several = codea1(*arguments, "--out", "several", "--concurrency", 4)
    assert several.exit_code == 0, several.stderr
    assert Path("one/episodes.jsonl").read_bytes() == Path("several/episodes.jsonl").read_bytes()
    assert Path("one/config.toml").read_bytes() == Path("several/config.toml").read_bytes()
    summaries = [json.loads(Path(run, "metrics.json").read_text())["summary"] for run in ("one", "several")]
    assert summaries[0] == summaries[1]
    assert "all games together" in several.stdout
    assert not Path("several/early.jsonl").exists()
    resumed = codea1("play", "--resume", "several", "-n", 14, "--concurrency", 3, "--quiet")
    assert resumed.exit_code == 0
    assert codea1("play", "--resume", "one", "-n", 14, "--quiet").exit_code == 0
    assert Path("one/episodes.jsonl").read_bytes() == Path("several/episodes.jsonl").read_bytes()


def test_an_interrupt_keeps_the_games_that_were_finished_out_of_turn(folder: Path) -> None:
    (folder / "slow.py").write_text(SLOW)
    first = json.loads(codea1(*FAST, "-n", 1, "--tester", "examples", "--out", "first", "--json").stdout)
    assert first["n_episodes"] == 1
    problem = json.loads(Path("first/episodes.jsonl").read_text())["problem_id"]
    arguments = [*FAST, "--coder", "reference", "--tester", "slow:tester", "--concurrency", "4"]
    process = started(*arguments, "--out", "run", "--quiet", env={"SLOW": problem})
    early = Path("run/early.jsonl")
    assert wait_until(lambda: early.exists() and early.read_bytes().count(b"\n") == 11, 60.0)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "codea1 play --resume run --tester slow:tester" in err
    assert "Traceback" not in err
    assert Path("run/episodes.jsonl").read_bytes() == b""
    kept = sorted(early.read_text().splitlines())
    early.write_text(early.read_text() + '{"half')
    resumed = finished("play", "--resume", "run", "--tester", "slow:tester", "--quiet")
    assert resumed.returncode == 0, resumed.stderr
    lines = Path("run/episodes.jsonl").read_text().splitlines()
    assert len(lines) == 12
    assert set(kept) == set(lines[1:])
    assert not early.exists()


def test_somebody_at_the_keyboard_plays_one_game_at_a_time() -> None:
    sentence = refused(*FAST, "--tester", "human", "--concurrency", 2, "--out", "run")
    assert "tester human plays one game at a time" in sentence
