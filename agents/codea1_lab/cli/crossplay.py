"""`codea1 crossplay`: plays every coder against every tester, computes, prints and writes the results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from typer import Argument, Option

from codea1_agents.cli.console import Page, new_table, problems_document
from codea1_agents.cli.eval_session import EvalSession, eval_session
from codea1_agents.cli.options import (
    Alpha,
    Problems,
    Rules,
    SessionOptions,
    adjusted_rules,
    agent_spec,
    how_many,
    n_tests,
    output,
)
from codea1_agents.cli.progress import Progress
from codea1_agents.evaluation.canvas import require_drawing
from codea1_env.agent import Role
from codea1_env.errors import MissingExtra, UserError
from codea1_env.records.whole_files import write_text
from codea1_env.rules.ruleset import Ruleset, preset
from codea1_lab.crossplay.cells import StoredProgram, StoredSuite, Submissions
from codea1_lab.crossplay.pictures import draw_findings
from codea1_lab.crossplay.player_specs import PlayerSpec, read_players
from codea1_lab.crossplay.results import AGENT_COLUMNS, TITLES, Findings
from codea1_lab.crossplay.running import Player, play_all


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossplayOptions(SessionOptions):
    """Play every coder against every tester: matrices with intervals, ratings, an equilibrium.

    On policy, the tester writes a suite for each program. Transfer runs stored programs against suites that were
    written for other coders.

    \b
    Example:
      codea1 crossplay runs/first@base runs/first -p tiny:held-out-eval -o crossed
    """

    players: Annotated[
        list[str] | None,
        Argument(
            help="RUN (of codea1 train), RUN@STEP, RUN@base, RUN/models/ROLE, or an agent; each plays every role that"
            " it can. NAME=... gives it a name.",
            show_default=False,
        ),
    ] = None
    coders: Annotated[
        list[str] | None, agent_spec("--coders", "A player that is only a coder; may be repeated.", show_default="none")
    ] = None
    testers: Annotated[
        list[str] | None,
        agent_spec("--testers", "A player that is only a tester; may be repeated.", show_default="none"),
    ] = None
    yardsticks: Annotated[
        bool, Option("--yardsticks/--no-yardsticks", help="Add mutant, fuzz and boundary as fixed references.")
    ] = True
    problems: Problems = "starter"
    samples: Annotated[int, how_many("--samples", "Programs per coder and problem.")] = 4
    tests: Annotated[int | None, n_tests(show_default="the rules'")] = None
    rules: Rules = "fixed"
    alpha: Alpha = None
    out: Annotated[Path | None, output("Folder for results.", show_default="none")] = None


_HEADLINE = "caught"
"""The figure whose matrix on policy is printed: all of them would fill screens."""
_FIXED: dict[Role, tuple[str, ...]] = {"coder": ("mutant",), "tester": ("fuzz", "boundary")}


@dataclass(frozen=True, slots=True)
class _Entries:
    """The players of both roles."""

    coders: tuple[PlayerSpec, ...]
    testers: tuple[PlayerSpec, ...]
    fixed: tuple[PlayerSpec, ...]
    """The yardsticks among them."""


def run_crossplay(options: CrossplayOptions) -> None:
    """Play all pairs and report the results.

    Raises:
        UserError: an option names something that does not exist, a file cannot be written, or an agent failed.
        AgentUnavailable: an agent never replied.
        SandboxError: the sandbox cannot be used at all.
    """
    rules = adjusted_rules(preset(options.rules), alpha=options.alpha, tests_per_suite=options.tests)
    with TemporaryDirectory(prefix="codea1-crossplay-") as scratch, eval_session(options) as session:
        entries = _entries(options, Path(scratch))
        findings, submissions = _play(options, entries, session, rules)
        document = findings.document(_settings(options, entries, session, rules))
        if options.out is not None:
            _write(options.out, findings, document, submissions, session.page)
        _show(findings, session.page)
        if options.out is not None:
            session.page.say(f"folder: {options.out}")
        session.page.finish(
            **document,
            problems=document["settings"]["problems"],
            seed=options.seed,
            out=None if options.out is None else str(options.out),
        )


def _entries(options: CrossplayOptions, scratch: Path) -> _Entries:
    both = read_players(options.players or (), scratch / "both")
    named: dict[Role, Sequence[str]] = {"coder": options.coders or (), "tester": options.testers or ()}
    of = {
        role: [*(p for p in both if p.role == role), *read_players(texts, scratch / role, role=role)]
        for role, texts in named.items()
    }
    if not any(of.values()):
        raise UserError("name at least one run or agent: codea1 crossplay RUN, --coders NAME, --testers NAME")
    fixed: tuple[PlayerSpec, ...] = ()
    if options.yardsticks:
        for role, specs in _FIXED.items():
            known = {player.spec for player in of[role]}
            of[role] += read_players([spec for spec in specs if spec not in known], scratch, role=role)
        fixed = tuple(player for role, players in of.items() for player in players if player.spec in _FIXED[role])
    for role, players in of.items():
        names = [player.name for player in players]
        if not names:
            raise UserError(f"expected at least one {role}: name it with --{role}s")
        for name in names:
            if names.count(name) > 1:
                raise UserError(f"two {role}s are called {name}: rename one, as in other={name}")
    return _Entries(tuple(of["coder"]), tuple(of["tester"]), fixed)


def _play(
    options: CrossplayOptions, entries: _Entries, session: EvalSession, rules: Ruleset
) -> tuple[Findings, Submissions]:
    def load(spec: PlayerSpec) -> Player:
        agent = session.agent(spec.spec, spec.role)
        return Player(spec.name, agent, is_fixed=spec in entries.fixed, view=spec.view)

    coders, testers = list(map(load, entries.coders)), list(map(load, entries.testers))
    with Progress("playing", len(session.problems), session.page) as progress:
        progress.running = session.running
        play, submissions = play_all(
            list(session.problems),
            coders,
            testers,
            session.sandbox,
            rules,
            samples=options.samples,
            progress=progress.reach,
        )
    return Findings.of(play, seed=options.seed), submissions


def _settings(options: CrossplayOptions, entries: _Entries, session: EvalSession, rules: Ruleset) -> dict[str, Any]:
    return {
        "problems": problems_document(options.problems, session.problems),
        "rules": rules.name,
        "alpha": rules.reward.alpha,
        "tests": rules.tests_per_suite,
        "samples": options.samples,
        "seed": options.seed,
        "coders": {player.name: player.argument for player in entries.coders},
        "testers": {player.name: player.argument for player in entries.testers},
    }


def _show(findings: Findings, page: Page) -> None:
    for sentence in findings.sentences():
        page.say(sentence)
    page.show(new_table(AGENT_COLUMNS, list(findings.agent_rows()), right=(4,)))
    page.say(f"on policy: {TITLES[_HEADLINE]}")
    columns, *rows = findings.matrix("on_policy", _HEADLINE)
    page.show(new_table(columns, rows))
    page.say("The other matrices are in crossplay.json and pictures of --out, and in --json.")


def _write(out: Path, findings: Findings, document: dict[str, Any], submissions: Submissions, page: Page) -> None:
    write_text(out / "crossplay.json", json.dumps(document, allow_nan=False) + "\n")
    write_text(out / "programs.jsonl", _lines(submissions.programs))
    write_text(out / "suites.jsonl", _lines(submissions.suites))
    try:
        require_drawing()
    except MissingExtra as reason:
        page.note(f"no pictures: {reason}")
        return
    for mode in findings.grids:
        draw_findings(findings, mode, out / f"{mode.replace('_', '-')}.svg")


def _lines(entries: Iterable[StoredProgram | StoredSuite]) -> str:
    return "".join(json.dumps(asdict(entry)) + "\n" for entry in entries)
