from __future__ import annotations

import pytest

from codea1_agents.lab.report.palette import DARK, LIGHT, lone_style, variables

GROUNDS = ("bg", "card", "sunk")
NO_LETTERS = {*GROUNDS, "line", "focus", "alarm", "heat-low", "heat-high"}


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_letters_stand_out_from_every_ground(colours: dict[str, str]) -> None:
    for name in colours.keys() - NO_LETTERS:
        for ground in GROUNDS:
            assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_numbers_on_every_shade_of_a_heat_map_can_be_read(colours: dict[str, str]) -> None:
    told = dict(pair.split(":") for pair in variables(colours).split(";") if pair)
    assert all(contrast(told[f"--n{n}"], told[f"--h{n}"]) >= 3.8 for n in range(11))


def test_both_themes_have_the_same_names_and_a_lone_picture_no_variables() -> None:
    assert LIGHT.keys() == DARK.keys()
    assert "var(" not in lone_style()
