"""`codea1 play`: resolves the options, plays and records the games, draws duels, prints a summary."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from rich.console import Group, RenderableType
from rich.text import Text
from typer import Option

from codea1_agents.checks.sandbox_check import SandboxPromise, promise_of
from codea1_agents.cli.boundary import INTERRUPTED
from codea1_agents.cli.console import Page, as_typed, estimate_cells, new_table, pluralize, problems_document, show_next
from codea1_agents.cli.options import (
    Alpha,
    Limit,
    Options,
    ReplyTimeout,
    SummaryOnly,
    adjusted_rules,
    agent_spec,
    from_options,
    how_many,
    n_tests,
    output,
    problem_source,
    require_out_or_resume,
    rules_name,
    sandbox_name,
    seed_of,
)
from codea1_agents.cli.progress import Progress
from codea1_agents.models.gguf_files import sources_of
from codea1_agents.play.early_episodes import EarlyEpisodes
from codea1_agents.play.games import FinishedGames, PlayedEpisode, RunSettings, TimeSplit, episode_seeds
from codea1_agents.play.players import Players, load_players
from codea1_agents.play.runner import play_games
from codea1_agents.play.summary import LABELS, Summary, Tally
from codea1_agents.play.versions import git_commit, installed_versions
from codea1_env.agent import AgentContext
from codea1_env.agent.threads import REPLY_TIMEOUT_S
from codea1_env.differences import is_same
from codea1_env.errors import AgentUnavailable, BrokenInput, CodeA1Error, UserError
from codea1_env.facts.judge_version import JUDGE_VERSION
from codea1_env.plugins import is_path
from codea1_env.problems import DEFAULT_SOURCE, ProblemSet, load_problems
from codea1_env.records.faults import first_fault
from codea1_env.rendering import duel_picture, harmless
from codea1_env.rounds.rounds import require_golden_tests
from codea1_env.rules.funnel import funnel_sentence
from codea1_env.rules.ruleset import preset
from codea1_env.runs.config import RunConfig, problems_digest
from codea1_env.runs.folder import RunFolder, iter_episodes, stored_config
from codea1_env.runs.records import EpisodeRecord
from codea1_env.sandbox import Limits, Sandbox, load_sandbox


# None means "not given": a resumed run must distinguish a given option from a default.
@dataclass(frozen=True, slots=True, kw_only=True)
class PlayOptions(Options):
    """Play and record games: in each, the coder writes a program for a problem and the tester a suite of tests.

    Every run writes a folder: config.toml, episodes.jsonl (one line per episode), book.sqlite, metrics.json.
    Names of the form module:attribute also find modules in the current folder.
    A game with an unavailable agent is masked; eight such games in a row stop the run, and --resume continues it.

    \b
    Example:
      codea1 play -p humaneval --coder mutant,strength=0.5 --tester fuzz -n 20
    """

    problems: Annotated[str | None, problem_source(show_default=DEFAULT_SOURCE)] = None
    coder: Annotated[
        str | None,
        agent_spec(
            "--coder",
            "Coder: a name (see codea1 list agents) with its options, as in mutant,strength=0.3, or module:attribute.",
            show_default="mutant",
        ),
    ] = None
    tester: Annotated[str | None, agent_spec("--tester", "Tester, in the same form.", show_default="fuzz")] = None
    episodes: Annotated[
        int | None, how_many("--episodes", "Number of episodes; episode k plays problem k.", show_default="10")
    ] = None
    rounds: Annotated[
        int | None,
        Option(
            min=1,
            max=1_000_000,
            help="Rounds per episode; from the second round on, the coder can repair its program.",
            show_default="1",
        ),
    ] = None
    seed: Annotated[int | None, seed_of("all randomness", show_default="0")] = None
    rules: Annotated[str | None, rules_name(show_default="fixed")] = None
    alpha: Alpha = None
    tests: Annotated[int | None, n_tests(show_default="the rules'")] = None
    tester_view: Annotated[
        str | None, Option(help="white_box (the tester sees the program) or black_box.", show_default="white_box")
    ] = None
    sandbox: Annotated[str | None, sandbox_name(show_default="local")] = None
    limit: Limit = None
    strict: Annotated[
        bool | None, Option("--strict", help="Stop at a broken row of the problem source instead of skipping it.")
    ] = None
    concurrency: Annotated[int, Option(min=1, max=4096, help="Most games at once; two never share a problem.")] = 1
    reply_timeout: ReplyTimeout = REPLY_TIMEOUT_S
    show: Annotated[
        int | None,
        Option(
            min=0,
            help="Number of duels to draw, those first in which the program fails a right test.",
            show_default="1; 0 with --json or --quiet",
        ),
    ] = None
    out: Annotated[Path | None, output("Run folder, new or empty.", show_default="a new one under runs/")] = None
    resume: Annotated[
        Path | None, Option(help="Continue the run in this folder; other options must agree with its configuration.")
    ] = None
    quiet: SummaryOnly = False


_MAX_MASKED_SHOWN = 5


_DEFAULTS = PlayOptions(
    problems=DEFAULT_SOURCE,
    coder="mutant",
    tester="fuzz",
    episodes=10,
    rounds=1,
    seed=0,
    rules="fixed",
    tester_view="white_box",
    sandbox="local",
    strict=False,
)


def run_play(options: PlayOptions) -> None:
    """Play one run and print its summary.

    Raises:
        UserError: an option names something that does not exist, a file cannot be read or written, or an agent failed.
        AgentUnavailable: an agent was unavailable in several games in a row.
        SandboxError: the sandbox cannot be used at all.
        typer.Exit: interrupted (130).
    """
    page = Page(as_json=options.as_json, quiet=options.quiet)
    require_out_or_resume(options.out, options.resume)
    with Progress("loading problems", None, page):
        problems, config = _resolve(options, None if options.resume is None else stored_config(options.resume))
    page.note_skipped(problems.skipped)
    with page.apart(), closing(load_sandbox(config.sandbox)) as sandbox:
        run = _Run(options, config, problems, sandbox, page)
        folder = run.play()
        show_next(page, "play with mistakes" if run.tally.book_size else "play", out=folder)


def _resolve(options: PlayOptions, base: RunConfig | None) -> tuple[ProblemSet, RunConfig]:
    """Return problems and configuration: from the options, else from the run (`base`), else from the defaults."""

    def setting(name: str) -> Any:
        value = getattr(options, name)
        return value if value is not None else getattr(_DEFAULTS if base is None else base, name)

    named = preset(setting("rules")) if base is None or options.rules is not None else base.rules
    rules = adjusted_rules(named, alpha=options.alpha, tests_per_suite=options.tests)
    problems = load_problems(setting("problems"), strict=setting("strict"), limit=setting("limit"))
    require_golden_tests(problems, rules)
    plain = {each.name: setting(each.name) for each in fields(PlayOptions) if each.name in RunConfig.model_fields}
    derived = {
        "rules": rules,
        "problems_digest": problems_digest(problems),
        "n_problems": len(problems),
        "limits": Limits() if base is None else base.limits,
        "versions": installed_versions(),
        "git": git_commit(),
    }
    try:
        config = RunConfig.model_validate(plain | derived)
    except ValidationError as error:
        raise UserError(f"these options are not a valid run: {first_fault(error)}") from error
    return problems, config


@dataclass(slots=True)
class _Run:
    """One run in progress."""

    options: PlayOptions
    config: RunConfig
    problems: ProblemSet
    sandbox: Sandbox
    page: Page
    promise: SandboxPromise = field(init=False)
    players: Players = field(init=False)
    tally: Tally = field(init=False)
    early: dict[int, EpisodeRecord] = field(default_factory=dict, init=False)
    """Episodes that finished before the run was resumed but are not in `episodes.jsonl` yet, by number."""
    spent: TimeSplit = field(default_factory=TimeSplit, init=False)
    n_masked: int = field(default=0, init=False)
    only_solutions: bool = field(default=True, init=False)
    """Whether each program so far is the solution of its problem."""
    n_drawn: int = field(default=0, init=False)
    undrawn: list[PlayedEpisode] = field(default_factory=list, init=False)
    """The first games in which no program fails a right test, to be drawn if there are too few others."""

    def play(self) -> Path:
        """Play all episodes and return the run's folder."""
        options, config = self.options, self.config
        context = AgentContext(self.problems, self.sandbox, config.seed)
        # Before the run folder is created: a misspelt name should leave no folder.
        with Progress("loading agents", None, self.page):
            self.players = load_players(options.coder or config.coder, options.tester or config.tester, context)
        self.promise = promise_of(self.sandbox)
        self.page.warn_if_weak(self.promise)
        self.tally = Tally(tests_per_suite=config.rules.tests_per_suite)
        with self._folder() as folder, EarlyEpisodes(folder.path) as early:
            begun = time.perf_counter()
            try:
                self._play_games(folder, early)
            except KeyboardInterrupt:
                self._finish(folder, time.perf_counter() - begun)
                self.page.note(f"interrupted; {self._continue_line(folder)}", even_if_quiet=True)
                raise typer.Exit(INTERRUPTED) from None
            except CodeA1Error as error:
                if isinstance(error, AgentUnavailable):  # write the agents' usage although there is no result
                    known = self.tally.summary(seed=self.config.seed)
                    folder.write_metrics(self._metrics(known, time.perf_counter() - begun))
                if folder.n_episodes or early.kept or isinstance(error, AgentUnavailable):
                    recorded = f"{pluralize(folder.n_episodes, 'episode')} recorded"
                    self.page.note(f"{recorded}; {self._continue_line(folder)}", even_if_quiet=True)
                raise
            early.remove()
            self._finish(folder, time.perf_counter() - begun)
            return folder.path

    def _play_games(self, folder: RunFolder, early: EarlyEpisodes) -> None:
        config = self.config
        hidden = any(each.declares("interactive") for each in (self.players.coder, self.players.tester))
        progress = Progress("playing", config.episodes, self.page, done=folder.n_episodes, hidden=hidden)

        def record(game: PlayedEpisode) -> None:
            folder.append(game.record)
            self._add(game.record)
            self.spent += game.time
            if game.record.episode not in early.kept:
                progress.advance(game.record)
            self._note_masked(game)
            self._picture(game, progress)

        def keep(game: PlayedEpisode) -> None:
            early.keep(game.record)
            progress.advance(game.record)

        timeout_s, n_at_once = self.options.reply_timeout or None, self.options.concurrency
        settings = from_options(RunSettings, config, concurrency=n_at_once, reply_timeout_s=timeout_s)
        finished = FinishedGames(record, keep, start_at=folder.n_episodes, known=self.early)
        progress.running = finished.oldest
        with progress, closing(folder.open_book()) as book:
            play_games(self.problems, self.players, settings, finished, sandbox=self.sandbox, book=book)

    @contextmanager
    def _folder(self) -> Iterator[RunFolder]:
        """Yield the run's folder; for a resumed run, rebuild the book and add the recorded episodes to the tally."""
        resume = self.options.resume
        if resume is None:
            with RunFolder.create(self.options.out, self.config) as folder:
                try:
                    yield folder
                except Exception:
                    folder.discard_if_unused()
                    raise
            return
        with RunFolder.open(resume) as folder:
            differences = folder.config.differences(self.config)
            if differences:
                raise BrokenInput(f"{resume}: cannot be continued with other options: {'; '.join(differences)}")
            for note in folder.notes:
                self.page.note(note)
            if folder.config.versions != self.config.versions or folder.config.git != self.config.git:
                self.page.note("the run began with other versions of its packages (see config.toml)")
            if self.config.episodes > folder.config.episodes:
                folder.extend(self.config.episodes)
            self.early = EarlyEpisodes(resume).read(start_at=folder.n_episodes, n_problems=len(self.problems))
            folder.rebuild_book(self.early.values())
            for record in iter_episodes(resume):
                if record.seed != episode_seeds(self.config.seed, record.episode).environment:
                    raise BrokenInput(f"{resume}: cannot be continued: episode {record.episode} had another seed")
                self._add(record)
            yield folder

    def _add(self, record: EpisodeRecord) -> None:
        self.tally.add(record)
        solution = self.problems.by_id(record.problem_id).solution
        played = (each.candidate.program for each in record.rounds)
        self.only_solutions = self.only_solutions and all(is_same(program, solution) for program in played)

    def _note_masked(self, game: PlayedEpisode) -> None:
        faults = (judged.report.candidates[0].internal_error for judged in game.rounds)
        fault = str(game.unavailable or next(filter(None, faults), ""))
        self.n_masked += bool(fault)
        if fault and self.n_masked <= _MAX_MASKED_SHOWN:
            self.page.note(harmless(f"episode {game.record.episode} ({game.record.problem_id}) is masked: {fault}"))

    def _picture(self, game: PlayedEpisode, progress: Progress) -> None:
        if self.n_drawn >= self._n_wanted or not game.rounds:
            return
        if any(suite.beats_rightly for judged in game.rounds for suite in judged.report.candidates[0].suites):
            with progress.pause():
                self._draw(game, f"{'another' if self.n_drawn else 'the first'} whose program fails a right test")
        elif len(self.undrawn) < self._n_wanted:
            self.undrawn.append(game)

    @property
    def _n_wanted(self) -> int:
        usual = int(not (self.options.as_json or self.options.quiet))
        return usual if self.options.show is None else self.options.show

    def _draw(self, game: PlayedEpisode, why: str) -> None:
        self.n_drawn += 1
        record, n = game.record, self.config.episodes
        if self._n_wanted < n:
            self.page.say(f"drawn: episode {record.episode} ({record.problem_id}), {why}; --show {n} draws all")
        for judged in game.rounds:
            self.page.show(duel_picture(judged, width=self.page.width, reveals=True))

    def _finish(self, folder: RunFolder, wall_s: float) -> None:
        """Write the metrics, draw the duels that are still wanted, and print the result."""
        for game in self.undrawn[: self._n_wanted - self.n_drawn]:
            self._draw(game, f"since no {'other ' * bool(self.n_drawn)}program fails a right test")
        summary = self.tally.summary(seed=self.config.seed)
        metrics = self._metrics(summary, wall_s)
        folder.write_metrics(metrics)
        self.page.show(summary_table(summary, self.config))
        if n_flaky := summary.tests.get("flaky", 0):
            again = f"{pluralize(n_flaky, 'test')} flaky: run again, the solution gives another value; see"
            self.page.say(as_typed(f"{again} codea1 check problems {quote(self.config.problems)}"))
        elif self.only_solutions and metrics["summary"]["n_rounds"]:
            self.page.say("the coder played the solution itself: no test can beat it; try --coder mutant,strength=1")
        if self.spent.total_s:
            self.page.say(time_sentence(self.spent, wall_s if self.options.concurrency > 1 else None))
        self.page.say(f"sandbox: {self.promise.sentence()}")
        self.page.say(f"run folder: {folder.path}")
        summary = metrics.pop("summary")
        of_tests = summary.pop("funnel")
        self.page.finish(
            out=str(folder.path),
            problems=problems_document(self.config.problems, self.problems),
            seed=self.config.seed,
            figures={name: each for name, each in summary.items() if isinstance(each, dict)},
            funnel=of_tests,
            **{name: each for name, each in summary.items() if not isinstance(each, dict)},
            **metrics,
        )

    def _metrics(self, summary: Summary, wall_s: float) -> dict[str, Any]:
        return {
            "judge_version": JUDGE_VERSION,
            "summary": summary.to_json(),
            "time": {**asdict(self.spent), "rest_s": self.spent.rest_s, "wall_s": wall_s},
            "usage": {"coder": self.players.coder.usage(), "tester": self.players.tester.usage()},
            "gguf": sources_of({each.role: each.agent for each in (self.players.coder, self.players.tester)}),
            "skipped_rows": len(self.problems.skipped),
            "sandbox": {name: getattr(self.promise, name) for name in ("name", "guarantee", "tier")},
        }

    def _continue_line(self, folder: RunFolder) -> str:
        """Name the command that continues a run; what the folder does not hold must be typed again."""
        named = {name: getattr(folder.config, name) for name in ("problems", "coder", "tester", "sandbox")}
        own = "".join(f" --{name} {quote(value)}" for name, value in named.items() if is_path(value.partition(",")[0]))
        show = "" if self.options.show is None else f" --show {self.options.show}"
        return as_typed(f"continue with: codea1 play --resume {folder.path}{own}{show}")


def summary_table(summary: Summary, config: RunConfig) -> RenderableType:
    """Return the title, the table, and a line about the Mistake Book and masked rounds."""
    title = f"{config.coder} against {config.tester}: {pluralize(summary.n_episodes, 'episode')}"
    title += f" on {pluralize(summary.n_problems, 'problem')}, rules {config.rules.name}, seed {config.seed}"
    rows = [(label, *estimate_cells(getattr(summary, name))) for name, label in LABELS.items()]
    table = new_table(("mean over problems", "mean", "95 % interval", "rounds"), rows, right=(1, 3))
    ends = [f"tests: {funnel_sentence(summary.tests)}"]
    if summary.tests.keys() & {"stated_example"}:
        ends.append("suite validity includes copies of examples")
    if summary.not_loading:
        named = ", ".join(f"{n} {why.replace('_', ' ')}" for why, n in summary.not_loading.items())
        ends.append(
            f"{sum(summary.not_loading.values())} of {pluralize(summary.n_rounds, 'program')} do not load: {named}"
        )
    ends.append(f"Mistake Book: {pluralize(summary.book_size, 'case')}")
    if summary.n_unasked_rounds:
        ends.append(f"{pluralize(summary.n_unasked_rounds, 'round')} without a tester (invalid program)")
    if summary.n_masked_rounds:
        masked = pluralize(summary.n_masked_rounds, "round")
        ends.append(f"{masked} masked: the sandbox or an agent failed; in no figure")
    return Group(Text(harmless(title), style="bold"), table, Text("; ".join(ends)))


def time_sentence(spent: TimeSplit, wall_s: float | None = None) -> str:
    """Return a sentence about the time spent; `wall_s` is the time of a run whose games overlapped."""
    split = (
        f"{spent.total_s:.1f} s: judging {spent.judging_s:.1f} s, agents {spent.agents_s:.1f} s,"
        f" the rest {spent.rest_s:.1f} s"
    )
    return f"time: {split}" if wall_s is None else f"time: {wall_s:.1f} s; all games together {split}"
