from __future__ import annotations

from pathlib import Path

import pytest

from codea1_agents.cli import console
from codea1_agents.scripted.duels import N_DUELS, duel
from codea1_env import judge
from tests.support.command_line import codea1, one_object

FINDS = {
    1: "assert is_balanced('(') == False",
    2: "assert rotate_window([1, 2], 0, 2, 3) == [2, 1]",
    3: "assert free_gaps([(0, 9), (1, 2)], 0, 10, 1) == [(9, 10)]",
    4: "assert visible_towers([[0]], 'left') == [0]",
    5: "assert peak_guests([(1, 2), (3, 4)]) == (1, 1, 4)",
}


def play(number: int, *tries: str, json: bool = False) -> tuple[int, str]:
    typed = "".join(f"{each}\n.\n" for each in tries)
    result = codea1("demo", "duel", "--number", number, *(["--json"] if json else []), typed=typed)
    return result.exit_code, result.stdout


@pytest.mark.parametrize("number", range(1, N_DUELS + 1))
def test_each_duel_can_be_won_at_once_and_its_program_passes_the_examples(number: int) -> None:
    chosen = duel(number)
    report = judge(chosen.problem, chosen.program, FINDS[number])
    assert report.suites[0].beats
    assert report.suites[0].cases[0].case.prediction_right
    assert not judge(chosen.problem, chosen.program, "\n".join(chosen.problem.examples)).suites[0].beats
    assert chosen.hints[-1].startswith("Line ")


def test_a_try_without_success_costs_a_point_and_brings_a_hint() -> None:
    code, shown = play(1, "assert is_balanced('()') == True", "assert is_balanced('(') == True", FINDS[1])
    assert code == 0
    assert "1 of 1 answers right; no test fails the program.\n  assert is_balanced('()') == True\n" in shown
    assert "    Right answer, and the program gives it, too.\nHint: What if the text ends too early?\n" in shown
    assert "The program is wrong for your input, but so is your answer.\n" in shown
    assert "\nHint: Line 15 is wrong" in shown
    assert "line 15 is `return True`, in the solution it is `return not still_open`; test 1 found it." in shown
    assert shown.endswith("You have won: 1 of 1 answers right; 1 of 3 points.\nnext: codea1 demo duel --number 2\n")


def test_a_try_that_cannot_be_read_costs_nothing_and_the_task_is_printed_once() -> None:
    typed = "".join(f"{each}\n.\n" for each in ("assert is_balanced(", "assert is_balanced('') == True", FINDS[1]))
    result = codea1("demo", "duel", typed=typed)
    assert "No test counts, so this try costs no point: write `assert is_balanced(...) == ...`." in result.stdout
    assert "\n  Line 1 does not count: it is not Python (" in result.stdout
    assert "2 of 3 points." in result.stdout
    assert result.stderr.count("the program to break") == result.stderr.count(":q") == 1


def test_after_three_tries_the_duel_is_lost_and_told_in_the_words_that_a_player_needs() -> None:
    for as_json in (True, False):
        code, shown = play(5, *["assert peak_guests([]) is None"] * 3, json=as_json)
        assert code == 0
        assert not as_json or one_object(shown)["points"] == 0
    finds = "A test that finds it: assert peak_guests([(1, 2), (3, 4)]) == (1, 1, 4). The solution gives (1, 1, 4); the"
    assert finds in " ".join(shown.split())
    _, shown = play(1, FINDS[1])
    for word in ("candidate", "round", "new W", "validity", "Mistake Book"):
        assert word not in shown
    assert "wrong answer" in shown


def test_commands_are_printed_as_the_shell_finds_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    place = tmp_path / "my venv" / "bin" / "codea1"
    place.parent.mkdir(parents=True)
    place.touch(mode=0o755)
    text = "the same, then: codea1 eval compare x"
    monkeypatch.setattr(console.sys, "argv", [str(place)])
    monkeypatch.chdir(tmp_path)
    assert console.as_typed("codea1 list") == "'my venv/bin/codea1' list"
    assert console.as_typed(text) == "the same, then: 'my venv/bin/codea1' eval compare x"
    monkeypatch.setenv("PATH", str(place.parent))
    assert console.as_typed(text) == text
