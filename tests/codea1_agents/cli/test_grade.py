from __future__ import annotations

from pathlib import Path

from tests.support.command_line import codea1, one_object

PROBLEM = ("-p", "starter", "--problem", "starter/is_balanced")


def test_one_program_is_judged_by_one_suite(tmp_path: Path) -> None:
    program, tests = tmp_path / "p.py", tmp_path / "t.py"
    program.write_text("def is_balanced(text):\n    return text.count('(') == text.count(')')\n")
    tests.write_text("assert is_balanced(')(') == False\nassert is_balanced('()') == False\n")
    found = one_object(codea1("grade", program, tests, *PROBLEM, "--json").stdout)
    assert (found["verdict"], found["tests"], found["right"], found["failing"]) == ("passed", 2, 1, 1)
    assert (found["coder_reward"], found["tester_reward"]) == (0.5, 0.125)
    shown = codea1("grade", "-", tests, *PROBLEM, typed="def is_balanced(:\n").stdout
    assert "candidate: syntax error" in shown
    assert "cannot be read as text" in codea1("grade", tmp_path / "lost", tests, *PROBLEM).stderr
