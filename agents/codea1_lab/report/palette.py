"""The report's colours by name, for the light and the dark theme, and the style of a picture in its own file.

The name of a curve has the curve's colour, so each colour has a contrast of at least 4.5 to 1 with its background.
Colour is never the only sign of a verdict: its letter or its word stands next to it.
"""

from __future__ import annotations

from importlib.resources import files

_COLOURS = {  # light theme, dark theme
    "bg": ("#f7f5f0", "#13161a"),
    "card": ("#ffffff", "#1b2026"),
    "sunk": ("#f2efe8", "#15191e"),
    "ink": ("#1c2127", "#e9e6df"),
    "muted": ("#59636e", "#a2acb7"),
    "line": ("#ded9ce", "#323a43"),
    "focus": ("#0b57d0", "#8ab8ff"),
    "coder": ("#1b63b5", "#6fb4f7"),
    "tester": ("#b8440f", "#ff9b66"),
    "t1": ("#1d7a57", "#62cfa2"),
    "t2": ("#6a48b0", "#b8a1f7"),
    "t4": ("#0e7585", "#5bcbdb"),
    "t5": ("#836600", "#dcc052"),
    "t6": ("#a6336c", "#f08fbf"),
    "t7": ("#59636e", "#a2acb7"),
    "t8": ("#3f6b1f", "#a6d176"),
    "v-passed": ("#1b7350", "#4fbd91"),
    "v-wrong_answer": ("#c2343b", "#ff7b80"),
    "v-runtime_error": ("#8e46ab", "#cf93ea"),
    "v-time_limit": ("#935600", "#f0ae4e"),
    "v-memory_limit": ("#7c5a2a", "#cfa878"),
    "v-output_limit": ("#6b6f1d", "#c6ca6a"),
    "v-not_run": ("#606972", "#98a2ad"),
    "v-denied": ("#606972", "#98a2ad"),
    "v-undecided": ("#606972", "#98a2ad"),
    "v-internal_error": ("#a6336c", "#f08fbf"),
    "keyword": ("#8a2f8f", "#d79be0"),
    "string": ("#22703f", "#8fd0a0"),
    "number": ("#9a4a00", "#f0b277"),
    "comment": ("#5f6973", "#8f9aa5"),
    "name": ("#1b57a8", "#85bdf7"),
    "alarm": ("#fdecea", "#3a2020"),
    "found": ("#ffe58a", "#6b5600"),
}
LIGHT = {name: light for name, (light, _) in _COLOURS.items()}
DARK = {name: dark for name, (_, dark) in _COLOURS.items()}

_VALID, _BOOK, _GOLDEN = "t1", "t2", "t5"
_MEANINGS = {
    "coder": "coder programs adversarial_against pass_new pass_at_1 pass_at_8",
    "tester": "tester suites beat adversarial",
    _VALID: "load valid validity",
    _BOOK: "pass_replayed cases",
    _GOLDEN: "golden golden_rate golden_pass_rate",
    "t4": "sampling agents",
    "t6": "judging entered",
    "t8": "learning left",
    "t7": "weights the_rest pushed_out",
}
_TONES = {name.replace("_", " "): tone for tone, names in _MEANINGS.items() for name in names.split()}
_OTHERS = ("t4", "t6", "t8", "t7", _GOLDEN, _BOOK, _VALID)
"""Colours of curves without a meaning of their own, such as opponents; the first ones differ most."""


def tone_of(name: str, number: int) -> str:
    """Return the colour of a curve: that of its meaning, the same in every chart, or else one by its number."""
    return _TONES.get(name, _OTHERS[number % len(_OTHERS)])


RUN_TONES = ("ink", "t6", "t8", "t2")
"""Colours of runs in charts that compare them, chosen to differ for colour-blind readers, too."""

DASHES = ("", "7 4", "2 3.5", "9 3 2 3", "14 4")
"""Dashes of curves; `DASHES` and `RUN_TONES` repeat with different periods."""

_CURVES = ("coder", "tester", "ink", *_OTHERS)


def asset(name: str) -> str:
    """Return the text of a file in `assets/`."""
    return files("codea1_lab.report").joinpath("assets", name).read_text(encoding="utf-8")


def variables(colours: dict[str, str]) -> str:
    """Return the declarations of one theme, without braces."""
    return "".join(f"--{name}:{value};" for name, value in colours.items())


def chart_rules() -> str:
    """Return the style rules of charts, with the colour of each class."""
    verdicts = [name for name in LIGHT if name.startswith("v-")]
    tones = "".join(f".{name}{{color:var(--{name})}}" for name in (*_CURVES, *verdicts))
    dashes = "".join(f".chart .dash{n}{{stroke-dasharray:{dash}}}" for n, dash in enumerate(DASHES) if dash)
    return f"{asset('chart.css')}{dashes}{tones}"


def lone_style() -> str:
    """Return the style of a picture in its own file, without variables, which some drawing programs do not support."""
    rules = chart_rules()
    for name, value in sorted(LIGHT.items(), key=lambda each: -len(each[0])):
        rules = rules.replace(f"var(--{name})", value)
    return f"svg{{background:{LIGHT['card']}}}{rules}"
