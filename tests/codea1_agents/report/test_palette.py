from __future__ import annotations

import pytest

from codea1_agents.report.palette import DARK, LIGHT, lone_style

GROUNDS = ("bg", "card", "sunk")
NO_LETTERS = {*GROUNDS, "line", "focus", "alarm", "heat-low", "heat-high"}


def luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_letters_stand_out_from_every_ground(colours: dict[str, str]) -> None:
    for name in colours.keys() - NO_LETTERS:
        for ground in GROUNDS:
            dark, light = sorted((luminance(colours[name]), luminance(colours[ground])))
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (name, ground)


def test_both_themes_have_the_same_names_and_a_lone_picture_no_variables() -> None:
    assert LIGHT.keys() == DARK.keys()
    assert "var(" not in lone_style() + lone_style(dark=True)
