"""Records the numbers that a checkout computes and compares two records; changes of code must not change them.

    python benchmarks/oracles.py record FOLDER [--only NAME ...]     # five minutes on two cores
    python benchmarks/oracles.py compare OLD NEW                     # exit status 1 if any line differs
    python benchmarks/oracles.py compare OLD/play NEW/play           # of records with --only play

`record` uses the packages that Python imports; `PYTHONPATH=CHECKOUT:CHECKOUT/agents` records another checkout. All
records but the reward table come from the command line, with one process per command. A record is a text file of lines
`place = value`. It holds no times and no facts of the host. Numbers are rounded to 9 digits after the point, and to 4
in trainings, whose numbers are sums of 32-bit numbers.

- `play`: 24 runs, of humaneval and starter, four presets, three pairs of agents. 8 episodes of 3 rounds on 6 problems,
  with all replies, verdicts and rewards, and the final Mistake Book.
- `train`: 3 trainings of 3 steps by tiny random models: suites per candidate, suites per problem, a scripted tester.
  Metrics, held-out evaluation, all rollouts, the book, a sweep of settings over the rollouts.
- `eval` and `select`: on 8 problems of each source; `crossplay`: on 4.
- `game`: the bank of the first 6 problems of starter, its equilibria and questions.
- `rewards`: all presets on 133 reports, among them the cases in which the official code's rewards are known.
- `audit`: all attacks on the local sandbox: whether each failed; which tests of hostile suites were accepted, where no
  clock, address or memory limit decides it; and whether a hostile candidate passed a case.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

_CODEA1 = "from codea1_agents.cli import main; main()"
_SOURCES = ("humaneval", "starter")
_PRESETS = ("fixed", "paper", "release", "golden")
_PAIRS = (("mutant", "fuzz"), ("mutant,strength=1", "boundary,predict=program"), ("random", "invalid"))
_LEFT_OUT = frozenset({"time", "times", "guarantee", "tier", "run", "versions"})
"""Keys of times and host facts. The name of a run in a book is a digest of all settings, including versions."""
_DIGITS, _LEARNER_DIGITS = 9, 4
_SHOWN = 5
_RENAMED = {
    "suites_that_beat": "kill_rate",
    "doubted_share": "undecided_rate",
}
"""Figures that records before 2026-11-27 have under another name; settings are not part of a record."""


@dataclass(frozen=True)
class Recorder:
    """Runs the commands of one oracle and writes its records."""

    work: Path
    """Empty folder in which the commands run, so that their paths are relative."""
    into: Path

    def codea1(self, *arguments: object, done: tuple[int, ...] = (0,)) -> Any:
        """Run a command with `--json` and return its output; exit if its status is not in `done`."""
        command = [sys.executable, "-c", _CODEA1, *map(str, arguments), "--json"]
        ran = subprocess.run(command, cwd=self.work, env=_environment(), capture_output=True, text=True, check=False)
        if ran.returncode not in done:
            sys.exit(f"codea1 {' '.join(command[3:])}: exit status {ran.returncode}\n{ran.stderr[-4000:]}")
        return json.loads(ran.stdout)

    def rows(self, path: str) -> list[Any]:
        """Return the lines of a JSON Lines file that a command wrote."""
        return [json.loads(line) for line in (self.work / path).read_text().splitlines()]

    def keep(self, name: str, found: dict[str, Any], *, digits: int = _DIGITS) -> None:
        """Write one record."""
        self.into.mkdir(parents=True, exist_ok=True)
        (self.into / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines_of(found, digits=digits)))


def _environment() -> dict[str, str]:
    """Return the environment variables: one thread, because the split of sums decides their last bits."""
    paths = [str(Path(each).resolve()) for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1", "RAY_AUTH_MODE": "disabled"}


def lines_of(found: Any, place: str = "", *, digits: int = _DIGITS) -> Iterator[str]:
    """Yield one line per value, without values that differ from run to run."""
    if isinstance(found, dict) and found:
        for key in sorted(found):
            if key not in _LEFT_OUT and not key.endswith("_s"):
                yield from lines_of(found[key], f"{place}.{key}" if place else key, digits=digits)
    elif isinstance(found, list) and found:
        for number, each in enumerate(found):
            yield from lines_of(each, f"{place}[{number}]", digits=digits)
    else:
        value = round(found, digits) + 0.0 if isinstance(found, float) else found  # + 0.0: no -0.0
        yield f"{place} = {json.dumps(value, ensure_ascii=False)}"


# -- the oracles -----------------------------------------------------------------------------------


def play(recorder: Recorder) -> None:
    for source, rules, (number, (coder, tester)) in product(_SOURCES, _PRESETS, enumerate(_PAIRS)):
        run = f"{source}-{rules}-{number}"
        agents = ("--coder", coder, "--tester", tester)
        rounds = ("-n", 8, "--limit", 6, "--rounds", 3, "--rules", rules)
        summary = recorder.codea1("play", "-p", source, *agents, *rounds, "--out", run)
        book = recorder.codea1("book", "show", run, "--top", 1000)
        recorder.keep(run, {"summary": summary, "book": book, "episodes": recorder.rows(f"{run}/episodes.jsonl")})


def train(recorder: Recorder) -> None:
    root = Path(__file__).parents[1]
    models = runpy.run_path(str(root / "tests" / "support" / "language_models.py"))
    for seed, role in enumerate(("coder", "tester")):
        models["phrase_folder"](recorder.work / role, models["PHRASES"], seed)
    rows = ({"id": f"toy/{number}", **_INCREMENT} for number in range(6))
    (recorder.work / "toys.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (recorder.work / "training.toml").write_text(_TRAINING)
    for run, settings in _TRAININGS.items():
        chosen = [part for setting in settings for part in ("--set", setting)]
        recorder.codea1("train", "training.toml", *chosen, "--out", run, "-q")
        found = {
            "metrics": recorder.rows(f"{run}/metrics.jsonl"),
            "samples": [
                recorder.rows(str(path.relative_to(recorder.work) / "episodes.jsonl"))
                for path in sorted((recorder.work / run / "samples").iterdir())
            ],
            "book": recorder.codea1("book", "show", run, "--top", 1000),
        }
        recorder.keep(run, found, digits=_LEARNER_DIGITS)


_INCREMENT = {
    "statement": 'def f(x):\n    """Return x plus one."""\n',
    "entry_point": "f",
    "solution": "def f(x):\n    return x + 1\n",
    "golden": [{"expression": "f(1)", "expected": "2"}, {"expression": "f(-1)", "expected": "0"}],
}
_TRAINING = """\
run.steps = 3
game.problems = "toys.jsonl"
agents.coder = {model = "coder", max_tokens = 2}
agents.tester = {model = "tester", max_tokens = 2}
rollout = {problems_per_step = 6, problems_at_once = 3, n_candidates = 6, n_suites = 4}
training = {lr = 3e-3, warmup_steps = 0, minibatches_per_epoch = 1, micro_batch_size = 0}
cluster = {torch_threads = 1, cpus_per_env_runner = 0.5}
checkpoints = {every = 0, export = false}
evaluation = {every = 1, problems = "toys.jsonl", samples = 4}
logging = {tensorboard = false, samples_every = 1, samples = 3}
"""
_TRAININGS = {
    "per-candidate": (),
    "per-problem": ("rollout.suites_per=problem", "game.rules=release", "game.tester_view=black_box"),
    "scripted-tester": ("agents.tester={agent='boundary'}", "game.rules=paper", "rollout.keep_zero_std_groups=true"),
}


def evaluations(recorder: Recorder) -> None:
    kinds = {
        "coder": ("--agent", "mutant", "--samples", 4),
        "tester": ("--agent", "fuzz", "--tests", 3, "--mutants", 12),
    }
    for source, (kind, options) in product(_SOURCES, kinds.items()):
        run = f"{kind}-{source}"
        figures = recorder.codea1("eval", kind, *options, "--problems", source, "--limit", 8, "--out", run)
        recorder.keep(run, {"figures": figures, "records": recorder.rows(f"{run}/records.jsonl")})


def select(recorder: Recorder) -> None:
    agents = ("--coder", "mutant", "--tester", "boundary", "-n", 4, "-m", 3)
    for source in _SOURCES:
        figures = recorder.codea1("eval", "select", *agents, "--problems", source, "--limit", 8, "--out", source)
        recorder.keep(source, {"figures": figures, "records": recorder.rows(f"{source}/records.jsonl")})


def crossplay(recorder: Recorder) -> None:
    players = ("mutant,strength=1", "reference", "--coders", "random", "--testers", "boundary,predict=program")
    for source in _SOURCES:
        figures = recorder.codea1("crossplay", *players, "-p", source, "--limit", 4, "-n", 2, "--out", source)
        stored = {name: recorder.rows(f"{source}/{name}.jsonl") for name in ("programs", "suites")}
        recorder.keep(source, {"figures": figures, **stored})


def game(recorder: Recorder) -> None:
    found = recorder.codea1("game", "solve", "starter", "--limit", 6, "--save", "all.bank.jsonl")
    recorder.keep("solve", {"figures": found, "bank": recorder.rows("all.bank.jsonl")})
    recorder.keep("questions", recorder.codea1("game", "questions", "all.bank.jsonl", "--rounds", 5))


def rewards(recorder: Recorder) -> None:
    from codea1_env.facts.verdicts import ProblemReport  # noqa: PLC0415
    from codea1_env.rules.rewards import score_group  # noqa: PLC0415  -- not needed to compare records
    from codea1_env.rules.ruleset import PRESETS  # noqa: PLC0415

    found = {
        f"{rules} {name}": [
            {"coder": _parts(each.coder), "testers": [_parts(tester) for tester in each.testers]}
            for each in score_group(ProblemReport("row", (report,)), PRESETS[rules])
        ]
        for rules in sorted(PRESETS)
        for name, report in _reports()
    }
    recorder.keep("table", found)


def _parts(reward: Any) -> dict[str, Any]:
    return {"value": reward.value, **{f"part {part.name}": part.value for part in reward.parts}}


def _reports() -> Iterator[tuple[str, Any]]:
    """Yield reports by name: the cases of the suite by kind, and the replayed cases that the candidate passes."""
    from codea1_env.facts import verdicts  # noqa: PLC0415
    from codea1_env.facts.submissions import Candidate, TestCase  # noqa: PLC0415

    def cases(n_passed: int, n_failed: int, n_wrong: int = 0) -> tuple[verdicts.CaseReport, ...]:
        """Return cases, the failed ones last; the predictions of the last `n_wrong` are wrong."""
        n = n_passed + n_failed
        return tuple(
            verdicts.CaseReport(
                verdicts.ValidCase(TestCase(f"f({place})", "0", direct=True), b"0", place < n - n_wrong),
                verdicts.Verdict.PASSED if place < n_passed else verdicts.Verdict.WRONG_ANSWER,
            )
            for place in range(n)
        )

    written = ((0, 0), (1, 0), (1, 1), (4, 2), (4, 4), (5, 5), (8, 0), (8, 3), (8, 8), (12, 4), (12, 12))
    replays = (None, (8, 0), (0, 8), (5, 3))
    for (n_valid, n_failed), n_invalid, replayed in product(written, (0, 2, 8), replays):
        judged = cases(n_valid - n_failed, n_failed, min(n_invalid, n_valid))
        suite = verdicts.SuiteReport(
            verdicts.ValidSuite(tuple(each.case for each in judged), (), n_invalid, 0.0), judged
        )
        name = f"{n_valid} valid {n_invalid} invalid {n_failed} failed, replayed {replayed}"
        history = cases(*replayed) if replayed else ()
        yield (
            name,
            verdicts.CandidateReport(Candidate("def f(n): ..."), verdicts.Verdict.PASSED, "", history, (suite,), 0.5),
        )
    silent = verdicts.SuiteReport(verdicts.ValidSuite((), (), 0, 0.25), ())
    yield (
        "invalid candidate",
        verdicts.CandidateReport(Candidate("def"), verdicts.Verdict.SYNTAX_ERROR, "", (), (silent,), 0.0),
    )


def audit(recorder: Recorder) -> None:
    found = recorder.codea1("sandbox", "audit", "-q", done=(0, 1))
    attacks = {each["attack"]: [each["kind"], each["result"], *_stable_words(each)] for each in found["attacks"]}
    recorder.keep("verdicts", {"is_sound": found["is_sound"], "counts": found["counts"], "attacks": attacks})


def _stable_words(attack: dict[str, str]) -> list[str]:
    """Return the parts of the sentence about an attack that are the same in each run."""
    words = attack["sentence"].split(", ")
    if attack["kind"] == "candidate":  # one verdict per case; which failure it is often depends on a race
        return sorted({word if word in ("passed", "unknowable") else "failed" for word in words})
    is_random = any(word in attack["sentence"] for word in ("time_limit", "flaky", "memory", "too_many_calls"))
    return words if attack["kind"] == "suite" and not is_random else []


ORACLES: dict[str, Callable[[Recorder], None]] = {
    "play": play,
    "train": train,
    "eval": evaluations,
    "select": select,
    "crossplay": crossplay,
    "game": game,
    "rewards": rewards,
    "audit": audit,
}


# -- the two commands ------------------------------------------------------------------------------


def record(folder: Path, names: list[str]) -> None:
    """Write the records of some oracles, each into the folder of its name."""
    import codea1_agents  # noqa: PLC0415  -- not needed to compare records
    import codea1_env  # noqa: PLC0415

    for package in (codea1_env, codea1_agents):
        print(f"recording {Path(str(package.__file__)).parent}", file=sys.stderr)
    for name in names:
        began = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="codea1-oracles-") as work:
            ORACLES[name](Recorder(Path(work), folder / name))
        print(f"{name}: {time.perf_counter() - began:.0f} s", file=sys.stderr)


def differences(old: Path, new: Path) -> list[str]:
    """Return the lines to print: for each file that differs between two folders, its name and its first differences."""
    report = []
    of_folder = [{str(path.relative_to(root)): path for path in root.rglob("*.txt")} for root in (old, new)]
    for name in sorted(of_folder[0].keys() | of_folder[1].keys()):
        if missing := [str(root) for root, files in zip((old, new), of_folder, strict=True) if name not in files]:
            report.append(f"{name}: not in {missing[0]}")
            continue
        was, now = (_with_present_names(files[name].read_text()).splitlines() for files in of_folder)
        gone, come = _without(was, now), _without(now, was)
        if gone or come:
            report.append(f"{name}: {len(gone)} lines only in {old}, {len(come)} only in {new}; the first:")
            report += [f"  - {line}" for line in gone[:_SHOWN]] + [f"  + {line}" for line in come[:_SHOWN]]
    return report


def _with_present_names(text: str) -> str:
    for before, present in _RENAMED.items():
        text = re.sub(rf"\b{before}\b", present, text)
    return text


def _without(lines: list[str], others: list[str]) -> list[str]:
    known = set(others)
    return [line for line in lines if line not in known]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="write records of the packages that Python imports")
    recording.add_argument("folder", type=Path)
    recording.add_argument("--only", nargs="+", choices=ORACLES, default=list(ORACLES), metavar="NAME")
    comparing = commands.add_parser("compare", help="print the differences of two folders of records")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    options = parser.parse_args()
    if options.command == "record":
        record(options.folder, options.only)
        return
    for folder in (options.old, options.new):
        if not any(folder.rglob("*.txt")):
            parser.error(f"{folder}: holds no records")
    found = differences(options.old, options.new)
    print("\n".join(found) if found else "no difference")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
