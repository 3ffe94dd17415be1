"""`codea1 advise` from the command line: one page, one object, and the same advice each time."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.command_line import codea1

ASKED = ("advise", "-p", "starter", "--limit", "3", "--coder", "mutant", "-n", "2", "--inputs", "4")
ECHO = {"kind": "stdin", "statement": "Echo.", "solution": "print(input())"}


def test_the_page_is_narrow_and_begins_with_the_conclusion() -> None:
    lines = codea1(*ASKED, "--tester", "boundary").stdout.splitlines()
    advised = lines[1].removeprefix("next: codea1 pretrain && codea1 train ")
    assert advised in ("golden", "fresh-16", "frozen-tester", "code-a1")
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 40
    assert any(re.match(r"this tester, trained +not measured", line) for line in lines)


def test_a_lead_that_rounds_to_zero_is_none() -> None:
    right = ("--coder", "reference", "--tester", "boundary", "--inputs", "4")
    shown = " ".join(codea1("advise", "-p", "starter", "--limit", "2", "-n", "1", *right).stdout.split())
    assert "It is not shown to lead: no lead (0.0 to " in shown


@pytest.mark.usefixtures("waits")
def test_a_lead_that_no_program_shows_says_why() -> None:
    wrong = ("--coder", "watched:coder", "--tester", "watched:tester", "--inputs", "4")
    shown = " ".join(codea1("advise", "-p", "starter", "--limit", "2", "-n", "1", *wrong).stdout.split())
    assert "It is not shown to lead: no program passes the golden tests." in shown


def test_with_a_stated_ratio_nothing_depends_on_a_clock() -> None:
    first, second = (json.loads(codea1(*ASKED, "--tester", "boundary", "--ratio", "2", "--json").stdout) for _ in "ab")
    assert first == second
    assert (first["ratio"], first["measured"]) == (2, None)
    measured = json.loads(codea1(*ASKED, "--tester", "boundary", "--json").stdout)
    assert measured["ratio"] > 0
    assert {**measured["figures"], "lead": 0} == {**first["figures"], "lead": 0}


def test_the_progress_names_what_it_waits_for(waits: list[str]) -> None:
    command = "advise -p starter --limit 2 --samples 1 --coder watched:coder --tester watched:tester"
    assert codea1(*command.split()).exit_code == 0
    for name in ("problem starter/count_carries, sample 0 (coder watched:coder)", "starter/assign_lockers"):
        assert name in waits


def test_without_a_tester_the_choice_is_between_golden_tests_and_fresh_inputs() -> None:
    found = json.loads(codea1(*ASKED, "--json").stdout)
    assert found["advice"] in ("none", "fresh inputs")
    assert (found["figures"].keys(), found["aim"]) == ({"fresh"}, None)


def test_problems_whose_inputs_are_unknown_are_left_out_aloud(folder: Path) -> None:
    rows = [{**ECHO, "id": f"echo/{n}", **({"examples": ["assert run('a') == 'a'"]} if n else {})} for n in range(3)]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = codea1("advise", "-p", "rows.jsonl", "--coder", "reference", "-n", "1")
    assert "1 problem left out: neither signature nor examples show what inputs look like" in found.stderr
    assert "2 problems have no golden tests" in " ".join(found.stdout.split())
    few = codea1("advise", "-p", "rows.jsonl", "--limit", "2", "--coder", "reference")
    assert (few.exit_code, "at least 2 problems with known inputs, got 1" in few.stderr) == (2, True)
