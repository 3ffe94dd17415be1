"""Render judged rounds for people: in colour for terminals, as plain text for `render()` and logs.

Text from agents is untrusted: it is never parsed as markup, and characters that could control a terminal or change the
direction of text are shown as escapes. The functions import rich on use, so that a game without rendering starts fast.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from codea1_env import values
from codea1_env.facts.submissions import Rejection, RejectionReason
from codea1_env.facts.verdicts import CandidateReport, CaseReport, Verdict
from codea1_env.judging.judged_round import JudgedRound
from codea1_env.problems.problem import Problem
from codea1_env.rules.mistake_book import BookDelta
from codea1_env.rules.rewards import Reward, n_failed, n_passed, n_right, n_written

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text


SYMBOLS: dict[Verdict, str] = {
    Verdict.PASSED: ".",
    Verdict.WRONG_ANSWER: "W",
    Verdict.RUNTIME_ERROR: "E",
    Verdict.TIME_LIMIT: "T",
    Verdict.MEMORY_LIMIT: "M",
    Verdict.OUTPUT_LIMIT: "O",
    Verdict.NOT_RUN: "-",
    Verdict.DENIED: "x",
    Verdict.UNDECIDED: "~",
    Verdict.INTERNAL_ERROR: "?",
}
"""One character per verdict that a case can have."""

_MAX_LINES = 40
_MAX_LINE_CHARS = 200
_MAX_REPLY_LINES = 8
_MAX_CELL_CHARS = 160
_MAX_CASES = 40
_MAX_REJECTIONS = 12
_MAX_NAMED = 3
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_STYLES = {"passed": "green", "not run": "dim", "denied": "dim", "undecided": "dim", "internal error": "magenta"}


def duel_picture(
    judged: JudgedRound, *, width: int = 100, reveals: bool = False, is_brief: bool = False
) -> RenderableType:
    """Return a rich renderable with the program, the suite, the verdicts, the rewards and the changes of the book.

    Args:
        judged: the round.
        width: number of columns.
        reveals: whether to say in what the program differs from the solution, which is secret during a game.
        is_brief: whether to leave out headline, verdicts in symbols, rewards and book.
    """
    from rich.console import Group  # noqa: PLC0415  rich is slow to import
    from rich.padding import Padding  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    from codea1_env.differences import difference  # noqa: PLC0415  a game needs it only where it is told

    report = judged.report.candidates[0]
    change = difference(report.candidate.program, judged.problem.solution) if reveals and report.loads else None
    parts: list[RenderableType] = [] if is_brief else [_headline(judged, width)]
    parts.append(_program(judged, change.line if change else 0, tells_valid=not is_brief))
    if change is not None:
        told = f"{change.sentence()}; {_describe_finders(report)}."
        parts.append(Text(harmless(told), style="bold", overflow="fold"))
    if report.replayed or any(suite.cases for suite in report.suites):
        parts += [_cases_table(report, width), *([] if is_brief else [_verdict_row(report)])]
    rejections = [rejection for suite in report.suites for rejection in suite.suite.rejections]
    parts += [_rejections_table(rejections, width)] if rejections else []
    parts += [] if is_brief else [_outcome(judged)]
    return Group(*(Padding(part, (0, 0, 1, 0)) for part in parts))


def duel_text(judged: JudgedRound, *, width: int = 100) -> str:
    """Return the same as plain text: no colours, and no control characters but line feeds."""
    from io import StringIO  # noqa: PLC0415  only here

    from rich.console import Console  # noqa: PLC0415  rich is slow to import

    page = StringIO()
    console = Console(
        file=page, width=width, color_system=None, legacy_windows=False, force_terminal=False, force_jupyter=False
    )
    console.print(duel_picture(judged, width=width))
    return "\n".join(line.rstrip() for line in page.getvalue().split("\n")).rstrip("\n") + "\n"


def render_round(judged: JudgedRound | None, problem: Problem, mode: str) -> str | None:
    """Render a round for an environment's `render`.

    Args:
        judged: the last round; None: there is none yet, and the problem's statement is shown.
        problem: the episode's problem.
        mode: `ansi` returns the text; any other mode prints it and returns None.
    """
    text = duel_text(judged) if judged is not None else problem.statement
    if mode == "ansi":
        return text
    print(text)
    return None


def reward_sum(reward: Reward) -> str:
    """Return a reward as a sum of its parts, e.g. `0.5*validity 1.000 + 0.5*adversarial 0.250 = 0.625`."""
    if reward.masked:
        return "masked: our own failure hides it"
    text = ""
    for part in reward.parts:
        sign = ("-" if part.weight < 0 else "") if not text else (" - " if part.weight < 0 else " + ")
        text += f"{sign}{abs(part.weight):.4g}*{part.name} {part.value:.3f}"
    return f"{text or 'nothing'} = {reward.value:.3f}"


def book_sentence(delta: BookDelta | None) -> str:
    """Describe the changes of the Mistake Book in a round."""
    if delta is None:
        return "unchanged"
    counts = {
        "entered": delta.added,
        "left": delta.removed,
        "pushed out": delta.evicted,
        "denied by the solution": delta.denied,
        "counted up": delta.incremented,
        "counted down": delta.decremented,
    }
    text = ", ".join(f"{count} {word}" for word, count in counts.items() if count) or "nothing changed"
    return f"{text}; {delta.size} for this problem now"


def shorten(text: str, most: int) -> str:
    """Return a text of at most `most` characters: an ellipsis takes the place of the middle of a longer one."""
    return text if len(text) <= most else f"{text[: most // 2]}…{text[len(text) - (most - 1) // 2 :]}"


def harmless(text: str, *, keep: str = "") -> str:
    """Escape every control, format, private and unassigned character except those in `keep`."""
    if text.isascii() and text.isprintable():
        return text
    unsafe = {c for c in text if c not in keep and unicodedata.category(c) in _UNSAFE}
    return "".join(c.encode("unicode_escape").decode() if c in unsafe else c for c in text)


def _cell(text: str) -> Text:
    from rich.text import Text  # noqa: PLC0415  rich is slow to import

    shown = harmless(text)
    return Text(shown if len(shown) <= _MAX_CELL_CHARS else shown[: _MAX_CELL_CHARS - 1] + "…", overflow="fold")


def _headline(judged: JudgedRound, width: int) -> RenderableType:
    from rich.table import Table  # noqa: PLC0415  rich is slow to import
    from rich.text import Text  # noqa: PLC0415

    title = f"{harmless(judged.problem.id)}  {harmless(judged.problem.entry_point)}"
    grid = Table.grid(expand=True, padding=(0, 1))
    grid.width = width
    grid.add_column(style="bold")
    grid.add_column(justify="right", style="dim")
    grid.add_row(
        Text(title),
        Text(f"{f'episode {harmless(judged.episode_id)}  ' * bool(judged.episode_id)}round {judged.round + 1}"),
    )
    return grid


def story(judged: JudgedRound) -> str:
    """Say how a round ended: what is wrong with the program, if one small change is, and which tests found it.

    Texts of programs in it are as they wrote them.
    """
    from codea1_env.differences import difference  # noqa: PLC0415  a game needs it only where it is told

    report = judged.report.candidates[0]
    change = difference(report.candidate.program, judged.problem.solution) if report.loads else None
    told = change.sentence() if change is not None else f"the program {passes(report)}"
    return f"{told[0].upper()}{told[1:]}; {_describe_finders(report, counts_examples=True)}."


def _describe_finders(report: CandidateReport, *, counts_examples: bool = False) -> str:
    """Say which tests found what is wrong with a program, or why those that it fails did not.

    Args:
        report: of the program.
        counts_examples: whether a copy of an example finds it, too.
    """
    failed = [(name, case.case) for name, case in _number_cases(report) if case.verdict.is_failure]
    wrong = [name for name, case in failed if case.prediction_right is False]
    copies = [name for name, case in failed if case.is_example and not counts_examples and name not in wrong]
    if counting := [name for name, _ in failed if name not in wrong and name not in copies]:
        return f"{_tests(counting)} found it"
    copied = f"{_tests(copies)} {'copy examples' if copies[1:] else 'copies an example'}" if copies else ""
    erring = f"{_tests(wrong)} {'have wrong answers' if wrong[1:] else 'has a wrong answer'}" if wrong else ""
    why = " and ".join(filter(None, (copied, erring)))
    return f"no test found it: of those that the program fails, {why}" if why else "no test found it"


def _tests(names: Sequence[str]) -> str:
    listed = ", ".join(names[:_MAX_NAMED]) + (f" and {len(names) - _MAX_NAMED} more" if names[_MAX_NAMED:] else "")
    return f"test{'s' if names[1:] else ''} {listed}"


def _program(judged: JudgedRound, marked: int, *, tells_valid: bool) -> RenderableType:
    """The candidate's verdict and program, one line marked, or its reply if that does not contain a program."""
    from rich.console import Group  # noqa: PLC0415  rich is slow to import
    from rich.syntax import Syntax  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    report = judged.report.candidates[0]
    verdict = Text("candidate: ").append(
        "valid" if report.loads else _words(report.verdict), style="green" if report.loads else "red"
    )
    if n_left_out := report.candidate.n_own_tests:
        verdict.append(f"  {n_left_out} of its own tests left out", style="dim")
    if report.detail:
        verdict.append(f"  {harmless(report.detail)}", style="dim")
    program = report.candidate.program
    if not program.strip():
        return Group(verdict, Text(_excerpt(judged.coder_reply, _MAX_REPLY_LINES), style="dim"))
    code = _excerpt(program, _MAX_LINES)
    style: dict[str, Any] = {"theme": "ansi_dark", "background_color": "default"}
    shown = Syntax(code, "python", line_numbers=True, word_wrap=True, highlight_lines={marked}, **style)
    return Group(verdict, shown) if tells_valid or not report.loads else shown


def _excerpt(text: str, max_lines: int) -> str:
    """The first lines of a text, escaped and cut, and the number of further lines."""
    head = text[: _MAX_LINES * _MAX_LINE_CHARS * 4].replace("\t", "    ").strip("\n")
    lines = [line[:_MAX_LINE_CHARS] for line in harmless(head, keep="\n").split("\n")[:max_lines]]
    n_more = text.strip("\n").count("\n") + 1 - len(lines)
    return "\n".join([*lines, f"# … {n_more} more lines"] if n_more > 0 else lines)


def _new_table(width: int) -> Table:
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415  rich is slow to import
    from rich.table import Table  # noqa: PLC0415

    return Table(box=SIMPLE_HEAD, width=width, padding=(0, 1), show_edge=False)


def _cases_table(report: CandidateReport, width: int) -> Table:
    table = _new_table(width)
    table.add_column("", justify="right", style="dim", no_wrap=True)
    table.add_column("test", ratio=9, overflow="fold")
    table.add_column("solution", ratio=5, overflow="fold")
    table.add_column("predicted", max_width=24, overflow="fold")
    table.add_column("verdict", no_wrap=True)
    table.add_column("program gave", ratio=8, overflow="fold")
    named = list(_number_cases(report))
    for name, case in named[:_MAX_CASES]:
        table.add_row(
            name,
            _cell(case.case.case.expression),
            _cell(values.describe(case.case.expected)),
            _prediction(case),
            _verdict_cell(case.verdict),
            _cell(case.actual),
        )
    if len(named) > _MAX_CASES:
        table.add_row("", f"… and {len(named) - _MAX_CASES} more", "", "", "", "")
    return table


def _verdict_cell(verdict: Verdict) -> Text:
    from rich.text import Text  # noqa: PLC0415  rich is slow to import

    return Text(_words(verdict), style=_STYLES.get(_words(verdict), "red"))


def _prediction(case: CaseReport) -> Text:
    from rich.text import Text  # noqa: PLC0415  rich is slow to import

    if case.case.prediction_right is None:
        return Text("-", style="dim")
    if case.case.prediction_right:
        return Text("right, an example" if case.case.is_example else "right", style="green")
    return Text("wrong: ", style="yellow").append_text(_cell(case.case.case.prediction or ""))


def _rejections_table(rejections: Sequence[Rejection], width: int) -> Table:
    table = _new_table(width)
    table.add_column("line", justify="right", style="dim", no_wrap=True)
    table.add_column("dropped or corrected", ratio=5, overflow="fold")
    table.add_column("because", ratio=4, overflow="fold")
    for rejection in rejections[:_MAX_REJECTIONS]:
        because = _words(rejection.reason) + (f": {rejection.detail}" if rejection.detail else "")
        table.add_row(str(rejection.line or ""), _cell(rejection.source), _cell(because))
    if len(rejections) > _MAX_REJECTIONS:
        table.add_row("", f"… and {len(rejections) - _MAX_REJECTIONS} more", "")
    return table


def _verdict_row(report: CandidateReport) -> Text:
    """One character per case: new ones, then replayed ones, then what the characters mean."""
    from rich.text import Text  # noqa: PLC0415  rich is slow to import

    row = Text()
    for name, cases in (("new ", [c for suite in report.suites for c in suite.cases]), ("replayed ", report.replayed)):
        if not cases:
            continue
        row.append(name, style="dim")
        for case in cases:
            row.append(SYMBOLS[case.verdict], style=_STYLES.get(_words(case.verdict), "bold red"))
        row.append("   ")
    shown = {case.verdict for _, case in _number_cases(report)}
    legend = "  ".join(f"{symbol} {_words(verdict)}" for verdict, symbol in SYMBOLS.items() if verdict in shown)
    return row.append(legend, style="dim")


def _outcome(judged: JudgedRound) -> RenderableType:
    from rich.table import Table  # noqa: PLC0415  rich is slow to import
    from rich.text import Text  # noqa: PLC0415

    grid = Table.grid(padding=(0, 2))
    report = judged.report.candidates[0]
    grid.add_row("coder", passes(report))
    grid.add_row("", Text(reward_sum(judged.rewards.coder), style="dim"))
    for suite, reward in zip_longest(report.suites, judged.rewards.testers):
        said = "no turn: the candidate is invalid"
        if suite is not None and judged.tester_reply is not None:
            n, cases = n_written(suite), suite.cases
            failures = f"the program fails {n_failed(cases)} of {len(cases)} tests"
            said = f"{n_right(cases)} of {n} answers right, {failures}" if n else "no test"
        grid.add_row("tester", said)
        grid.add_row("", Text(reward_sum(reward), style="dim"))
    grid.add_row("Mistake Book", book_sentence(judged.book))
    return grid


def passes(report: CandidateReport) -> str:
    """Say how many of its cases a program passes."""
    if not report.loads:
        return "its program does not load"
    cases = tuple(case for _, case in _number_cases(report) if case.verdict.is_evidence)
    return f"passes {n_passed(cases)} of {len(cases)} tests" if cases else "no test"


def _number_cases(report: CandidateReport) -> Iterable[tuple[str, CaseReport]]:
    """Every case with its number; `R` marks the replayed ones."""
    yield from ((str(i + 1), case) for i, case in enumerate(c for suite in report.suites for c in suite.cases))
    yield from ((f"R{i + 1}", case) for i, case in enumerate(report.replayed))


def _words(word: Verdict | RejectionReason) -> str:
    return word.value.replace("_", " ")
