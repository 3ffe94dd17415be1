"""What `codea1 sft-tester` does."""

from __future__ import annotations

from pathlib import Path

from codea1_agents.cli.console import number
from codea1_agents.cli.evaluating import Asked, bench
from codea1_agents.coevolution.supervised import SupervisedSettings, taught
from codea1_agents.models.model_files import require_new


def run_sft_tester(asked: Asked, model: str, settings: SupervisedSettings, out: Path) -> None:
    """Teach a tester and write it.

    Raises:
        UserError: something asked for does not exist or cannot be written, nothing can be learnt, or an agent failed.
        SandboxError: the sandbox cannot be used at all.
    """
    require_new(out)
    with bench(asked) as room:
        done = taught(model, room.problems, room.sandbox, settings)
        done.found.save(out)
        room.page.say(
            f"{out}: {done.n_lessons} lessons of {done.n_problems} problems in {done.found.n_steps} steps;"
            f" loss per token {', '.join(map(number, done.found.losses))}"
        )
        room.page.finish({"folder": str(out), **done.to_dict()})
