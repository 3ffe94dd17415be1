"""Runs `codea1 export model`."""

from __future__ import annotations

from codea1_agents.cli.console import Page
from codea1_agents.cli.export import ExportModelOptions
from codea1_agents.cli.training_runs import require_training


def run_export_model(options: ExportModelOptions) -> None:
    """Write a trained model.

    Raises:
        UserError: there is no such run or role, or the directory cannot be written.
    """
    require_training()
    from codea1_agents.train.loop.export import export_model  # noqa: PLC0415  heavy

    page = Page(as_json=options.as_json)
    with page.apart():
        export_model(options.source, options.role, options.out)
    page.say(f"{options.role} written to {options.out}")
    page.finish(role=options.role, out=str(options.out))
