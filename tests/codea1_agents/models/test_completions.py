from __future__ import annotations

from random import Random

import numpy as np
import pytest

from codea1_agents.models.completions import Completion, Sampling, Usage, digest, draw_seed
from codea1_agents.models.openai_connection import LONGEST_S, Backoff
from codea1_env.errors import UserError

OBSERVATION = {"problem": "p", "program": "\ud800", "round": 0}


def test_a_seed_depends_on_seed_observation_and_info_alone_and_a_digest_knows_no_order():
    seeds = {
        draw_seed(0, OBSERVATION, {"episode_id": "a"}),
        draw_seed(0, OBSERVATION, {"episode_id": "b"}),
        draw_seed(1, OBSERVATION, {"episode_id": "a"}),
        draw_seed(0, OBSERVATION | {"round": 1}, {"episode_id": "a"}),
    }
    assert len(seeds) == 4
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert draw_seed(np.int64(0), OBSERVATION, {"episode_id": "a"}) in seeds
    turned = {"round": np.int64(0), "program": "\ud800", "problem": "p"}
    assert digest(turned) == digest(OBSERVATION)
    assert digest(OBSERVATION | {"round": 1}) != digest(OBSERVATION)


def test_totals_count_what_the_token_limit_cut():
    replies = [Completion("a", "length", prompt_tokens=3, completion_tokens=2), Completion("b", completion_tokens=1)]
    assert Usage(retries=1).with_completions(replies) == Usage(2, 1, 3, 3, retries=1)


OUT_OF_RANGE = {
    Sampling: {"temperature": (-1, "hot", float("nan")), "top_p": (0, 1.1), "max_tokens": (0, 2.5, True)},
    Backoff: {"retries": (-1,), "backoff_s": (-0.1, 99.0)},
}


@pytest.mark.parametrize(
    ("kind", "name", "value"), [(k, n, each) for k, names in OUT_OF_RANGE.items() for n in names for each in names[n]]
)
def test_settings_out_of_range_are_refused_by_name(kind, name, value):
    with pytest.raises(UserError, match=name):
        kind(**{name: value})


def test_waits_grow_jitter_and_have_an_end_also_those_that_a_server_asks_for():
    backoff = Backoff(retries=9, backoff_s=6.0)
    waits = [backoff.wait_s(attempt, Random(0)) for attempt in (0, 1, 2, 3, 8, 5000)]
    assert all(low <= wait <= 2 * low for low, wait in zip([3, 6, 12, 24, 30, 30], waits, strict=True))
    assert backoff.wait_s(0, Random(0)) == backoff.wait_s(0, Random(0))
    assert len({backoff.wait_s(3, Random(seed)) for seed in range(10)}) == 10
    backoff = Backoff(backoff_s=6.0)
    assert backoff.wait_s(0, Random(0), requested_s=7.0) == 7.0
    assert backoff.wait_s(0, Random(0), requested_s=3600.0) == LONGEST_S
