"""One rating per agent: the Bradley-Terry model of games between coders and testers, on the Elo scale. Pure.

A game is one program against one suite. The coder wins if the program loads and survives. In the model a coder of
rating c survives a tester of rating t with probability 1 / (1 + 10^((t - c) / 400)). All problems have the same weight.
The prior is one drawn game of each agent against an opponent in the middle of the scale, so that an agent that never
loses has a finite rating. `misfit` states how far the model is from the games.

Source: Bradley and Terry, Rank Analysis of Incomplete Block Designs (1952); Elo's scale: 400 points are odds of 10.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from codea1_agents.statistics import Estimate
from codea1_lab.crossplay.cells import CrossPlay
from codea1_lab.crossplay.draws import Table, drawn_counts, estimates, means_of, problem_weights

_ELO = 400 / math.log(10)
_MAX_STEPS = 100
_CONVERGED = 1e-10


@dataclass(frozen=True, slots=True)
class Ratings:
    """Ratings of both roles on one scale, with 95 % bootstrap intervals over problems.

    0 is the mean of the scripted yardsticks; without yardsticks, the mean of all agents.
    """

    coders: tuple[Estimate, ...]
    """(C,)"""
    testers: tuple[Estimate, ...]
    """(T,)"""
    misfit: float
    """Largest difference, over pairs, between the share of survived games and the model's probability; in [0, 1]."""


def ratings_of(play: CrossPlay, *, n_draws: int = 500, seed: int = 0) -> Ratings:
    """Return the ratings by the games on policy.

    Args:
        play: at least one cell has a value.
        n_draws: number of draws of the bootstrap.
        seed: for the draws.
    """
    table = play.on_policy.survives
    weights = problem_weights(len(play.problems), n_draws, seed)
    counts, shares = drawn_counts(table, weights), np.nan_to_num(means_of(table, weights), nan=0.5)
    n_coders = len(play.coders)
    fixed = [*play.fixed_coders, *(n_coders + t for t in play.fixed_testers)]
    strengths = np.stack([bradley_terry(s, n) for s, n in zip(shares, counts, strict=True)])
    expected = _win_probability(strengths[0, :n_coders, None] - strengths[0, None, n_coders:])
    misfit = float(np.where(counts[0] > 0, np.abs(expected - shares[0]), 0.0).max())
    strengths -= strengths[:, fixed or slice(None)].mean(axis=1, keepdims=True)
    known = ~np.isnan(table)
    n = [*known.sum(axis=(1, 2)), *known.sum(axis=(0, 2))]
    rated = estimates(strengths * _ELO, n, len(play.problems))
    return Ratings(rated[:n_coders], rated[n_coders:], misfit)


def bradley_terry(shares: Table, counts: Table) -> Table:
    """Return (C + T,) ratings of coders, then testers, in nats, by Newton's method.

    Args:
        shares: (C, T) share of games that the coder wins, in [0, 1].
        counts: (C, T) number of games; 0 if a pair has not played.
    """
    n_coders, n_testers = shares.shape
    ratings = np.zeros(n_coders + n_testers)
    wins = shares * counts
    for _ in range(_MAX_STEPS):
        p = _win_probability(ratings[:n_coders, None] - ratings[None, n_coders:])
        prior = _win_probability(ratings)
        residual, variance = wins - counts * p, counts * p * (1 - p)
        gradient = np.concatenate([residual.sum(axis=1), -residual.sum(axis=0)]) + 0.5 - prior
        hessian = np.diag(np.concatenate([variance.sum(axis=1), variance.sum(axis=0)]) + prior * (1 - prior))
        hessian[:n_coders, n_coders:] = -variance
        hessian[n_coders:, :n_coders] = -variance.T
        step = np.linalg.solve(hessian, gradient)
        step *= min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-300))
        ratings += step
        if np.abs(step).max() < _CONVERGED:
            break
    return ratings


def _win_probability(difference: Table) -> Table:
    probability: Table = 1 / (1 + np.exp(-difference))
    return probability
