"""Runs one cell in its own process: `python -m codea1_lab.experiments.cell FOLDER CELL`."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from codea1_agents.evaluation.export import export_tests, write_rows
from codea1_agents.interrupts import sigterm_interrupts
from codea1_agents.play.versions import processor_kind
from codea1_agents.train.settings.loading import apply_changes
from codea1_agents.train.settings.options import TrainingConfig
from codea1_agents.train.settings.run_parts import ROLES
from codea1_agents.train.tiny.tiny_agent import tiny_agent
from codea1_env.agent import Role
from codea1_env.errors import UserError
from codea1_env.facts.judge_version import JUDGE_VERSION
from codea1_env.problems import load_problems
from codea1_env.records.locks import hold_folder, hold_lock
from codea1_env.records.whole_files import new_folder, remove_folder, write_whole_folder
from codea1_env.sandbox import load_sandbox
from codea1_lab.experiments.declaration import Experiment, Pretraining
from codea1_lab.experiments.folder import stored_experiment
from codea1_lab.experiments.graders import ATTACKS, GRADERS
from codea1_lab.experiments.grid import Cell, cells_of, fingerprint, needs
from codea1_lab.experiments.measuring import measure_cell, starting_agent
from codea1_lab.experiments.models import Models
from codea1_lab.experiments.results import CellResult, CurvePoint, write_result

_SFT_LR = 1e-3  # as in training: these models are small
_SFT_SAMPLES, _SFT_REPLY_TOKENS = 8, 56
_SUPERVISING_SUITES = 4  # per problem: they hold about as many tests as there are golden ones
_LATE = 10  # the last steps, whose mean counts as the end of a training


def run_cell(folder: Path, experiment: Experiment, cell: Cell) -> CellResult:
    """Train and measure a cell, or do what is missing; write and return its result.

    Args:
        folder: the experiment's folder.
        experiment: declares the cell.
        cell: to run; the cells that it needs are done.

    Raises:
        UserError: its system cannot be trained as declared, or another process runs the cell.
    """
    place = folder / "cells" / cell.name
    place.mkdir(parents=True, exist_ok=True)
    with hold_folder(place):  # a new command starts a second process if the first command was killed
        system = experiment.system(cell.system)
        models = _models_to_train(folder, experiment, cell)
        curve: tuple[CurvePoint, ...] = ()
        if system.preset:
            models, curve = _train(folder, experiment, cell, models)
        models.write(place)
        view = experiment.training(system).game.tester_view
        base = _base(folder, experiment, cell.base)
        player = partial(starting_agent, experiment.model) if experiment.model else tiny_agent
        figures = measure_cell(
            models,
            experiment.evaluation,
            player,
            base=base,
            together=system.together,
            seed=cell.seed,
            view=view,
            store=place / "evaluation" if experiment.model else None,
        )
        if curve:
            figures |= {"cpu_s": curve[-1].cpu_s, **_late(curve)}
        result = CellResult(
            judge_version=JUDGE_VERSION,
            system=cell.system,
            base=cell.base,
            seed=cell.seed,
            figures=figures,
            curve=curve,
            declared=fingerprint(experiment, cell.system),
            processor=processor_kind(),
        )
        write_result(place, result)
        return result


def _late(curve: Sequence[CurvePoint]) -> dict[str, float]:
    """Return the means of the training's figures over its last steps, as `training/...`."""
    last = [point.figures for point in curve[-_LATE:]]
    names = dict.fromkeys(name for figures in last for name in figures if "/" not in name)
    return {f"training/{name}": round(fmean(each[name] for each in last if name in each), 6) for name in names}


def _models_to_train(folder: Path, experiment: Experiment, cell: Cell) -> Models:
    """Return the models of a cell before its training; fine-tune its tester if that is declared."""
    models = _starting_models(folder, experiment, cell)
    if experiment.system(cell.system).sft:
        return _fine_tune(folder / "cells" / cell.name, experiment, cell, models)
    return models


def _starting_models(folder: Path, experiment: Experiment, cell: Cell) -> Models:
    base = _base(folder, experiment, cell.base)
    system, taken = experiment.system(cell.system), needs(experiment, cell)

    def of(name: str, role: Role, step: int) -> Path:
        if not name:
            return base
        if step:
            return _model_after(step, folder, experiment, taken[name], role, folder / "cells" / cell.name)
        models = Models.read(folder / "cells" / taken[name].name)
        return models.coder if role == "coder" else models.tester

    return Models(
        coder=of(system.coder_from, "coder", system.coder_step),
        tester=of(system.tester_from, "tester", system.tester_step),
    )


def _model_after(step: int, folder: Path, experiment: Experiment, source: Cell, role: Role, place: Path) -> Path:
    """Return the directory of a cell's model after a step, in the folder `place`; make it if it is not there."""
    from codea1_agents.train.loop.export import export_model  # noqa: PLC0415  heavy
    from codea1_agents.train.loop.folder import checkpoint_of  # noqa: PLC0415

    target = place / f"{role}-{step}"
    if not target.exists():
        checkpoint = checkpoint_of(folder / "cells" / source.name / "run", step)
        config = experiment.training(experiment.system(source.system))
        paths = _model_paths(config, _models_to_train(folder, experiment, source))
        write_whole_folder(target, lambda draft: export_model(checkpoint, role, draft, paths))
    return target


def _model_paths(config: TrainingConfig, models: Models) -> dict[str, str]:
    """Return the settings that say where a training's models are, by dotted key."""
    paths = {"coder": models.coder, "tester": models.tester, "shared": models.coder}
    agents = config.agents
    if agents.base:  # which adapters cannot replace
        paths = {"coder": models.coder}
    return {agents.key_of(name): str(path.resolve()) for name, path in paths.items() if agents.model_of(name)}


def _base(folder: Path, experiment: Experiment, seed: int) -> Path:
    """Return the directory of a base model; the first cell that needs it makes it, unless it exists."""
    if experiment.model:
        return Path(experiment.model.folder).resolve()
    place = folder / "bases" / f"base-{seed}"
    with hold_lock(folder / "bases" / f".base-{seed}.lock"):
        if not place.exists():
            write_whole_folder(place, _pretrain(experiment.pretraining, seed).save)
    return place


def _pretrain(pretraining: Pretraining, seed: int) -> Any:
    from codea1_agents.train.tiny.corpus import CorpusRules  # noqa: PLC0415  heavy
    from codea1_agents.train.tiny.family import Variant  # noqa: PLC0415
    from codea1_agents.train.tiny.pretraining import PretrainingSettings, pretrain  # noqa: PLC0415

    rules = CorpusRules(
        variant=Variant(pretraining.variant),
        aware_share=pretraining.aware,
        n_aware_first=pretraining.aware_first,
        repair_share=pretraining.repair,
        hostile_share=pretraining.hostile,
        hostile=ATTACKS if pretraining.hostile else (),
    )
    return pretrain(PretrainingSettings(seed, pretraining.steps, rules, pretraining.muon))


def _fine_tune(place: Path, experiment: Experiment, cell: Cell, models: Models) -> Models:
    from codea1_agents.train.sft.fine_tuning import SftSettings  # noqa: PLC0415  heavy
    from codea1_agents.train.sft.warm_start import SELF, ExampleSettings, warm_start  # noqa: PLC0415

    target, problems = place / "sft-tester", load_problems(experiment.warm_up)
    if not target.exists():
        examples = ExampleSettings(
            roles=("tester",),
            prompts="tiny",
            coder=SELF,
            failing=True,
            samples=_SFT_SAMPLES,
            tests=experiment.evaluation.tests,
            max_reply_tokens=_SFT_REPLY_TOKENS,
            seed=_seed(cell),
        )
        training = SftSettings(lr=_SFT_LR, seed=_seed(cell))
        warmed = warm_start(str(models.tester), problems, target, load_sandbox("local"), examples, training)
        if warmed.tuned.is_interrupted:  # and has written what it had
            remove_folder(target)
            raise KeyboardInterrupt
    return Models(models.coder, target)


def _train(folder: Path, experiment: Experiment, cell: Cell, models: Models) -> tuple[Models, tuple[CurvePoint, ...]]:
    from codea1_agents.train.loop import resume, train  # noqa: PLC0415  heavy
    from codea1_agents.train.loop.folder import last_checkpoint  # noqa: PLC0415

    system = experiment.system(cell.system)
    plain = experiment.training(system)
    paths = _model_paths(plain, models)
    if system.supervision:
        paths["game.problems"] = str(_supervision(folder, experiment, cell, plain.game.problems))
    run, env = folder / "cells" / cell.name / "run", GRADERS.get(system.grader)
    if run.exists() and last_checkpoint(run) is not None:
        done = resume(run, paths, env=env)
    else:
        shutil.rmtree(run, ignore_errors=True)
        own: dict[str, Any] = {"run.seed": _seed(cell), "run.name": f"{experiment.name} {cell.name}"}
        if plain.agents.base:
            own["checkpoints.export"] = False  # `_adapters` writes megabytes in place of two merged models
        done = train(apply_changes(plain, {**own, **paths}), out=run, env=env)
    if done.interrupted:
        raise KeyboardInterrupt
    after = {module: Path(path) for module, path in done.models.items()} or _adapters(run, plain, paths)
    shared = after.get("shared")
    trained = Models(shared or after.get("coder", models.coder), shared or after.get("tester", models.tester))
    return trained, tuple(_curve(done.lines))


def _adapters(run: Path, config: TrainingConfig, paths: Mapping[str, str]) -> dict[str, Path]:
    """Return the folders of the adapters that a run has trained, beside it; make them if they are not there."""
    from codea1_agents.train.loop.export import export_model  # noqa: PLC0415  heavy

    after: dict[str, Path] = {}
    for role in (role for role in ROLES if config.agents.model_of(role) and not getattr(config.agents, role).frozen):
        after[role] = run.parent / f"adapter-{role}"
        if not after[role].exists():
            with new_folder(after[role]) as draft:
                export_model(run, role, draft, paths, adapter=True)
    return after


def _curve(lines: Any) -> Iterator[CurvePoint]:
    spent = 0.0
    for line in lines:
        spent += line.get("times", {}).get("cpu_s", 0.0)
        evaluation = {f"evaluation/{name}": value for name, value in line.get("evaluation", {}).items()}
        yield CurvePoint(step=line["step"], cpu_s=spent, figures={**line.get("figures", {}), **evaluation})


def _supervision(folder: Path, experiment: Experiment, cell: Cell, problems: str) -> Path:
    """Return the file of problems whose golden tests are another system's tests (the paper's table 4).

    The tester sees no program; the golden tests of the problems are not used.
    """
    system = experiment.system(cell.system)
    tester = Models.read(folder / "cells" / needs(experiment, cell)[system.supervision].name).tester
    target = folder / "cells" / cell.name / "supervision.jsonl"
    if not target.exists():
        problem_set, tests = load_problems(problems), experiment.evaluation.tests
        with (
            closing(load_sandbox("local")) as sandbox,
            closing(tiny_agent("tester", tester, problem_set, sandbox, _seed(cell))) as asker,
        ):
            exported = export_tests(problem_set, asker, sandbox, suites=_SUPERVISING_SUITES, tests=tests)
        write_rows(target, exported.rows)
    return target


def _seed(cell: Cell) -> int:
    return 1000 * cell.base + cell.seed


def main() -> None:
    """Run the cell that the command line names."""
    folder, name = Path(sys.argv[1]), sys.argv[2]
    experiment = stored_experiment(folder)
    (cell,) = [each for each in cells_of(experiment) if each.name == name]
    try:
        with sigterm_interrupts():
            run_cell(folder, experiment, cell)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
