"""Counts the files that one meets on the way of a GRPO step, or of a tester's reply to its reward.

    python benchmarks/journey.py            # from a GRPO step to the updated weights in the samplers
    python benchmarks/journey.py reply      # `env.step` on the tester's turn

It runs the step in this process, with runner and learner, and notes each file of this repository of which a function
runs, in the order in which they are met. In a GRPO step, judge, rules, sandbox, problems and book count as one and are
left out; on the way of a reply, the sandbox counts as one. Files whose code ran before, such as those that only build
models, are not met.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Collection
from pathlib import Path
from types import FrameType
from typing import Any, Self

ROOT = Path(__file__).parents[1]
OF_THE_JUDGE = {"judging", "sandbox", "rules", "values", "python_text.py", "problems", "records", "book", "facts"}
"""Parts of `codea1_env` that count as one."""


class Journey:
    """A profile function that notes files and the calls between them."""

    def __init__(self, left_out: Collection[str] = (), as_one: Collection[str] = ()) -> None:
        """Begin with no files.

        Args:
            left_out: parts of `codea1_env` that are not noted.
            as_one: parts of `codea1_env` that are one place each.
        """
        self.files: dict[str, None] = {}
        self.calls: set[tuple[str, str]] = set()
        self._left_out, self._as_one = left_out, as_one

    def __enter__(self) -> Self:
        threading.setprofile(self)
        sys.setprofile(self)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a call."""
        met = self._place(frame)
        if event != "call" or not met:
            return
        self.files[met] = None
        before = frame.f_back
        while before is not None and not self._place(before):
            before = before.f_back
        caller = self._place(before) if before is not None else ""
        if caller not in ("", met):
            self.calls.add((caller, met))

    def _place(self, frame: FrameType) -> str:
        """Return the file of a frame, relative to the repository; empty for those that are not noted."""
        path = Path(frame.f_code.co_filename)
        if not path.is_relative_to(ROOT) or "site-packages" in path.parts:
            return ""
        room, *parts = path.relative_to(ROOT).parts
        part = parts[0] if room == "codea1_env" else ""
        if room == "benchmarks" or part in self._left_out:
            return ""
        return "/".join((room, *(parts[:1] if part in self._as_one else parts)))


def reply() -> Journey:
    """Play a tester's turn in the game of two agents."""
    from codea1_env import code_a1_v0  # noqa: PLC0415

    env = code_a1_v0.env(problems="starter")
    env.reset(seed=0, options={"problem_id": "starter/count_carries"})
    env.step("```python\ndef count_carries(a, b):\n    return 0\n```")
    with Journey(as_one={"sandbox"}) as journey:
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
        with Journey(left_out=OF_THE_JUDGE) as journey:
            algorithm.training_step()
            algorithm.sync_runners()
        algorithm.stop()
    return journey


def main() -> None:
    """Print the files and how many there are."""
    journey = {"grpo": grpo_step, "reply": reply}[sys.argv[1] if len(sys.argv) > 1 else "grpo"]()
    print("\n".join(journey.files))
    in_train = sum(each.startswith("agents/codea1_agents/train/") for each in journey.files)
    print(f"{len(journey.files)} files, {in_train} of them in train/; {len(journey.calls)} pairs of caller and callee")


if __name__ == "__main__":
    main()
