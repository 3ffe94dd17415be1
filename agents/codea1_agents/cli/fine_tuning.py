"""What `codea1 sft-tester` does."""

from __future__ import annotations

from codea1_agents.cli.console import number
from codea1_agents.cli.evaluating import bench, named_alike
from codea1_agents.cli.sft_tester import SftTesterOptions
from codea1_agents.models.model_files import require_new
from codea1_agents.train.tiny.supervised import SupervisedSettings, fine_tuned_tester


def run_sft_tester(asked: SftTesterOptions) -> None:
    """Teach a tester and write it.

    Raises:
        UserError: something asked for does not exist or cannot be written, nothing can be learnt, or an agent failed.
        SandboxError: the sandbox cannot be used at all.
    """
    settings = named_alike(SupervisedSettings, asked, coder=asked.coder or "")
    require_new(asked.out)
    with bench(asked) as room:
        done = fine_tuned_tester(asked.model, room.problems, room.sandbox, settings)
        done.found.save(asked.out)
        room.page.say(
            f"{asked.out}: {done.n_lessons} lessons of {done.n_problems} problems in {done.found.n_steps} steps;"
            f" loss per token {', '.join(map(number, done.found.losses))}"
        )
        room.page.finish({"folder": str(asked.out), **done.to_dict()})
