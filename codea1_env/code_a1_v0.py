"""The two-agent game of Code-A1: `coder_0` writes a program for a problem, `tester_0` writes tests to break it.

:Creation: `from codea1_env import code_a1_v0; env = code_a1_v0.env(problems="humaneval")`
:Agents: `coder_0`, then `tester_0`; AEC is canonical
:Action space: text: the raw reply of a model, of any length up to 1,048,576 characters
:Observation space: `Dict` of text: `problem`, `entry_point`, `examples`, `program`, `feedback`, and `round`
:Parallel API: `parallel_env()`, turn-based: the tester sees the program. `blind_parallel_env()`: both act at once
:Groups: `group_env()`: many coders, many testers for each (`codea1_env.group_env`)

**A round.** The environment reads the coder's reply into a candidate and loads it in the sandbox. The tester sees the
program (white box) and replies with asserts. The solution validates them. The candidate runs the valid ones and the
cases replayed from the Mistake Book. Both agents get their rewards together after the tester has acted, and the book is
updated. A candidate that does not load ends the round without the tester's turn; its reward would be 0
(`skip_invalid`).

**An episode** is one problem and `max_cycles` rounds. From the second round on, `feedback` lists the failed cases for
the coder, and `program` holds its previous program. The last round *terminates*. If the sandbox itself fails, the round
is not scored: both rewards are nan, `infos[agent]["masked"]` is True and the episode is *truncated*. If an agent gives
no reply, `env.unwrapped.give_up(why)` ends its episode in the same way.

**Infos** when acting: `problem_id`, `episode_id`, `group_id`, `role`, `round`, `tests_per_suite`, `kind` (of the
problem: `function`, `method` or `stdin`), for the tester `tester_view` (`white_box`, `black_box`; `blind` in the blind
view) and, for problems whose tests may be more than calls with one right value, `test_notes` (text), and
`truncated_chars` if a reply was cut; after judging also `verdict`, `own_tests`, `pass_rate`, `new_tests`,
`replayed_tests`, `validity`, `difficulty`, `rejections`, `reward_parts`, `book_size`, `masked`.
`env.unwrapped.last_round` holds all verdicts.

**Reset options**: `problem_id` (of the problem set), `problem` (your own `Problem`), `replay` (False: no replays in
this episode). A key that looks like a misspelled option is an error; other unknown keys are logged and ignored, as
PettingZoo's conformance tests require.

**Version history**: v0, first version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from codea1_env.book.store import MistakeBook
from codea1_env.errors import of_type
from codea1_env.facts.submissions import Suite
from codea1_env.group_env import GroupEnv as group_env  # noqa: N813  PettingZoo: a name of an environment's kind
from codea1_env.judging.judged_round import JudgedRound
from codea1_env.observations import (
    action_space,
    checked_reply,
    coder_feedback,
    observation_of,
    observation_space,
    tester_feedback,
)
from codea1_env.problems import DEFAULT_SOURCE, ProblemSet, load_problems
from codea1_env.rounds.episodes import (
    CODER,
    MAX_CYCLES,
    METADATA,
    TESTER,
    EpisodeSource,
    SimultaneousEnv,
    TurnBasedParallelEnv,
    TurnByTurnEnv,
    TwoAgentGame,
    takes_arguments_of,
)
from codea1_env.rounds.referee import Referee
from codea1_env.rounds.rounds import RoundOptions, Rounds, Tree
from codea1_env.rules.mistake_book import Provenance
from codea1_env.rules.ruleset import Ruleset
from codea1_env.sandbox import Limits, Sandbox

__all__ = ["CODER", "MAX_CYCLES", "TESTER", "blind_parallel_env", "env", "group_env", "parallel_env", "raw_env"]


class raw_env(TwoAgentGame):  # noqa: N801  PettingZoo's name
    """The environment without wrappers; see the module's docstring for the game. Any text is a legal action."""

    metadata: dict[str, Any] = {**METADATA, "name": "code_a1_v0"}  # noqa: RUF012  PettingZoo declares it so
    _rounds: Rounds
    _n_cut: dict[str, int]

    def __init__(
        self,
        problems: str | Path | ProblemSet = DEFAULT_SOURCE,
        *,
        rules: str | Ruleset = "fixed",
        tester_view: str = "white_box",
        max_cycles: int = 1,
        book: MistakeBook | str | Path | None = None,
        sandbox: Sandbox | str = "local",
        limits: Limits | None = None,
        skip_invalid: bool = True,
        infos: bool = True,
        render_mode: str | None = None,
        provenance: Provenance | None = None,
    ) -> None:
        """Make an environment; it starts nothing before the first step.

        Args:
            problems: a source that `load_problems` takes: `humaneval`, `starter`, a path, a `ProblemSet`.
            rules: a `Ruleset` or the name of one.
            tester_view: `white_box` (the tester sees the program) or `black_box` (its `program` is empty).
            max_cycles: rounds per episode, from 1 to `MAX_CYCLES`.
            book: a Mistake Book, or the path of one; None: a new one in memory.
            sandbox: a back end or its name; environments of a process share one local pool.
            limits: bounds per call of a program; None: the defaults of `Limits`.
            skip_invalid: whether a candidate that does not load ends its round without the tester's turn.
            infos: False leaves infos empty, for libraries that turn them into tensors (torchrl).
            render_mode: `human` prints each judged round, `ansi` makes `render()` return it.
            provenance: the names of run, coder and tester that new entries of the book keep.

        Raises:
            UserError: an argument is invalid, the problems are empty, or the rules pay for golden tests and a
                problem has none.
        """
        super().__init__(tester_view=tester_view, max_cycles=max_cycles, render_mode=render_mode, infos=infos)
        self.problems = load_problems(problems)
        self.referee = Referee(self.problems, rules, sandbox=sandbox, limits=limits)
        self.rules = self.referee.rules
        self.provenance = of_type("provenance", provenance or Provenance(), Provenance)
        self.skip_invalid = of_type("skip_invalid", skip_invalid, bool)
        self._source = EpisodeSource(self.problems, self.rules, book)
        self.book = self._source.book
        self._observation_spaces = {agent: observation_space(self.max_cycles) for agent in self.possible_agents}
        self._action_spaces = {agent: action_space() for agent in self.possible_agents}

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Start an episode on the next problem (see the module's docstring for `options`).

        A seed restarts everything random; without one, the random stream continues.
        """
        self.require_open()
        self._episode = self._source.begin(seed, self._source.check_options(options or {}))
        self._problem, self._episode_id = self._episode.problem, self._episode.id
        self._program = self._coder_feedback = self._tester_feedback = ""
        self._begin_episode()

    def observe(self, agent: str) -> dict[str, Any]:
        """Return what the agent sees now."""
        if self.require_agent(agent) == CODER:
            return observation_of(self._problem, self._round, self._previous_program, self._coder_feedback)
        return observation_of(self._problem, self._round, self._shown_program(), self._tester_feedback)

    def give_up(self, why: str) -> None:
        """End the episode unscored because the agent whose turn it is gave no reply; only while there is a turn.

        Args:
            why: is recorded, so it must be the same in every process.
        """
        self._rounds.give_up(why)
        self._end_round(None)
        self._accumulate_rewards()

    def close(self) -> None:
        """Close the book if this environment opened it; idempotent. The sandbox is shared and stays open."""
        super().close()
        self._source.close()

    def about(self) -> str:
        """Return what is played, for people: the problems, the rules and what the tester sees."""
        return f"{super().about()}; {self.reported_view}"

    # -- a round --

    def _checked_action(self, agent: str, action: str | None) -> str:
        reply, self._n_cut[agent] = checked_reply(agent, action)
        return reply

    def _act(self, agent: str, action: str) -> None:
        if agent == TESTER:
            self._rounds.submit_suites([action])
            self._end_round(action)
            return
        self._coder_reply = action
        self._rounds.submit_programs([action])
        self._program = self._rounds.candidates()[0][0].program
        if self._rounds.tester_turns():
            self._pass_to_tester()
        else:
            self._end_round(None)

    def _begin_round(self) -> None:
        self._previous_program, self._program = self._program, ""
        self._coder_reply = ""
        tree = Tree(self._problem, replayed=self._source.read_replays(self._episode))
        self._rounds = self.referee.open([tree], RoundOptions(skips_invalid=self.skip_invalid))
        self._n_cut = dict.fromkeys(self.agents, 0)
        self.agent_selection = CODER
        self.infos = {agent: self._turn_info(agent) for agent in self.agents}

    def _end_round(self, tester_reply: str | None) -> None:
        if tester_reply is None:  # an empty suite, so that the tester is scored, too
            self._rounds.submit_suites([Suite(())], [[1]])
        (tree,) = self._rounds.results()
        assert tree.report is not None  # without `masks_sandbox_errors`, submitting raises instead
        book, rewards, book_report = None, tree.rewards[0], tree.book_report
        if book_report is not None:
            provenance = replace(self.provenance, episode_id=self._episode_id, round=self._round)
            book = self._source.record(book_report, provenance)
        judged = JudgedRound(
            self._problem, self._episode_id, self._round, self._coder_reply, tester_reply, tree.report, rewards, book
        )
        (report,) = tree.report.candidates
        self._coder_feedback = coder_feedback(report)
        self._tester_feedback = tester_feedback(None if tester_reply is None else report.suites[0])
        self._finish_round(judged, self._n_cut)

    def _shown_program(self) -> str:
        return self._program if self.tester_view == "white_box" else ""


@takes_arguments_of(raw_env)
def env(game: raw_env) -> TurnByTurnEnv:
    """Return the AEC environment: the agents act one after the other.

    >>> from codea1_env import code_a1_v0
    >>> env = code_a1_v0.env("starter")
    >>> env.reset(seed=0, options={"problem_id": "starter/count_carries"})
    >>> env.step("def count_carries(a, b): return 0")  # the coder's reply
    >>> env.step("assert count_carries(5, 5) == 1")  # the tester's: 1 of 8 tests, and it beats the program
    >>> env.rewards
    {'coder_0': 0.0, 'tester_0': 0.125}
    """
    return TurnByTurnEnv(game)


@takes_arguments_of(raw_env)
def parallel_env(game: raw_env) -> TurnBasedParallelEnv:
    """Return the turn-based parallel view: each step takes one agent's action, `infos[a]["active_agent"]` says whose.

    The tester sees the program. PettingZoo's other conversion would show both agents the state *before* the coder acts,
    so the tester would never see a program.

    >>> from codea1_env import code_a1_v0
    >>> env = code_a1_v0.parallel_env("starter")
    >>> observations, infos = env.reset(seed=0, options={"problem_id": "starter/count_carries"})
    >>> observations, *_ = env.step({"coder_0": "def count_carries(a, b): return 0"})
    >>> observations["tester_0"]["program"]
    'def count_carries(a, b): return 0'
    """
    return TurnBasedParallelEnv(game)


@takes_arguments_of(raw_env, tester_view="black_box", skip_invalid=False)
def blind_parallel_env(game: raw_env) -> SimultaneousEnv:
    """Return the simultaneous parallel view: both agents act at once, the tester never sees a program."""
    game.reported_view = "blind"
    return SimultaneousEnv(game)
