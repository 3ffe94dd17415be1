"""Runs `codea1 sft-tester`."""

from __future__ import annotations

from codea1_agents.cli.console import number
from codea1_agents.cli.evaluating import eval_session, from_options
from codea1_agents.cli.sft_tester import SftTesterOptions
from codea1_agents.models.model_files import require_new
from codea1_agents.train.tiny.supervised import SupervisedSettings, fine_tuned_tester


def run_sft_tester(options: SftTesterOptions) -> None:
    """Fine-tune a tester and write the model.

    Raises:
        UserError: an option names something that does not exist, the folder cannot be written, there are no lessons, or
            an agent failed.
        SandboxError: the sandbox cannot be used at all.
    """
    settings = from_options(SupervisedSettings, options, coder=options.coder or "")
    require_new(options.out)
    with eval_session(options) as session:
        done = fine_tuned_tester(options.model, session.problems, session.sandbox, settings)
        done.found.save(options.out)
        session.page.say(
            f"{options.out}: {done.n_lessons} lessons of {done.n_problems} problems in {done.found.n_steps} steps;"
            f" loss per token {', '.join(map(number, done.found.losses))}"
        )
        session.page.finish(folder=str(options.out), **done.to_dict())
