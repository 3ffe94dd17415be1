"""The results of cross-play, as one JSON document and as sentences. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Self

from codea1_agents.statistics import Estimate, estimate_document, json_number
from codea1_env.facts.judge_version import JUDGE_VERSION
from codea1_env.rendering import shorten
from codea1_lab.crossplay.cells import FIGURES, Cells, CrossPlay, Grid, grid_of
from codea1_lab.crossplay.game import EmpiricalGame, Reversal, empirical_game, reversals
from codea1_lab.crossplay.ratings import Ratings, ratings_of

TITLES = {
    "pass_rate": "share of the suite's valid cases that the program passes",
    "validity": "share of the requested tests that are right and new",
    "beats": "suites that beat a program that loads, with wrong answers, too",
    "caught": "suites that beat a program that loads and is wrong, with wrong answers, too",
    "survives": "programs that load and survive the suite",
    "coder_reward": "the coder's reward",
    "tester_reward": "the tester's reward",
}
SHOWN = {
    "on_policy": ("pass_rate", "validity", "beats", "caught", "coder_reward", "tester_reward"),
    "transfer": ("pass_rate", "beats", "caught", "coder_reward", "tester_reward"),
}
"""The figures shown as tables, by mode. Stored suites keep their validity, so transfer does not show it."""
AGENT_COLUMNS = ("role", "agent", "right programs", "rating", "Nash")
"""Columns of `Findings.agent_rows`."""
_LONGEST = 14
"""Characters of a name in a table, so that three of each role fit 80 columns."""
_MODES = ("on_policy", "transfer")


@dataclass(frozen=True, slots=True)
class Findings:
    """The measurements and all results computed from them."""

    play: CrossPlay
    grids: Mapping[str, Mapping[str, Grid]]
    """By mode, `on_policy` and, if measured, `transfer`, and by figure."""
    right: tuple[Estimate, ...]
    """(C,) share of right programs."""
    ratings: Ratings
    games: Mapping[str, EmpiricalGame | None]
    """By mode; None if a pair has no payoffs."""
    reversals: tuple[Reversal, ...]

    @classmethod
    def of(cls, play: CrossPlay, *, n_draws: int = 300, seed: int = 0) -> Self:
        """Compute all results; `n_draws` counts the games' bootstrap draws, `seed` is for all intervals."""
        modes = {name: cells for name in _MODES if (cells := getattr(play, name)) is not None}
        return cls(
            play=play,
            grids={
                name: {figure: grid_of(play, cells, figure, seed=seed) for figure in FIGURES}
                for name, cells in modes.items()
            },
            right=play.right_intervals(seed=seed),
            ratings=ratings_of(play, seed=seed),
            games={key: empirical_game(play, cells=cells, n_draws=n_draws, seed=seed) for key, cells in modes.items()},
            reversals=reversals(play, seed=seed),
        )

    def document(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the plain data of `crossplay.json`; nan becomes null."""
        play, fixed = self.play, (set(self.play.fixed_coders), set(self.play.fixed_testers))
        return {
            "kind": "crossplay",
            "schema_version": 1,
            "judge_version": JUDGE_VERSION,
            "settings": dict(settings),
            "problem_ids": list(play.problems),
            "coders": [
                {
                    "name": name,
                    "is_yardstick": n in fixed[0],
                    "right": estimate_document(self.right[n]),
                    "rating": estimate_document(self.ratings.coders[n]),
                }
                for n, name in enumerate(play.coders)
            ],
            "testers": [
                {"name": name, "is_yardstick": n in fixed[1], "rating": estimate_document(self.ratings.testers[n])}
                for n, name in enumerate(play.testers)
            ],
            "rating_misfit": self.ratings.misfit,
            "reversals": [self._reversal(reversal) for reversal in self.reversals],
            **{mode: self._mode(mode) if mode in self.grids else None for mode in _MODES},
        }

    def sentences(self) -> Iterator[str]:
        """Yield what no table shows of the games on policy: few lines, so that three by three fit a screen."""
        yield f"Nash equilibrium: {self._equilibrium(self.games['on_policy'])}"
        yield f"Ratings: 400 points are odds of 10, off by at most {self.ratings.misfit:.2f} of a pair's games."
        if self.reversals:
            names = {key: shorten(name, _LONGEST) for key, name in self._reversal(self.reversals[0]).items()}
            yield (
                f"{names['first']} is ahead of {names['second']} against {names['against_first']}, and behind it"
                f" against {names['against_second']} ({len(self.reversals)} such beyond chance)."
            )
        else:
            yield "No two testers rank two coders in opposite ways beyond chance."
        if n_masked := sum(getattr(self.play, mode).n_masked for mode in self.grids):
            yield f"Masked, in no figure: {n_masked} games."

    def agent_rows(self) -> Iterator[tuple[str, str, str, str, str]]:
        """Yield one row of `AGENT_COLUMNS` per agent, with its probability in the equilibrium on policy."""
        game = self.games["on_policy"]
        for role, names, ratings, choices in (
            ("coder", self.play.coders, self.ratings.coders, game.coders if game else None),
            ("tester", self.play.testers, self.ratings.testers, game.testers if game else None),
        ):
            for n, name in enumerate(names):
                right = cell_text(self.right[n]) if role == "coder" else ""
                chance = f"{choices[n].chance.mean:.2f}" if choices else ""
                yield role, shorten(name, _LONGEST), right, cell_text(ratings[n], 0), chance

    def matrix(self, mode: str, figure: str) -> Iterator[tuple[str, ...]]:
        """Yield the testers' names, and one row per coder: its name and the texts of its cells."""
        yield "coder \\ tester", *(shorten(name, _LONGEST) for name in self.play.testers)
        for name, line in zip(self.play.coders, self.grids[mode][figure], strict=True):
            yield shorten(name, _LONGEST), *(cell_text(each) for each in line)

    def _mode(self, mode: str) -> dict[str, Any]:
        cells: Cells = getattr(self.play, mode)
        return {
            "n_masked": cells.n_masked,
            "figures": {name: _grid_document(grid) for name, grid in self.grids[mode].items()},
            "game": self._game(self.games[mode]),
            "per_problem": {name: _plain(getattr(cells, name)) for name in FIGURES},
        }

    def _game(self, game: EmpiricalGame | None) -> dict[str, Any] | None:
        if game is None:
            return None
        coders, testers = self.play.coders, self.play.testers
        return {
            "method": game.equilibrium.method,
            "residual": game.equilibrium.residual,
            "coder_value": estimate_document(game.coder_value),
            "tester_value": estimate_document(game.tester_value),
            "coders": [{"chance": estimate_document(c.chance), "played": json_number(c.played)} for c in game.coders],
            "testers": [{"chance": estimate_document(c.chance), "played": json_number(c.played)} for c in game.testers],
            "support": [[i, j] for i in game.equilibrium.row_support for j in game.equilibrium.column_support],
            "cycles": [[[coders[pair.coder], testers[pair.tester]] for pair in cycle] for cycle in game.cycles],
            "cycling": json_number(game.cycling),
        }

    def _equilibrium(self, game: EmpiricalGame | None) -> str:
        if game is None:
            return "none, because a pair has no payoffs."
        equilibrium = game.equilibrium
        coders = _strategy_text(self.play.coders, equilibrium.profile.row, equilibrium.row_support)
        testers = _strategy_text(self.play.testers, equilibrium.profile.column, equilibrium.column_support)
        earned = f"the coder earns {cell_text(game.coder_value)}, the tester {cell_text(game.tester_value)}."
        text = f"{coders} against {testers} ({equilibrium.method}); {earned}"
        return f"{text} Best responses {'cycle' if game.cycles else 'converge'} (cycle in {game.cycling:.0%} of draws)."

    def _reversal(self, each: Reversal) -> dict[str, str]:
        return {
            "first": self.play.coders[each.first.coder],
            "against_first": self.play.testers[each.first.tester],
            "second": self.play.coders[each.second.coder],
            "against_second": self.play.testers[each.second.tester],
        }


def cell_text(estimate: Estimate, digits: int = 2) -> str:
    """Return a mean with its interval; a dash for nan."""
    if not isfinite(estimate.mean):
        return "-"
    mean = f"{estimate.mean:z.{digits}f}"
    if not isfinite(estimate.low):
        return mean
    return f"{mean} ({estimate.low:z.{digits}f} to {estimate.high:z.{digits}f})"


def _grid_document(grid: Grid) -> dict[str, Any]:
    names = ("mean", "low", "high", "n_problems")
    return {name: [[json_number(getattr(cell, name)) for cell in row] for row in grid] for name in names}


def _strategy_text(names: Sequence[str], strategy: Any, support: Sequence[int]) -> str:
    if len(support) == 1:
        return shorten(names[support[0]], _LONGEST)
    return " + ".join(f"{strategy[n]:.2f} {shorten(names[n], _LONGEST)}" for n in support)


def _plain(values: Any) -> Any:
    return [_plain(value) for value in values] if values.ndim else json_number(float(values))
