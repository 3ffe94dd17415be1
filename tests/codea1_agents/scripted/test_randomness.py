from __future__ import annotations

import pytest

from codea1_agents.scripted.randomness import generator


def test_equal_seeds_and_owners_draw_equal_numbers_and_another_owner_others() -> None:
    first, again, other = (generator(7, owner).random(3).tolist() for owner in ("A", "A", "B"))
    assert first == again != other


def test_negative_seeds_are_refused() -> None:
    with pytest.raises(ValueError, match="non-negative"):
        generator(-1, "A")
