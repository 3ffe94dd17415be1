from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from codea1_agents.scripted.coders import MutantCoder
from codea1_env.agent import AgentContext
from codea1_env.problems import dump_jsonl, load_problems
from codea1_env.sandbox import Guarantee, load_sandbox
from codea1_env.sandbox.local import LocalSandbox
from tests.support.command_line import FAST, codea1, entries_of, finished, one_object, refused

# -- agents are anyone's code --


@pytest.mark.slow
def test_what_agents_print_is_never_among_the_results() -> None:
    done = finished(*FAST, "-n", 2, "--tester", "my_agents:chatty", "--json", "--out", "run")
    assert done.returncode == 0, done.stderr
    assert one_object(done.stdout)["n_episodes"] == 2
    for said in ("I think aloud", "and go around", "or write to the descriptor"):
        assert said in done.stderr
    done = finished(*FAST, "-n", 1, "--tester", "my_agents:chatty", "--quiet", "--out", "other")
    assert "95 % interval" in done.stdout
    assert "aloud" not in done.stdout


@pytest.mark.slow
def test_an_agent_that_exits_is_the_agents_error_and_an_async_one_plays() -> None:
    done = finished(*FAST, "-n", 1, "--tester", "my_agents:quits", "--out", "run")
    assert (done.returncode, done.stdout) == (2, "")
    assert "sys.exit(3)" in done.stderr
    done = finished(*FAST, "-n", 1, "--tester", "my_agents:later", "--out", "run", "--json")
    assert (done.returncode, done.stderr.count("Warning")) == (0, 0), done.stderr


def test_many_rounds_do_not_stop_the_scripted_coder() -> None:
    problems = load_problems("starter", limit=1)
    coder = MutantCoder(AgentContext(problems, load_sandbox("local")))
    seen = {"round": 2000, "program": "", "feedback": ""}
    assert "def " in coder.act(seen, {"problem_id": problems[0].id})


def test_golden_rules_without_golden_tests_are_refused_before_a_folder_is_made() -> None:
    one, two = load_problems("starter", limit=2)
    dump_jsonl([one, replace(two, golden=())], "some.jsonl")
    sentence = refused("play", "-p", "some.jsonl", "--rules", "golden", "--out", "run")
    assert f"which 1 of 2 problems do not have: {two.id}" in sentence
    assert not Path("run").exists()


# -- the sandbox, and the book, by name --


def test_the_sandbox_is_named_with_its_guarantee_and_a_weak_one_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    result = codea1(*FAST, "-n", 1, "--out", "run")
    stored = json.loads(Path("run/metrics.json").read_text())["sandbox"]
    assert stored["name"] == "local"
    assert stored["tier"]
    assert f"sandbox: local: {stored['guarantee']}, by {stored['tier']} (" in result.stdout
    assert "warning" not in result.stderr
    monkeypatch.setattr(LocalSandbox, "guarantee", Guarantee.TRUSTED_ONLY)
    weak = codea1(*FAST, "-n", 1, "--quiet", "--out", "second")
    assert weak.exit_code == 0
    assert weak.stderr.startswith("warning: weak sandbox: local: trusted only")
    assert weak.stderr.count("\n") == 1


def test_the_book_says_who_played_and_a_rebuilt_one_the_same() -> None:
    codea1(*FAST, "-n", 3, "--out", "run")
    first = entries_of(Path("run"))
    who = {(e.entry.provenance.coder, e.entry.provenance.tester) for e in first}
    assert who == {("mutant,strength=0.9", "boundary")}
    assert all(e.entry.provenance.run for e in first)
    codea1("play", "--resume", "run")
    assert entries_of(Path("run")) == first


INTERRUPTS = """
import os, signal
from codea1_agents.play import named_agent
def act(*_): os.kill(os.getpid(), signal.SIGINT)
named_agent.NamedAgent.reply = act
"""


@pytest.mark.slow
def test_an_interrupt_before_the_first_episode_names_the_line_that_continues() -> None:
    slow = ("--tester", "my_agents:slow_tester", "-n", 9, "--out", "run", "--quiet", "--json")
    done = finished(*FAST, *slow, code=INTERRUPTS)
    assert done.returncode == 130, done.stderr
    assert "codea1 play --resume run" in done.stderr
    assert "Traceback" not in done.stderr
