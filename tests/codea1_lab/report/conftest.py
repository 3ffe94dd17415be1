"""Runs with hostile texts in them, and their reports."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from codea1_env.facts.judge_version import JUDGE_VERSION
from codea1_env.facts.submissions import Candidate, TestCase
from codea1_env.facts.verdicts import CandidateReport, CaseReport, ValidCase, Verdict
from codea1_env.problems import Problem, load_problems
from codea1_env.rules.mistake_book import BookDelta
from codea1_env.rules.rewards import CandidateRewards, Reward, RewardPart
from codea1_env.rules.ruleset import preset
from codea1_env.runs.config import problems_digest
from codea1_env.runs.folder import RunFolder
from codea1_env.runs.records import EpisodeRecord, RoundRecord, SuiteRecord, to_line
from codea1_lab.report.writing import read_run, write_report
from tests.support.reports import judged_round, suite_of
from tests.support.runs import run_config
from tests.support.toys import fenced

FIXED = preset("fixed")
HOSTILE = (
    "def f(x):\n"
    "    # </script><script>document.title='pwned'</script><img src=x onerror=\"document.title='pwned'\">\n"
    "    return x  # \u202eevil\u202c \x1b[31m --> ]]> &lt; ' \" ``` ${1+1} <!--"
)


def case_of(number: int, verdict: Verdict, expression: str = "f({})", actual: str = "") -> CaseReport:
    tested = TestCase(expression.replace("{}", str(number)), str(number), direct=True, line=number)
    return CaseReport(ValidCase(tested, b"%d" % number, True, is_example=number == 1), verdict, actual)


def reward_of(name: str, value: float) -> Reward:
    return Reward.of(RewardPart(name, value, 1.0))


def beaten_report(n: int) -> CandidateReport:
    """A program that fails n new cases."""
    cases = (case_of(number, Verdict.WRONG_ANSWER, actual="7") for number in range(2, 2 + n))
    return CandidateReport(Candidate("def f(x): pass"), Verdict.PASSED, "", (), (suite_of(*cases),))


def episode_of(number: int, problem: Problem, n_rounds: int, program: str) -> EpisodeRecord:
    """Every third program is beaten, every tenth is invalid."""
    is_valid, is_beaten, name = number % 10 != 9, number % 3 == 0, f"{number:016x}"
    verdicts = [Verdict.WRONG_ANSWER if is_beaten and i == 0 else Verdict.PASSED for i in range(4)]
    cases = [case_of(i, each, actual="" if each is Verdict.PASSED else "<b>7</b>") for i, each in enumerate(verdicts)]
    candidate = CandidateReport(
        Candidate(program),
        Verdict.PASSED if is_valid else Verdict.SYNTAX_ERROR,
        "" if is_valid else "no <i>Python</i>",
        (case_of(9, Verdict.PASSED),) if is_valid else (),
        (suite_of(*cases if is_valid else ()),),
    )
    coder = reward_of("pass_new", 0.75 if is_beaten else float(is_valid))
    facts = {
        "episode_id": name,
        "coder_reply": fenced(program),
        "tester_reply": "assert f(0) == 0" if is_valid else None,
        "rewards": CandidateRewards(coder, (reward_of("validity", 0.25 * is_beaten),)),
        "book": BookDelta(added=1, size=number + 1),
    }
    played = [judged_round(candidate, FIXED, problem, round=n, **facts) for n in range(n_rounds)]
    about = {"judge_version": JUDGE_VERSION, "episode": number, "episode_id": name, "problem_id": problem.id}
    return EpisodeRecord(**about, seed=number, rounds=tuple(map(RoundRecord.of, played)))


def written_run(path: Path, n_episodes: int, program: Callable[[int], str]) -> Path:
    """A run on the first problems of `starter`, one episode each in turn."""
    problems = load_problems("starter", limit=6)
    config = run_config(
        problems_digest=problems_digest(problems),
        n_problems=len(problems),
        coder="a <b>coder</b>",
        tester="a tester",
        episodes=n_episodes,
        limit=6,
        versions={"codea1-env": "0"},
    )
    with RunFolder.create(path, config):
        pass
    with (path / "episodes.jsonl").open("wb") as lines:  # without a sync per line
        for number in range(n_episodes):
            problem = problems[number % len(problems)]
            lines.write(to_line(episode_of(number, problem, 1 + number % 2, program(number))))
    return path


@pytest.fixture(scope="session")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """30 episodes; the first program is hostile."""
    path = tmp_path_factory.mktemp("runs") / "small"
    return written_run(path, 30, lambda number: HOSTILE if number == 0 else f"def f(x):\n    return x + {number}\n")


@pytest.fixture
def training(small_run: Path, tmp_path: Path) -> Path:
    """A training run of 30 steps that kept two duels of one candidate and one of another."""
    path = tmp_path / "training"
    sample = path / "samples" / "step-0004"
    sample.mkdir(parents=True)
    shutil.copy(small_run / "config.toml", sample)
    lines = [json.loads(line) for line in (small_run / "episodes.jsonl").read_text().splitlines()[:3]]
    for number, (line, name) in enumerate(zip(lines, ("0-0", "0-1", "1-0"), strict=True)):
        line |= {"episode": number, "episode_id": f"00000007-{name}", "problem_id": lines[0]["problem_id"]}
        line["rounds"] = line["rounds"][:1]
    (sample / "episodes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (path / "config.toml").write_text('about = "a toy"\n[run]\nsteps = 30\n')
    (path / "run.json").write_text(json.dumps({"judge_version": JUDGE_VERSION}))
    written = [{"step": 0, "evaluation": {"problems": 3.0, "coder_pass_at_1": 0.25}}]
    for step in range(1, 31):
        figures = {"coder_reward": step / 30, "book_size": float(step)}
        figures |= {"tester_reward": 0.5, "book_added": 1.0, "coder_kl": 0.1, "tests_killing": 1.0}
        figures |= {"tests_written": 4.0, "tests_lost_wrong_prediction": 3.0}
        times = {"generate_s": 1.0, "judge_s": 2.0, "learn_s": 3.0, "sync_s": 0.0}
        alarms = {"no_spread_coder": f"said in step {step}"} if step > 28 else {}
        written.append({"step": step, "figures": figures, "times": times, "alarms": alarms})
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in written))
    return path


@pytest.fixture(scope="session")
def changed_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two episodes; in the second round of the second, program and suites are others, and hostile."""
    path = written_run(tmp_path_factory.mktemp("runs") / "changed", 2, lambda number: "def f(x):\n    return x\n")
    first, second = path.joinpath("episodes.jsonl").read_text().splitlines()
    record = EpisodeRecord.model_validate_json(second)
    old, new = record.rounds
    program = f"{HOSTILE}\n    # {'y' * 1_000_000}"
    candidate = new.candidate.model_copy(update={"program": program})
    suites = (
        SuiteRecord.of(suite_of(*(case_of(n, Verdict.RUNTIME_ERROR, HOSTILE) for n in range(6)))),
        SuiteRecord.of(suite_of(case_of(0, Verdict.PASSED, "f('" + "z" * 1_000_000 + "')"))),
    )
    rewards = new.rewards.model_copy(update={"testers": new.rewards.testers * 2})
    changed = new.model_copy(update={"candidate": candidate, "suites": suites, "rewards": rewards})
    rounds = (old.model_copy(update={"suites": old.suites * 2, "rewards": rewards}), changed)
    written = to_line(record.model_copy(update={"rounds": rounds})).decode()
    path.joinpath("episodes.jsonl").write_text(f"{first}\n{written}")
    return path


@pytest.fixture(scope="session")
def several_report(small_run: Path, changed_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs in one report; the second has a hostile name."""
    path = tmp_path_factory.mktemp("reports") / "several.html"
    runs = [read_run(small_run, "small"), read_run(changed_run, "</script><b onclick=alert(1)>changed\u202e")]
    write_report(runs, path, "several")
    return path


@pytest.fixture(scope="session")
def small_report(small_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reports") / "small.html"
    write_report([read_run(small_run, "small </title><script>1</script>")], path, "small </title><b>")
    return path


@pytest.fixture(scope="session")
def large_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """10,000 episodes, each with a program of its own of two thousand characters."""
    path = written_run(tmp_path_factory.mktemp("runs") / "large", 10, lambda number: f"PROGRAM {number}")
    config, lines = path / "config.toml", (path / "episodes.jsonl").read_text().splitlines(keepends=True)
    config.write_text(config.read_text().replace("episodes = 10\n", "episodes = 10000\n"))

    def program(number: int) -> str:
        body = "".join(f"    y = x * {number * k % 997} - {number % (k + 2)}\\n" for k in range(70))
        return f"def f(x):\\n{body}    return x + {number}"

    with (path / "episodes.jsonl").open("w") as file:  # cut from the same cloth: building records takes long
        for number in range(10_000):
            line = lines[number % 10].replace(f"PROGRAM {number % 10}", program(number))
            file.write(line.replace(f'"episode":{number % 10},', f'"episode":{number},', 1))
    return path
