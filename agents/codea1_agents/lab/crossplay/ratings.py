"""One number per agent: Bradley and Terry's model of the games between coders and testers, on Elo's scale. Pure.

A game is one program against one suite; the coder wins if the program loads and survives. The model says that a coder
of rating c survives a tester of rating t with probability 1 / (1 + 10^((t - c) / 400)). Every problem weighs the same.
Each agent also has one drawn game against an opponent in the middle, so that who never loses has a rating, too. A
single number cannot tell everything: `misfit` says how far the model is from the games.

Source: Bradley and Terry, Rank Analysis of Incomplete Block Designs (1952); Elo's scale: 400 points are odds of 10.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from codea1_agents.lab.crossplay.cells import CrossPlay
from codea1_agents.lab.crossplay.draws import Table, drawn_counts, estimates, means_of, problem_weights
from codea1_agents.statistics import Estimate

_ELO = 400 / math.log(10)
_MAX_STEPS = 100
_DONE = 1e-10


@dataclass(frozen=True, slots=True)
class Ratings:
    """Ratings of both roles on one scale: 0 is the mean of the scripted yardsticks, of everybody where there are none.

    Intervals are 95 %, by bootstrap over problems.
    """

    coders: tuple[Estimate, ...]
    """(C,)"""
    testers: tuple[Estimate, ...]
    """(T,)"""
    misfit: float
    """Largest distance, over pairs, of the share survived from what the model says; in [0, 1]."""


def ratings_of(play: CrossPlay, *, n_draws: int = 500, seed: int = 0) -> Ratings:
    """Return the ratings from the games on policy.

    Args:
        play: with at least one known cell.
        n_draws: of the bootstrap.
        seed: of the draws.
    """
    table = play.on_policy.survives
    weights = problem_weights(len(play.problems), n_draws, seed)
    counts, shares = drawn_counts(table, weights), np.nan_to_num(means_of(table, weights), nan=0.5)
    n_coders = len(play.coders)
    fixed = [*play.fixed_coders, *(n_coders + t for t in play.fixed_testers)]
    found = np.stack([bradley_terry(s, n) for s, n in zip(shares, counts, strict=True)])
    expected = _odds(found[0, :n_coders, None] - found[0, None, n_coders:])
    misfit = float(np.where(counts[0] > 0, np.abs(expected - shares[0]), 0.0).max())
    found -= found[:, fixed or slice(None)].mean(axis=1, keepdims=True)
    known = ~np.isnan(table)
    n = [*known.sum(axis=(1, 2)), *known.sum(axis=(0, 2))]
    rated = estimates(found * _ELO, n, len(play.problems))
    return Ratings(rated[:n_coders], rated[n_coders:], misfit)


def bradley_terry(shares: Table, counts: Table) -> Table:
    """Return (C + T,) ratings of coders, then testers, in nats.

    Args:
        shares: (C, T) share of games that the coder wins, in [0, 1].
        counts: (C, T) games; 0 where a pair has not met.
    """
    n_coders, n_testers = shares.shape
    ratings = np.zeros(n_coders + n_testers)
    wins = shares * counts
    for _ in range(_MAX_STEPS):
        p = _odds(ratings[:n_coders, None] - ratings[None, n_coders:])
        prior = _odds(ratings)
        gap, spread = wins - counts * p, counts * p * (1 - p)
        slope = np.concatenate([gap.sum(axis=1), -gap.sum(axis=0)]) + 0.5 - prior
        curve = np.diag(np.concatenate([spread.sum(axis=1), spread.sum(axis=0)]) + prior * (1 - prior))
        curve[:n_coders, n_coders:] = -spread
        curve[n_coders:, :n_coders] = -spread.T
        step = np.linalg.solve(curve, slope)
        step *= min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-300))
        ratings += step
        if np.abs(step).max() < _DONE:
            break
    return ratings


def _odds(gap: Table) -> Table:
    chances: Table = 1 / (1 + np.exp(-gap))
    return chances
