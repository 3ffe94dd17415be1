"""The same replies through everything that plays rounds: identical reports and rewards, wherever they are kept.

A driver plays all pairs of programs and suites that it can be given and returns what it keeps of each, which is held
against `one_by_one` or `rounds_with_book`. Another driver is one more function in `PLAIN`, or in `BOOK_DRIVERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product, starmap
from math import isnan, nan
from typing import Any, NamedTuple

import pytest

from codea1_agents.play.named_agent import NamedAgent
from codea1_env import MistakeBook, code_a1_v0, group_env
from codea1_env.bank import Bank, BankEntry, ProblemBank, judge_bank
from codea1_env.errors import AgentUnavailable
from codea1_env.facts.verdicts import CandidateReport, Outcome, OutcomeKind, ProblemReport, Rechecks, Verdict
from codea1_env.gymnasium_views import CoderEnv, TesterEnv
from codea1_env.problems import Problem, ProblemSet
from codea1_env.rounds.referee import Referee
from codea1_env.rounds.rounds import JudgedTree, RoundOptions, Rounds, Tree
from codea1_env.rules.mistake_book import BookEntry, Provenance
from codea1_env.rules.ruleset import BookUpdate, Ruleset, preset
from codea1_env.sandbox import Job, JobReport, Sandbox
from codea1_lab.crossplay.running import Player, play_all
from tests.support.sandboxes import Wrapper
from tests.support.toys import LOOKS_RIGHT, NAIVE, RIGHT

OTHER_RULES = ("paper", "release", "golden")
GONE = "GONE"
"""In place of a reply: the agent is unavailable."""
LOST = "# the sandbox fails on this"
PROGRAMS = {
    "right": RIGHT,
    "looks right": LOOKS_RIGHT,
    "wrong": "First I thought of this.\n```python\ndef add(a, b):\n    return a - b\n```",
    "raises": "def add(a, b):\n    raise ValueError(a)",
    "syntax": "```python\ndef add(a, b:\n```",
    "other name": "def plus(a, b):\n    return a + b",
    "no code": "I do not know.",
    "lost": f"def add(a, b):\n    return a + b  {LOST}",
    "gone": GONE,
}
LOADABLE = ("right", "looks right", "wrong", "raises")
SUITES = {
    "naive": NAIVE,
    "sharp": "```python\nassert add(-1, -2) == -3\nassert add(2, 1) == 3\nassert add(2, 1) == 3\n```",
    "false": "```python\nassert add(1, 1) == 3\nassert add(-5, 2) == 'no'\nassert add(4, 4) == 8\n```",
    "junk": "assert add(print) ==\nimport os\nassert undefined(1) == 2",
    "empty": "",
    "gone": GONE,
}


class Game(NamedTuple):
    """One program and one suite for a problem, by name."""

    program: str
    suite: str

    @property
    def is_gone(self) -> bool:
        return "gone" in self


@dataclass(frozen=True)
class Kept:
    """What a driver keeps of one game."""

    coder: float | None = None
    """nan: masked; None: it is not kept."""
    tester: float | None = None
    """Likewise; not kept, too, where no suite is wanted since the program does not load."""
    report: CandidateReport | None = None
    """None: it is not kept. Without suites where none was wanted."""


@dataclass(frozen=True)
class Deck:
    """What is played: every program with every suite."""

    problem: Problem
    rules: Ruleset
    sandbox: Sandbox

    @property
    def game(self) -> dict[str, Any]:
        return {"problems": ProblemSet("deck", (self.problem,)), "rules": self.rules, "sandbox": self.sandbox}

    def referee(self) -> Referee:
        return Referee(**self.game)

    def games(self, *, without: Sequence[str] = ()) -> list[Game]:
        """Return all games but those with a program or suite of these names.

        Suites that do not come are for programs that load: only some drivers want any for others.
        """
        wanted = (each for each in starmap(Game, product(PROGRAMS, SUITES)) if not {*each} & {*without})
        return [each for each in wanted if each.suite != "gone" or each.program in LOADABLE]


class Losing(Wrapper):
    """The shared sandbox, which fails on programs that say so."""

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        found = iter(self._sandbox.run([job for job in jobs if LOST not in job.program]))
        lost = Outcome(OutcomeKind.INTERNAL_ERROR, message="no memory left")
        return [JobReport(lost, (lost,) * len(job.calls)) if LOST in job.program else next(found) for job in jobs]


class Says:
    """An agent that gives one reply, or none."""

    def __init__(self, text: str) -> None:
        self._text = text

    def act(self, observation: Any, info: Any) -> str:
        if self._text == GONE:
            raise AgentUnavailable("gone")
        return self._text


def reply(text: str) -> Any:
    return AgentUnavailable("gone") if text == GONE else text


def of_tree(tree: JudgedTree, n: int) -> Kept:
    """Return one candidate of a tree, with the first suite of its group."""
    assert tree.report is not None
    group = tree.group_of(n)
    tester = float(tree.tester_rewards[n, 0]) if group else None
    # A suite that did not come is in the report as an empty one, where others have no suite at all.
    report = None if any(isinstance(each, AgentUnavailable) for each in group) else tree.report.candidates[n]
    return Kept(float(tree.coder_rewards[n]), tester, report)


def one_by_one(deck: Deck) -> dict[Game, Kept]:
    """A round per game, a suite for every program that was written: what all others are held against."""
    found, referee = {}, deck.referee()
    for game in deck.games():
        rounds = referee.open([Tree(deck.problem)], RoundOptions(skips_invalid=False))
        found[game] = of_tree(_submitted(rounds, [game]).results()[0], 0)
    return found


def _programs(games: Sequence[Game]) -> list[str]:
    return [PROGRAMS[game.program] for game in games]


def _suites(games: Sequence[Game]) -> list[str]:
    return [SUITES[game.suite] for game in games]


def _submitted(rounds: Rounds, games: Sequence[Game]) -> Rounds:
    rounds.submit_programs([reply(text) for text in _programs(games)])
    rounds.submit_suites([reply(SUITES[games[turn.candidate].suite]) for turn in rounds.tester_turns()])
    return rounds


def batch(deck: Deck) -> dict[Game, Kept]:
    """All games as candidates of one tree, judged in the background; no suites for what does not load."""
    games, referee = deck.games(), deck.referee()
    (tree,) = _submitted(referee.open([Tree(deck.problem, len(games))]), games).results()
    referee.close()
    return {game: of_tree(tree, n) for n, game in enumerate(games)}


def forks(deck: Deck) -> dict[Game, Kept]:
    """The programs once, and a fork for every suite."""
    base, names = deck.referee().open([Tree(deck.problem, len(PROGRAMS))]), list(PROGRAMS)
    base.submit_programs([reply(PROGRAMS[name]) for name in names])
    found: dict[Game, Kept] = {}
    for suite, text in SUITES.items():
        fork = base.fork()
        fork.submit_suites([reply(text) for _ in fork.tester_turns()])
        found |= {Game(name, suite): of_tree(fork.results()[0], n) for n, name in enumerate(names)}
    return {game: found[game] for game in deck.games()}


def rewards_of_pairs(deck: Deck) -> dict[Game, Kept]:
    games = deck.games()
    programs, suites = ([reply(text) for text in texts] for texts in (_programs(games), _suites(games)))
    found = deck.referee().rewards([deck.problem.id] * len(games), programs, suites)
    return {game: _of_scored(scored, game) for game, scored in zip(games, found, strict=True)}


def _of_scored(scored: Any, game: Game) -> Kept:
    coder, tester = (nan if each is None else each for each in (scored.coder, scored.tester))
    return Kept(coder, tester, None if game.is_gone else scored.report)


def _last(env: Any, coder: float, tester: float) -> Kept:
    """Return what an environment keeps of its last round, for which it has paid these rewards."""
    judged = env.unwrapped.last_round
    report, is_gone = judged.report.candidates[0], judged.report.candidates[0].detail == "gone"
    had_turn = judged.tester_reply is not None
    return Kept(coder, tester if had_turn else None, None if is_gone else report)


def aec(deck: Deck, **options: Any) -> dict[Game, Kept]:
    env, found = code_a1_v0.env(**deck.game, **options), dict[Game, Kept]()
    for game in deck.games():
        env.reset(seed=0, options={"problem_id": deck.problem.id, "replay": False})
        for text in (PROGRAMS[game.program], SUITES[game.suite]):
            if env.unwrapped.last_round is None:
                env.unwrapped.give_up("gone") if text == GONE else env.step(text)
        found[game] = _last(env, **_paid(env))
    env.close()
    return found


def _paid(env: Any) -> dict[str, float]:
    return {role: env.unwrapped.rewards[f"{role}_0"] for role in ("coder", "tester")}


def both_act(make: Callable[..., Any], deck: Deck) -> dict[Game, Kept]:
    env, found = make(**deck.game), {}
    for game in deck.games(without=["gone"]):
        env.reset(seed=0, options={"problem_id": deck.problem.id, "replay": False})
        paid = dict.fromkeys(env.agents, 0.0)
        while env.agents:
            _, rewards, *_ = env.step({"coder_0": PROGRAMS[game.program], "tester_0": SUITES[game.suite]})
            paid = {agent: value + rewards[agent] for agent, value in paid.items()}
        found[game] = _last(env, paid["coder_0"], paid["tester_0"])
    env.close()
    return found


def group(deck: Deck) -> dict[Game, Kept]:
    games = deck.games()
    env = code_a1_v0.group_env(**deck.game, n_candidates=len(games), n_suites=1)
    paid = _group_played(env, games)
    assert env.last_tree is not None
    found = {game: _of_group(env.last_tree, n, paid) for n, game in enumerate(games)}
    env.close()
    return found


def _group_played(env: group_env.GroupEnv, games: Sequence[Game], **options: Any) -> dict[str, float]:
    """Play one episode, a game per candidate, and return what each agent was paid."""
    env.reset(**options)
    actions = {group_env.coder_name(n): reply(text) for n, text in enumerate(_programs(games))}
    actions |= {group_env.tester_name(n, 0): reply(text) for n, text in enumerate(_suites(games))}
    paid: dict[str, float] = {}
    while env.agents:
        _, rewards, *_ = env.step(actions)
        paid |= rewards
    return paid


def _of_group(tree: JudgedTree, n: int, paid: Mapping[str, float]) -> Kept:
    kept = of_tree(tree, n)
    tester = None if kept.tester is None else paid[group_env.tester_name(n, 0)]
    return replace(kept, coder=paid[group_env.coder_name(n)], tester=tester)


class Scripted:
    """Replies in a training: to the coder's turns in their order, to the tester's by candidate."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    def answer(self, turns: Sequence[Any], *_: Any) -> list[Any]:
        from codea1_agents.train.grpo.rollout import Reply

        texts = [self._texts[turn.candidate] for turn in turns]
        return [Reply(unavailable="gone") if text == GONE else Reply(text) for text in texts]


def grpo_rollouts(deck: Deck) -> dict[Game, Kept]:
    """All games as one tree of a training."""
    pytest.importorskip("ray.rllib", reason="RLlib is not installed")
    pytest.importorskip("torch", reason="torch is not installed")
    from codea1_agents.train.grpo.hyperparameters import Shape
    from codea1_agents.train.grpo.rollout import Task, TreeRoller
    from tests.support.trees import group_envs

    games, problems = deck.games(), deck.game["problems"]
    envs = group_envs(deck.sandbox, problems, Shape(n_candidates=len(games), n_suites=1), deck.rules)
    players = {"coder": Scripted(_programs(games)), "tester": Scripted(_suites(games))}
    (tree,) = TreeRoller(envs, players).roll([Task(0, deck.problem.id)]).trees
    envs.close()
    assert tree.judged.report is not None
    found = {}
    for n, game in enumerate(games):
        answers = tree.suites[n]
        tester = float(tree.tester_rewards[n, 0]) if answers else None
        report = None if any(answer.unavailable for answer in answers) else tree.judged.report.candidates[n]
        found[game] = Kept(float(tree.coder_rewards[n]), tester, report)
    return found


def _after_one_step(env: CoderEnv | TesterEnv, problem_id: str, reply: str) -> tuple[float, CandidateReport]:
    env.reset(seed=0, options={"problem_id": problem_id})
    _, reward, *_ = env.step(reply)
    assert env.game.last_round is not None
    env.close()
    return float(reward), env.game.last_round.report.candidates[0]


def gymnasium_coder(deck: Deck) -> dict[Game, Kept]:
    found = {}
    for game in deck.games(without=["gone"]):
        env = CoderEnv(Says(SUITES[game.suite]), **deck.game)
        reward, report = _after_one_step(env, deck.problem.id, PROGRAMS[game.program])
        found[game] = Kept(reward, None, report)
    return found


def gymnasium_tester(deck: Deck) -> dict[Game, Kept]:
    found = {}
    for game in deck.games(without=["gone", "lost"]):
        env = TesterEnv(Says(PROGRAMS[game.program]), **deck.game)
        reward, report = _after_one_step(env, deck.problem.id, SUITES[game.suite])
        found[game] = Kept(None, reward, report)
    return found


def cross_play(deck: Deck) -> dict[Game, Kept]:
    """A coder for every program, a tester for every suite."""

    coders, testers = (
        [Player(name, NamedAgent(Says(text), name)) for name, text in texts.items() if text != GONE]
        for texts in (PROGRAMS, SUITES)
    )  # who never answers is an error there
    play, _ = play_all([deck.problem], coders, testers, deck.sandbox, deck.rules, samples=1)
    found, cells = {}, play.on_policy
    for (c, coder), (t, tester) in product(enumerate(coders), enumerate(testers)):
        loads = not isnan(cells.validity[c, t, 0])
        of_tester = float(cells.tester_reward[c, t, 0]) if loads else None
        found[Game(coder.name, tester.name)] = Kept(float(cells.coder_reward[c, t, 0]), of_tester)
    return found


def bank(deck: Deck) -> dict[Game, Kept]:
    programs, suites = (
        tuple(BankEntry(name, text) for name, text in texts.items() if name not in ("gone", "lost"))
        for texts in (PROGRAMS, SUITES)
    )
    whole = Bank("deck", (ProblemBank(deck.problem, programs, suites),))
    judged = judge_bank(whole, deck.rules, deck.sandbox)
    payoffs, (found,) = judged.payoffs(), judged.problems
    return {
        Game(program.label, suite.label): Kept(payoffs.coder[0, m, n], payoffs.tester[0, m, n], found.duel(m, n))
        for m, program in enumerate(programs)
        for n, suite in enumerate(suites)
    }


PLAIN = (batch, forks, rewards_of_pairs, aec, group, grpo_rollouts, gymnasium_coder, gymnasium_tester, cross_play, bank)
DRIVERS: dict[str, Callable[[Deck], dict[Game, Kept]]] = {driver.__name__: driver for driver in PLAIN} | {
    "aec with all turns": partial(aec, skip_invalid=False),
    "parallel": partial(both_act, code_a1_v0.parallel_env),
    "blind parallel": partial(both_act, code_a1_v0.blind_parallel_env),
}


def same(one: float | None, other: float | None) -> bool:
    return one == other or (one is not None and other is not None and isnan(one) and isnan(other))


def comparable(report: CandidateReport, *, has_suite: bool) -> CandidateReport:
    """Return what must be the same of a report.

    Programs that run together are looked at again together. Of one that does not load, an environment says that it met
    an empty suite.
    """
    return replace(report, rechecks=Rechecks(), suites=report.suites if report.loads or has_suite else ())


def assert_same(game: Game, kept: Kept, wanted: Kept) -> None:
    if kept.coder is not None:
        assert same(kept.coder, wanted.coder), game
    has_suite = kept.tester is not None and wanted.tester is not None
    if has_suite:
        assert same(kept.tester, wanted.tester), game
    if kept.report is not None and wanted.report is not None:
        of_both = [comparable(each, has_suite=has_suite) for each in (kept.report, wanted.report)]
        assert of_both[0] == of_both[1], game


@pytest.fixture(scope="module", params=["fixed", *(pytest.param(each, marks=pytest.mark.slow) for each in OTHER_RULES)])
def deck(request: pytest.FixtureRequest, toys: ProblemSet, sandbox: Sandbox) -> Deck:
    return Deck(toys.by_id("toy/add"), replace(preset(request.param), tests_per_suite=2), Losing(sandbox))


@pytest.fixture(scope="module")
def wanted(deck: Deck) -> dict[Game, Kept]:
    return one_by_one(deck)


def test_the_games_are_of_all_kinds(deck: Deck, wanted: Mapping[Game, Kept]) -> None:
    masked = {game for game, kept in wanted.items() if kept.coder is not None and isnan(kept.coder)}
    assert masked == {game for game in wanted if game.is_gone or game.program == "lost"}
    verdicts = {kept.report.verdict for kept in wanted.values() if kept.report is not None}
    assert {Verdict.PASSED, Verdict.SYNTAX_ERROR, Verdict.INTERNAL_ERROR} <= verdicts
    assert len({kept.coder for kept in wanted.values()} - {nan}) >= 3


@pytest.mark.parametrize(
    "driver", [pytest.param(name, marks=[pytest.mark.models] * (name == "grpo_rollouts")) for name in DRIVERS]
)
def test_same_replies_same_reports_and_rewards(driver: str, deck: Deck, wanted: Mapping[Game, Kept]) -> None:
    found = DRIVERS[driver](deck)
    assert set(deck.games(without=["gone", "lost"])) <= found.keys() <= wanted.keys()
    for game, kept in found.items():
        assert_same(game, kept, wanted[game])


PLAYED = [
    Game("looks right", "sharp"),
    Game("wrong", "naive"),
    Game("right", "false"),
    Game("syntax", "sharp"),
    Game("lost", "sharp"),
    Game("looks right", "naive"),
    Game("raises", "empty"),
    Game("right", "sharp"),
    Game("wrong", "false"),
]
Story = tuple[list[Kept], list[BookEntry]]
"""What was kept of each game in turn, and the book in the end."""


def entries_of(book: MistakeBook) -> list[BookEntry]:
    """Return a book's entries but for who made them."""
    return [replace(stored.entry, provenance=Provenance()) for stored in book.entries()]


def _with_own_book(deck: Deck, play: Callable[[Game, Sequence[BookEntry]], Kept]) -> Story:
    """Play what reads and writes no book by itself."""
    found, rules = [], deck.rules.book
    with MistakeBook() as book:
        for game in PLAYED:
            replayed = book.retrieve(deck.problem.id, rules) if rules.update is not BookUpdate.OFF else ()
            kept = play(game, replayed)
            found.append(kept)
            if rules.update is not BookUpdate.OFF and kept.report is not None and not kept.report.has_internal_error:
                book.record(ProblemReport(deck.problem.id, (kept.report,)), rules)
        return found, entries_of(book)


def rounds_with_book(deck: Deck) -> Story:
    referee = deck.referee()

    def play(game: Game, replayed: Sequence[BookEntry]) -> Kept:
        tree = Tree(deck.problem, replayed=tuple(entry.to_valid_case() for entry in replayed))
        (judged,) = _submitted(referee.open([tree]), [game]).results()
        assert (judged.book_report is None) == (game.program == "lost")
        return of_tree(judged, 0)

    return _with_own_book(deck, play)


def rewards_with_book(deck: Deck) -> Story:
    referee, name = deck.referee(), deck.problem.id

    def play(game: Game, replayed: Sequence[BookEntry]) -> Kept:
        cases = {name: [entry.to_valid_case() for entry in replayed]}
        (scored,) = referee.rewards([name], _programs([game]), _suites([game]), replayed=cases)
        return _of_scored(scored, game)

    return _with_own_book(deck, play)


def aec_with_book(deck: Deck) -> Story:
    with MistakeBook() as book:
        env, found = code_a1_v0.env(**deck.game, book=book), []
        for number, game in enumerate(PLAYED):
            env.reset(seed=None if number else 0)
            for text in (PROGRAMS[game.program], SUITES[game.suite]):
                if env.unwrapped.last_round is None:
                    env.step(text)
            found.append(_last(env, **_paid(env)))
        return found, entries_of(book)


def group_with_book(deck: Deck) -> Story:
    found = []
    with MistakeBook() as book:
        env = code_a1_v0.group_env(**deck.game, n_candidates=1, n_suites=1, book=book)
        for number, game in enumerate(PLAYED):
            paid = _group_played(env, [game], seed=None if number else 0)
            assert env.last_tree is not None
            found.append(_of_group(env.last_tree, 0, paid))
        return found, entries_of(book)


def gymnasium_with_book(deck: Deck) -> Story:
    found = []
    with MistakeBook() as book:
        for game in PLAYED:
            env = CoderEnv(Says(SUITES[game.suite]), **deck.game, book=book)
            env.reset(seed=0)
            _, reward, *_ = env.step(PROGRAMS[game.program])
            found.append(replace(_last(env.game, reward, nan), tester=None))
        return found, entries_of(book)


BOOK_DRIVERS = [rewards_with_book, aec_with_book, group_with_book, gymnasium_with_book]


@pytest.mark.parametrize("driver", BOOK_DRIVERS, ids=lambda driver: driver.__name__)
def test_same_games_in_turn_leave_the_same_book(driver: Any, deck: Deck) -> None:
    (wanted, book), (found, written) = rounds_with_book(deck), driver(deck)
    for game, kept, expected in zip(PLAYED, found, wanted, strict=True):
        assert_same(game, kept, expected)
    assert written == book
    assert bool(book) == (deck.rules.book.update is not BookUpdate.OFF)
    replayed = [kept.report is not None and bool(kept.report.replayed) for kept in wanted]
    assert any(replayed) == bool(book)
