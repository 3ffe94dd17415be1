from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import codea1, one_object, refused

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


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("lost", "lost: No such file"),
        (".", ": Is a directory"),
        ("bytes", "bytes: cannot be read as text: 'utf-8'"),
        ("a\0b", "null "),
    ],
)
def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff")
    reason = refused("grade", tmp_path / name, tmp_path / name, *PROBLEM)
    assert said in reason
    assert "Errno" not in reason
    assert reason.count(str(tmp_path)) <= 1


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["starter/count_carries"], "--problem starter/count_carries is not in humaneval: add -p starter"),
        (["starter:methods/x", "-p", "starter"], "is not in starter: add -p starter:methods"),
        (["HumanEval/0", "-p", "starter"], "is not in starter: add -p humaneval"),
        (["starter/lost", "-p", "starter"], "unknown problem of starter 'starter/lost'"),
        (["mine/x", "-p", "starter"], "unknown problem of starter 'mine/x'"),
    ],
)
def test_a_problem_of_another_source_is_told_with_the_option_that_names_it(asked: list[str], said: str) -> None:
    assert said in refused("grade", "p.py", "t.py", "--problem", *asked)
