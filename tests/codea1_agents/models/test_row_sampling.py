from __future__ import annotations

import numpy as np
import pytest

from codea1_agents.models.completions import Sampling
from codea1_agents.models.row_sampling import RowSampler, uniforms

torch = pytest.importorskip("torch")


def chosen(scores, sampling, seeds):
    """Return the one token left per row, after checking that there is one."""
    left = RowSampler(sampling, seeds, prompt_length=3)(torch.zeros(len(seeds), 3), scores).isfinite()
    assert left.sum(dim=1).tolist() == [1] * len(seeds)
    return left.int().argmax(dim=1).tolist()


def test_a_row_is_drawn_as_it_would_be_alone_and_each_step_has_its_own_number():
    assert np.array_equal(uniforms([7, 8, 9], 5)[1], uniforms([8], 9)[0, :5])
    assert uniforms([], 5).shape == (0, 5)
    scores = torch.randn(6, 50, generator=torch.Generator().manual_seed(0))
    together = chosen(scores, Sampling(1.0, 0.9, max_tokens=4), range(6))
    assert [chosen(scores[at : at + 1], Sampling(1.0, 0.9, max_tokens=4), [at])[0] for at in range(6)] == together
    draws = RowSampler(Sampling(max_tokens=40), [0], prompt_length=3)
    scores = torch.zeros(1, 100)
    steps = [int(draws(torch.zeros(1, 3 + step), scores).argmax()) for step in range(40)]
    assert len(set(steps)) > 20


def test_tokens_are_drawn_as_often_as_they_are_likely_at_each_temperature():
    scores = torch.tensor([0.5, 0.3, 0.15, 0.05]).log().repeat(4000, 1)
    counts = np.bincount(chosen(scores, Sampling(max_tokens=1), range(4000)), minlength=4) / 4000
    assert np.abs(counts - [0.5, 0.3, 0.15, 0.05]).max() < 0.03
    scores = torch.tensor([0.6, 0.4]).log().repeat(4000, 1)
    sharp = np.mean(chosen(scores, Sampling(0.5, max_tokens=1), range(4000)))
    assert abs(sharp - 0.16 / 0.52) < 0.03
    scores = torch.tensor([-torch.inf, 0.0, -torch.inf]).repeat(3000, 1)
    assert set(chosen(scores, Sampling(max_tokens=1), range(3000))) == {1}


def test_the_nucleus_keeps_the_likeliest_tokens_that_reach_top_p():
    scores = torch.tensor([0.05, 0.3, 0.5, 0.15]).log().repeat(2000, 1)
    counts = np.bincount(chosen(scores, Sampling(1.0, 0.75, max_tokens=1), range(2000)), minlength=4) / 2000
    assert counts[0] == counts[3] == 0
    assert abs(counts[2] - 0.5 / 0.8) < 0.04
    assert set(chosen(scores, Sampling(1.0, 0.01, max_tokens=1), range(2000))) == {2}
