"""Counts the functions and files that one meets on four ways through the code.

    python benchmarks/journey.py reply      # `env.step` on the tester's turn; the sandbox is one
    python benchmarks/journey.py grpo       # from a GRPO step to the updated weights in the samplers; the judge is one
    python benchmarks/journey.py play       # `codea1 play` from its arguments to the table; environment, agents are one
    python benchmarks/journey.py program    # a program to its verdict on golden tests, with all of the sandbox

It takes the way in this process and notes each call of a function of this repository. It prints the files in the order
in which they are met, and counts:

- files, and pairs of files of which one calls the other
- functions: distinct ones with a name; in brackets with comprehensions and lambdas, as CPython 3.11 runs them
- entries: how often the next function that is called, with or without a name, is in another file than the one before
- returns: how often this leads from one file to another and straight back (A-B-A)

What runs while a module is imported does not count, nor does what ran before, such as building models, or what runs in
the sandbox's own processes. Threads are followed one by one. The first run starts the sandbox, so that of `program` can
differ by a few.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any, Self

ROOT = Path(__file__).parents[1]
ENV, AGENTS = "codea1_env/", "agents/codea1_agents/"
OF_THE_JUDGE = (
    "judging",
    "sandbox",
    "rules",
    "values",
    "python_text.py",
    "problems",
    "records",
    "book",
    "facts",
    "declared",
)


class Journey:
    """A profile function that notes functions, their files and the calls between them."""

    def __init__(self, as_one: Mapping[str, str]) -> None:
        """Begin with no files.

        Args:
            as_one: beginnings of paths, with the place as which all of them count.
        """
        self.files: dict[str, None] = {}
        self.calls: set[tuple[str, str]] = set()
        self._functions: set[tuple[str, str]] = set()
        self._visits: dict[int, list[str]] = {}
        """By thread, the files in the order in which they are entered."""
        self._as_one = as_one

    def __enter__(self) -> Self:
        threading.setprofile(self)
        sys.setprofile(self)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a call."""
        met = self._place(frame) if event == "call" else ""
        if not met or _is_imported(frame):
            return
        self.files[met] = None
        self._functions.add((met, frame.f_code.co_qualname))
        visits = self._visits.setdefault(threading.get_ident(), [])
        if visits[-1:] != [met]:
            visits.append(met)
        before = frame.f_back
        while before is not None and not self._place(before):
            before = before.f_back
        caller = self._place(before) if before is not None else ""
        if caller not in ("", met):
            self.calls.add((caller, met))

    def counts(self) -> str:
        """Return the counts of the module's docstring in one line."""
        n_named = sum(not name.endswith(">") for _, name in self._functions)
        visits = self._visits.values()
        n_returns = sum(first == third for way in visits for first, third in zip(way, way[2:], strict=False))
        return (
            f"{len(self.files)} files, {len(self.calls)} pairs of caller and callee;"
            f" {n_named} functions ({len(self._functions)}), {sum(map(len, visits))} entries, {n_returns} returns"
        )

    def _place(self, frame: FrameType) -> str:
        """Return the file of a frame, relative to the repository; empty for those that are not noted."""
        path = Path(frame.f_code.co_filename)
        if not path.is_relative_to(ROOT) or "site-packages" in path.parts:
            return ""
        place = path.relative_to(ROOT).as_posix()
        if place.startswith("benchmarks/"):
            return ""
        return next((name for start, name in self._as_one.items() if place.startswith(start)), place)


def _is_imported(frame: FrameType | None) -> bool:
    """Whether a frame runs only because a module is imported: a module or class, or what these call."""
    while frame is not None:
        if not frame.f_code.co_flags & inspect.CO_OPTIMIZED and frame.f_code.co_name != "<module>":
            return True
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def reply() -> Journey:
    """Play a tester's turn in the game of two agents."""
    from codea1_env import code_a1_v0  # noqa: PLC0415

    env = code_a1_v0.env(problems="starter")
    env.reset(seed=0, options={"problem_id": "starter/count_carries"})
    env.step("```python\ndef count_carries(a, b):\n    return 0\n```")
    with Journey({f"{ENV}sandbox/": "the sandbox"}) as journey:
        env.step("```python\nassert count_carries(5, 5) == 1\nassert count_carries(1, 2) == 0\n```")
    assert env.rewards["tester_0"] > 0
    env.close()
    return journey


def grpo_step() -> Journey:
    """Train for one step."""
    from grpo_against_trl import make_model, make_problems  # noqa: PLC0415

    from codea1_agents.train.grpo import GRPOConfig  # noqa: PLC0415

    suites = [f"\n```python\nassert f({x}) == {x + 1}\n```\n" for x in range(4)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        coder, tester = make_model(folder / "coder"), make_model(folder / "tester", suites)
        algorithm = (
            GRPOConfig()
            .problems(make_problems(folder / "problems.jsonl"))
            .llm_agents(coder=coder, tester=tester)
            .training(n_candidates=8, n_suites=4, problems_per_step=4, minibatches_per_epoch=1)
            .training(max_tokens={"coder": 2, "tester": 2})
            .build_algo()
        )
        with Journey(dict.fromkeys((f"{ENV}{part}" for part in OF_THE_JUDGE), "the judge")) as journey:
            algorithm.training_step()
            algorithm.sync_runners()
        algorithm.stop()
    return journey


def play() -> Journey:
    """Play four games of two scripted agents."""
    from codea1_agents.cli import main as codea1  # noqa: PLC0415

    told = ["play", "--problems", "starter", "--coder", "mutant", "--tester", "fuzz", "--episodes", "4"]
    with (
        Journey({ENV: "the environment", f"{AGENTS}scripted/": "the agents"}) as journey,
        contextlib.suppress(SystemExit),
    ):
        sys.argv = ["codea1", *told]
        codea1()
    return journey


def program() -> Journey:
    """Run a program on the golden tests of its problem."""
    from codea1_env import Referee  # noqa: PLC0415

    referee = Referee("starter")
    with Journey({}) as journey:  # the sandbox's thread is noted if it starts here
        (found,) = referee.golden(["starter/count_carries"], ["def count_carries(a, b):\n    return 0\n"])
    assert not found.passed
    return journey


def main() -> None:
    """Print the files and how many there are."""
    ways = {"reply": reply, "grpo": grpo_step, "play": play, "program": program}
    if len(sys.argv) != 2 or sys.argv[1] not in ways:
        sys.exit(f"name one way: {', '.join(ways)}")
    journey = ways[sys.argv[1]]()
    print("\n".join(journey.files))
    print(journey.counts())


if __name__ == "__main__":
    main()
