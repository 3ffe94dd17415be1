from __future__ import annotations

from itertools import combinations
from math import dist

import pytest

from codea1_lab.report.palette import DARK, DASHES, LIGHT, RUN_TONES, lone_style

GROUNDS = ("bg", "card", "sunk")
NO_LETTERS = {*GROUNDS, "line", "focus", "alarm", "found"}


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def linear(colour: str) -> list[float]:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance."""
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear(colour), strict=True))


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_letters_and_numbers_stand_out_from_every_ground(colours: dict[str, str]) -> None:
    pairs = [(name, ground) for name in colours.keys() - NO_LETTERS for ground in GROUNDS] + [("ink", "found")]
    assert [pair for pair in pairs if contrast(colours[pair[0]], colours[pair[1]]) < 4.5] == []


COLOUR_BLINDNESS = {  # Machado, Oliveira and Fernandes (2009), severity 1; rows give linear red, green and blue
    "none": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052)),
    "deutan": ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969)),
    "tritan": ((1.256, -0.077, -0.179), (-0.078, 0.931, 0.148), (0.005, 0.691, 0.304)),
}


def lab(colour: str, matrix: tuple[tuple[float, ...], ...]) -> tuple[float, float, float]:
    """CIE L*a*b* (D65) of a colour as seen with a kind of colour blindness."""
    parts = linear(colour)
    red, green, blue = (min(1.0, max(0.0, sum(w * part for w, part in zip(row, parts, strict=True)))) for row in matrix)
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089
    fx, fy, fz = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("matrix", COLOUR_BLINDNESS.values(), ids=COLOUR_BLINDNESS.keys())
def test_colours_of_runs_differ_for_everybody(matrix: tuple[tuple[float, ...], ...], colours: dict[str, str]) -> None:
    for one, other in combinations(RUN_TONES, 2):
        assert dist(lab(colours[one], matrix), lab(colours[other], matrix)) >= 20, (one, other)


def test_runs_of_one_colour_have_other_dashes_both_themes_the_same_names_and_a_lone_picture_no_variables() -> None:
    told = {(RUN_TONES[n % len(RUN_TONES)], DASHES[n % len(DASHES)]) for n in range(20)}
    assert len(told) == 20
    assert LIGHT.keys() == DARK.keys()
    assert "var(" not in lone_style()
