"""Counts the files that one meets on the way from a GRPO step to the updated weights in the samplers.

    python benchmarks/journey.py

It runs one iteration in this process, with runner and learner, and notes each file of this repository of which a
function runs, in the order in which they are met. Judge, rules, sandbox, problems and book count as one and are left
out. Files whose code ran before, such as those that only build models, are not met.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
OF_THE_JUDGE = {"judging", "sandbox", "rules", "values", "python_text.py", "problems", "records", "book", "facts"}
"""Parts of `codea1_env` that count as one."""


class Journey:
    """A profile function that notes files and the calls between them."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        self.calls: set[tuple[str, str]] = set()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a call."""
        met = _place(frame)
        if event != "call" or not met:
            return
        self.files[met] = None
        before = frame.f_back
        while before is not None and not _place(before):
            before = before.f_back
        caller = _place(before) if before is not None else ""
        if caller not in ("", met):
            self.calls.add((caller, met))


def _place(frame: FrameType) -> str:
    """Return the file of a frame, relative to the repository; empty for other files and those of the judge."""
    path = Path(frame.f_code.co_filename)
    if not path.is_relative_to(ROOT) or "site-packages" in path.parts:
        return ""
    parts = path.relative_to(ROOT).parts
    is_of_judge = parts[0] == "codea1_env" and parts[1] in OF_THE_JUDGE
    return "" if is_of_judge or parts[0] == "benchmarks" else "/".join(parts)


def main() -> None:
    """Print the files and how many there are."""
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
        journey = Journey()
        threading.setprofile(journey)
        sys.setprofile(journey)
        algorithm.training_step()
        algorithm.sync_runners()
        sys.setprofile(None)
        threading.setprofile(None)
        algorithm.stop()
    print("\n".join(journey.files))
    in_train = sum(each.startswith("agents/codea1_agents/train/") for each in journey.files)
    print(f"{len(journey.files)} files, {in_train} of them in train/; {len(journey.calls)} pairs of caller and callee")


if __name__ == "__main__":
    main()
