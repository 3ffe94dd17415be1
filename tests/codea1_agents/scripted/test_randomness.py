from __future__ import annotations

import pytest

from codea1_agents.scripted.randomness import generator


def test_equal_seeds_and_owners_draw_equal_numbers() -> None:
    assert generator(7, "A").random(3).tolist() == generator(7, "A").random(3).tolist()


def test_two_owners_of_one_seed_draw_different_numbers() -> None:
    assert generator(7, "A").random(3).tolist() != generator(7, "B").random(3).tolist()


def test_negative_seeds_are_refused() -> None:
    with pytest.raises(ValueError, match="non-negative"):
        generator(-1, "A")
