from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import tomllib
from pathlib import Path

import jsonschema
import pytest

from codea1_agents.cli import progress
from codea1_agents.play.games import PlayedEpisode
from codea1_agents.play.runner import play
from codea1_env.problems import dump_jsonl, load_problems
from codea1_env.runs.folder import iter_episodes
from codea1_env.runs.records import to_line
from tests.support import argv_problems
from tests.support.command_line import FAST, codea1, document, entries_of, finished, one_object, refused, started
from tests.support.runs import EPISODE_SCHEMA
from tests.support.waiting import wait_until


def assert_same_run(first: Path, second: Path) -> None:
    assert (first / "episodes.jsonl").read_bytes() == (second / "episodes.jsonl").read_bytes()
    assert entries_of(first) == entries_of(second)
    assert (first / "config.toml").read_bytes() == (second / "config.toml").read_bytes()
    summaries = [json.loads((run / "metrics.json").read_text())["summary"] for run in (first, second)]
    assert summaries[0] == summaries[1]


# -- what a run shows and leaves behind --


@pytest.mark.slow
def test_a_process_whose_agent_never_returns_ends(folder: Path) -> None:
    (folder / "stuck.py").write_text("def spins(observation):\n    while True:\n        pass\n")
    played = "play", "-p", "starter", "--coder", "stuck:spins", "--tester", "examples", "-n", 1
    done = finished(*played, "--reply-timeout", 0.2, "--out", "run")
    assert done.returncode == 3
    assert "coder stuck:spins did not return within 0.2 s (--reply-timeout)" in done.stderr


def test_a_run_shows_a_duel_and_a_summary_and_says_where_it_is() -> None:
    result = codea1(*FAST, "-n", 2)
    assert result.exit_code == 0
    assert result.stderr == ""
    for shown in ("candidate: valid", "verdict", "coder  ", "Mistake Book", "95 % interval", "time: ", *FAST[4:7:2]):
        assert shown in result.stdout
    assert result.stdout.count("  round 1\n") == 1  # one duel
    (run,) = Path("runs").iterdir()
    assert f"\nrun folder: {run}\nnext: codea1 " in result.stdout
    assert {"config.toml", "episodes.jsonl", "book.sqlite", "metrics.json"} <= {file.name for file in run.iterdir()}


def test_which_games_are_drawn_and_why() -> None:
    def drawn(coder: str, *options: object) -> list[str]:
        shown = codea1("play", "-p", "starter", "--coder", coder, "-n", 4, *options).stdout
        return re.findall(r"(?m)^drawn: episode (.*)$", shown)

    all_4 = "; --show 4 draws all"
    beaten, *_ = drawn("mutant,strength=1")
    assert re.fullmatch(rf"0 \(starter/\w+\), the first whose program fails a right test{all_4}", beaten)
    assert drawn("reference") == [f"0 (starter/assign_lockers), since no program fails a right test{all_4}"]
    _, second = drawn("mutant,strength=1", "--show", 2)
    assert second.endswith(f"), another whose program fails a right test{all_4}")
    assert drawn("reference", "--show", 4) == []


def test_a_coder_that_plays_the_solution_is_told_and_so_are_the_tests_that_figures_include() -> None:
    told = "the coder played the solution itself: no test can beat it; try --coder mutant,strength=1\n"
    for coder, is_solution in (("reference", True), ("mutant,strength=1", False)):
        shown = codea1("play", "-p", "starter", "--coder", coder, "-n", 2).stdout
        assert (told in shown, "Mistake Book: 0 cases" in shown, "book show" not in shown) == (is_solution,) * 3
    for tester, has_copies in (("examples", True), ("boundary", False)):
        shown = " ".join(codea1(*FAST, "--tester", tester, "-n", 1).stdout.split())
        assert ("; suite validity includes copies of examples; Mistake" in shown) is has_copies


def test_flaky_tests_are_told_instead_of_a_coder_that_cannot_be_beaten(folder: Path) -> None:
    solution = "import random\ndef f(x):\n    return x + random.randrange(10**9)\n"
    row = {
        "id": "r",
        "statement": "def f(x: int): ...",
        "entry_point": "f",
        "solution": solution,
        "golden": ["assert f(3) >= 3"],
    }
    (folder / "my.jsonl").write_text(json.dumps(row))
    shown = " ".join(codea1("play", "-p", "my.jsonl", "--coder", "reference", "-n", 2).stdout.split())
    assert "flaky: run again, the solution gives another value; see codea1 check problems my.jsonl" in shown
    assert "the coder played the solution itself" not in shown


@pytest.mark.parametrize("source", ["starter", argv_problems.SOURCE])
def test_every_line_that_is_written_obeys_the_published_schema(source: str) -> None:
    assert codea1(*FAST, "-p", source, "-n", 4, "--rounds", 2, "--out", "run").exit_code == 0
    lines = Path("run/episodes.jsonl").read_text().splitlines()
    assert len(lines) == 4
    for line in lines:
        jsonschema.validate(json.loads(line), EPISODE_SCHEMA)


def test_the_config_holds_what_was_resolved() -> None:
    codea1(*FAST, "-n", 1, "--out", "run", "--rules", "paper", "--alpha", 0.25, "--tests", 3, "--seed", 4)
    config = tomllib.loads(Path("run/config.toml").read_text())
    assert (config["seed"], config["episodes"], config["limit"]) == (4, 1, 3)
    assert config["coder"] == "mutant,strength=0.9"
    rules = config["rules"]
    assert (rules["name"], rules["reward"]["alpha"], rules["tests_per_suite"]) == ("paper", 0.25, 3)
    assert {"python", "codea1-env"} <= set(config["versions"])


def test_json_is_one_object_and_everything_else_is_on_stderr() -> None:
    result = codea1(*FAST, "-n", 2, "--json", "--out", "run", "--show", 1)
    data = one_object(result.stdout)
    assert (data["out"], data["n_episodes"]) == ("run", 2)
    stored = json.loads(Path("run/metrics.json").read_text())["summary"]
    assert data["figures"].items() <= stored.items()
    assert data["funnel"] == stored.pop("funnel")
    assert data["figures"].keys() == {name for name, value in stored.items() if isinstance(value, dict)}
    assert "candidate: valid" in result.stderr
    assert "95 % interval" in result.stderr


def test_skipped_rows_are_noted_and_strict_refuses_them(folder: Path) -> None:
    path = folder / "some.jsonl"
    dump_jsonl(load_problems("starter", limit=2), path)
    path.write_text(path.read_text() + '{"id": "broken"\n')
    result = codea1("play", "-p", path, "--tester", "boundary", "-n", 1, "--out", "run")
    assert result.exit_code == 0
    assert "note: skipped some.jsonl" in result.stderr
    assert json.loads(Path("run/metrics.json").read_text())["skipped_rows"] == 1
    sentence = refused("play", "-p", path, "-n", 1, "--strict", "--out", "other")
    assert "some.jsonl" in sentence
    assert not Path("other").exists()


def test_a_long_run_names_the_game_that_it_waits_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_FIRST_LINE_S", "_FORETOLD_S", "_LINE_S", "_LONG_S"):
        monkeypatch.setattr(progress, name, 0.0)
    monkeypatch.setattr(progress, "_POLL_S", 0.01)
    monkeypatch.syspath_prepend(str(folder))
    told = codea1("play", "-p", "starter", "--tester", "my_agents:slow_tester", "-n", 2).stderr
    waited = re.findall(r"(?m)^note: playing .*; waiting \S+ for starter/(\w+)$", told)
    assert set(waited) == {"assign_lockers", "count_carries"}


# -- reproducible --


@pytest.mark.slow
def test_the_same_seed_gives_the_same_run_in_two_processes_whatever_the_hash_seed() -> None:
    for name, hash_seed in (("first", "1"), ("second", "2")):
        done = finished(*FAST, "-n", 6, "--rounds", 2, "--out", name, env={"PYTHONHASHSEED": hash_seed})
        assert done.returncode == 0, done.stderr
    assert_same_run(Path("first"), Path("second"))
    assert any(played.replayed for record in iter_episodes(Path("first")) for played in record.rounds)


KILLED_BEFORE_A_LINE = """
import os, signal
from codea1_env.runs.folder import RunFolder
write = RunFolder.append
def append(self, record):
    if record.episode == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    write(self, record)
RunFolder.append = append
"""
KILLED_WITHIN_A_LINE = """
import os, signal
from codea1_env.runs import folder
whole = folder.to_line
def to_line(record):
    if record.episode == 4:
        path = 'broken/episodes.jsonl'
        with open(path, 'ab') as file:
            file.write(whole(record)[:100])
        os.kill(os.getpid(), signal.SIGKILL)
    return whole(record)
folder.to_line = to_line
"""


@pytest.mark.slow
@pytest.mark.parametrize("crash", [KILLED_BEFORE_A_LINE, KILLED_WITHIN_A_LINE])
def test_a_run_killed_between_book_and_line_resumes_to_the_run_that_was_never_killed(crash: str) -> None:
    codea1(*FAST, "-n", 7, "--out", "whole")
    assert finished(*FAST, "-n", 7, "--out", "broken", code=crash).returncode == -signal.SIGKILL
    assert len(list(iter_episodes(Path("broken")))) == 4
    assert entries_of(Path("broken")) != entries_of(Path("whole"))
    result = codea1("play", "--resume", "broken")
    assert result.exit_code == 0
    assert ("half-written" in result.stderr) == (crash is KILLED_WITHIN_A_LINE)
    assert_same_run(Path("whole"), Path("broken"))


def wait_for_lines(run: Path, n: int) -> None:
    lines = run / "episodes.jsonl"
    assert wait_until(lambda: lines.exists() and lines.read_bytes().count(b"\n") >= n, 60.0)


@pytest.mark.slow
def test_a_run_killed_again_and_again_resumes_to_the_same_run(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.syspath_prepend(str(folder))
    slow = ["play", "-p", "starter", "--coder", "mutant,strength=0.9", "--tester", "my_agents:slow_tester"]
    slow += ["--limit", "3", "-n", "9"]
    typed = slow[5:7]  # a module's name has to be typed again
    codea1(*slow, "--out", "whole")
    for n_lines, arguments in ((2, [*slow, "--out", "broken"]), (5, ["play", "--resume", "broken", *typed])):
        process = started(*arguments)
        wait_for_lines(Path("broken"), n_lines)
        process.kill()
        process.communicate()
    assert codea1("play", "--resume", "broken", *typed).exit_code == 0
    assert_same_run(Path("whole"), Path("broken"))


@pytest.mark.slow
def test_an_interrupted_run_is_130_keeps_what_is_done_and_names_the_line_that_continues() -> None:
    process = started("play", "-p", "starter", "--tester", "my_agents:slow_tester", "-n", 40, "--out", "run", "--json")
    wait_for_lines(Path("run"), 2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "codea1 play --resume run --tester my_agents:slow_tester" in err
    assert "Traceback" not in err
    n_recorded = len(list(iter_episodes(Path("run"))))
    assert 2 <= n_recorded < 40
    assert json.loads(out)["n_episodes"] == json.loads(Path("run/metrics.json").read_text())["summary"]["n_episodes"]


@pytest.mark.slow
def test_a_full_disk_is_one_sentence_and_the_run_goes_on_when_there_is_room() -> None:
    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (120_000, 120_000))

    arguments = [*FAST, "-n", "25"]
    codea1(*arguments, "--out", "whole")
    done = finished(*arguments, "--out", "broken", preexec_fn=little_room)
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: ")
    assert "Traceback" not in done.stderr
    assert "continue with: codea1 play --resume broken" in done.stderr
    assert 0 < len(list(iter_episodes(Path("broken")))) < 25
    assert codea1("play", "--resume", "broken").exit_code == 0
    assert_same_run(Path("whole"), Path("broken"))


# -- resuming --


def test_a_finished_run_may_be_asked_for_more_episodes_and_else_nothing_changes() -> None:
    codea1(*FAST, "-n", 5, "--out", "whole")
    codea1(*FAST, "-n", 2, "--out", "run")
    before = Path("run/episodes.jsonl").read_bytes()
    assert document("play", "--resume", "run", *FAST[1:])["n_episodes"] == 2
    assert Path("run/episodes.jsonl").read_bytes() == before
    assert codea1("play", "--resume", "run", "-n", 5).exit_code == 0
    assert_same_run(Path("whole"), Path("run"))


@pytest.mark.parametrize("name", ["metrics.json", "config.toml", "episodes.jsonl", "book.sqlite", "early.jsonl", "x/y"])
def test_a_run_is_written_through_no_link_and_waits_for_no_pipe(name: str) -> None:
    codea1(*FAST, "-n", 2, "--out", "clean")
    for make in (lambda path: path.symlink_to(Path("victim").absolute()), os.mkfifo):
        shutil.rmtree("run", ignore_errors=True)
        shutil.copytree("clean", "run")
        path = Path("run", name)
        path.parent.mkdir(exist_ok=True)
        Path("victim").write_bytes(path.read_bytes() if path.is_file() else b"")
        before = Path("victim").read_bytes()
        path.unlink(missing_ok=True)
        make(path)
        refused("play", "--resume", "run", "-n", 4)
        assert Path("victim").read_bytes() == before


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--alpha", "0.3"], "rules.reward.alpha was 0.5, now 0.3"),
        (["--seed", "1", "--tester", "fuzz"], "tester was boundary, now fuzz; seed was 0, now 1"),
        (["--rules", "paper"], "rules.name was fixed, now paper"),
        (["-n", "1"], "episodes was 2, now 1"),
        (["-p", "humaneval"], "problems_digest was"),
        (["--tester-view", "black_box"], "tester_view was white_box, now black_box"),
    ],
)
def test_a_run_is_not_continued_with_other_options(options: list[str], said: str) -> None:
    codea1(*FAST, "-n", 2, "--out", "run")
    assert said in refused("play", "--resume", "run", *options)
    assert len(list(iter_episodes(Path("run")))) == 2


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("config.toml", "seed = 0", "seed = 3", "episode 0 had another seed"),
        (
            "config.toml",
            "alpha = 0.5",
            "alpha = 0.9",
            "recorded rewards do not follow from the round and the run's rules",
        ),
        ("episodes.jsonl", '"seed":', '"seed":1', "episode 1 had another seed"),
        ("episodes.jsonl", r'"value":[\d.]+', '"value":-7', "line 2 round 0: the recorded rewards do not follow"),
        ("config.toml", "", "# a comment\n", ""),
    ],
)
def test_a_run_that_was_edited_is_not_continued(file: str, old: str, new: str, said: str) -> None:
    codea1(*FAST, "-n", 3, "--out", "run")
    text = Path("run", file).read_text()
    start = text.index("\n") if file == "episodes.jsonl" else 0
    Path("run", file).write_text(text[:start] + re.sub(old, new, text[start:], count=1))
    if said:
        assert said in refused("play", "--resume", "run", "-n", 4)
    else:
        assert codea1("play", "--resume", "run", "-n", 4).exit_code == 0


# -- bad input --


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--problems", "humanevla"], "did you mean 'humaneval'?"),
        (["--problems", "nowhere.jsonl"], "nowhere.jsonl"),
        (["--problems", ""], "the problem source is empty"),
        (["--coder", ":x"], "expected module:attribute"),
        (["--coder", "fuzz"], "agent 'fuzz' is a tester, not a coder"),
        (["--tester", "mutant"], "agent 'mutant' is a coder, not a tester"),
        (["--coder", "mutnat"], "did you mean 'mutant'?"),
        (["--coder", "mutant,strength=7"], "strength must be in [0, 1]"),
        (["--coder", "mutant,color=red"], "unknown option 'color'"),
        (["--coder", "mutant,strength=a"], "option strength must be a number"),
        (["-n", "x"], "expected a valid integer, got 'x' (see codea1 play --help)"),
        (["more"], "expected no more arguments, got more (see codea1 play --help)"),
        (["--tester", "no_such_module:agent"], "cannot import 'no_such_module'"),
        (["--rules", "papr"], "did you mean 'paper'?"),
        (["--tests", 1001], "'--tests': expected less than or equal to 1000, got '1001' (see codea1 play"),
        (["--tester-view", "grey"], "tester_view: expected 'white_box' or 'black_box'"),
        (["--sandbox", "lokal"], "did you mean 'local'?"),
        (["--out", "my_agents.py"], "my_agents.py"),
        (["--out", "/proc/nowhere"], "cannot be written: No such file or directory"),
        (["--out", "."], "not empty"),
        (["--resume", "lost"], "lost: no such run folder"),
        (["--resume", "my_agents.py"], "my_agents.py: a file, not a run folder"),
        (["--resume", "."], "not a run folder, since config.toml is missing"),
        (["--resume", "lost", "--out", "new"], "cannot be combined with --resume"),
        (["--coder", "\ud800"], "unknown agent"),
        (["--problems", "a\0b"], "unknown problem source"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_no_run_behind(folder: Path, options: list[str], said: str) -> None:
    assert said in refused(*FAST, "-n", 1, *options)
    assert [path.name for path in folder.iterdir() if path.is_dir() and path.name != "__pycache__"] == []


@pytest.mark.parametrize("option", ["--alpha", "-n", "--rounds", "--seed", "--show", "--tests"])
def test_numbers_out_of_range_are_bad_usage(option: str) -> None:
    bad = {"--alpha": (2, "nan"), "-n": (0,), "--rounds": (0, 10**30), "--tests": (10**30,)}
    for value in bad.get(option, (-1,)):
        assert re.search(f"Invalid value for '([^']*' / ')?{option}'", refused(*FAST, option, value))
    assert not Path("runs").exists()


def test_a_reply_that_is_no_text_ends_the_run_but_episodes_stay(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(folder))
    codea1(*FAST, "-n", 2, "--out", "run", "--tester", "examples")
    config = Path("run/config.toml")
    config.write_text(config.read_text().replace('"examples"', '"my_agents:silent"'))
    assert "'my_agents:silent' comes from a recorded run" in refused("play", "--resume", "run", "-n", 4)
    result = codea1("play", "--resume", "run", "-n", 4, "--tester", "my_agents:silent")
    assert result.exit_code == 2
    assert "codea1 play --resume run" in result.stderr
    assert "my_agents:silent" in result.stderr
    assert "NoneType" in result.stderr
    assert len(list(iter_episodes(Path("run")))) == 2


def test_a_sandbox_that_does_not_work_is_exit_code_3(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(folder))
    (folder / "my_sandbox.py").write_text(
        "from codea1_env.errors import SandboxError\n"
        "class Broken:\n"
        "    name, guarantee = 'broken', 'trusted only'\n"
        "    def run(self, jobs):\n        raise SandboxError('no worker starts')\n"
        "    def close(self):\n        pass\n"
        "broken = Broken()\n"
    )
    result = codea1(*FAST, "--sandbox", "my_sandbox:broken")
    assert (result.exit_code, result.stderr) == (3, "error: no worker starts\n")


def test_the_python_function_plays_the_same_game_as_the_command() -> None:
    codea1(*FAST, "-n", 3, "--seed", 5, "--out", "run")
    games: list[PlayedEpisode] = []
    players = "mutant,strength=0.9", "boundary"
    play(load_problems("starter", limit=3), *players, episodes=3, seed=5, on_episode=games.append)
    assert b"".join(to_line(game.record) for game in games) == Path("run/episodes.jsonl").read_bytes()


@pytest.mark.slow
def test_no_progress_line_overwrites_what_a_person_types(folder: Path) -> None:
    (folder / "typed").write_text("def f():\n    pass\n.\n" * 2)
    terminal = {"FORCE_COLOR": "1", "TERM": "xterm"}
    played = "play", "-p", "starter", "--tester", "examples", "-n", 2, "--show", 0, "--coder"
    with (folder / "typed").open() as keyboard:
        done = finished(*played, "human", env=terminal, stdin=keyboard)
    assert done.returncode == 0
    assert "You are the coder" in done.stderr
    assert "playing" not in done.stderr
    assert "playing" in finished(*played, "mutant", env=terminal).stderr


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_run_that_fails_leaves_no_folder(folder: Path, monkeypatch: pytest.MonkeyPatch, concurrency: int) -> None:
    monkeypatch.syspath_prepend(str(folder))
    played = "play", "-p", "starter", "-n", 2, "--tester", "my_agents:forgetful", "--concurrency", concurrency
    sentence = refused(*played, "--out", "run")
    assert "memory lost" in sentence
    assert "continue with" not in sentence
    assert not Path("run").exists()
    codea1(*played)
    assert not list(Path("runs").iterdir())


def test_a_round_masked_by_our_own_failure_is_told_with_its_problem_and_reason() -> None:
    played = "play", "-p", "starter", "--coder", "reference", "--tester", "examples", "-n", 7, "--out", "run"
    done = codea1(*played, "--sandbox", "tests.conftest:broken")
    assert done.exit_code == 0, done.stderr
    told = re.findall(r"note: episode (\d) \(\S+\) is masked: (.+)", done.stderr)
    assert [number for number, _ in told] == list("01234")
    assert all(reason for _, reason in told)
