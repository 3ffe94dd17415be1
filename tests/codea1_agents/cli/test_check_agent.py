from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import codea1, document, one_object, refused

BAD = """\
def forgets(observation):
    return None

def dozes(observation):
    import time
    time.sleep(1000)

def mind(observation):
    import random
    return str(random.random())

class Declared:
    plays = "tester"

    def act(self, observation, info):
        return "assert True"

class Judge(Declared):
    plays = "judge"
"""


@pytest.fixture
def bad(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "bad_agents.py").write_text(BAD)
    monkeypatch.syspath_prepend(str(folder))


def test_a_good_agent_passes_and_the_object_tells_each_test() -> None:
    data = document("check", "agent", "mutant,strength=0.2")
    assert (data["agent"], data["ok"]) == ("mutant,strength=0.2", True)
    results = {each["name"]: each["result"] for each in data["tests"]}
    assert results["same seed, same reply"] == "passed"
    assert results["batch equals single"] == "skipped"
    assert {each["role"] for each in data["tests"]} == {"coder"}


@pytest.mark.usefixtures("bad")
@pytest.mark.parametrize(
    ("name", "code", "kind", "said"),
    [
        ("forgets", 1, "failed", "NoneType"),
        ("mind", 0, "noted", "replies differ"),
        ("dozes", 1, "failed", "did not return within 0.2 s"),
    ],
)
def test_a_bad_agent_is_told_with_the_reason(name: str, code: int, kind: str, said: str) -> None:
    result = codea1("check", "agent", f"bad_agents:{name}", "--role", "tester", "--json", "--reply-timeout", 0.2)
    assert result.exit_code == code
    tests = one_object(result.stdout)["tests"]
    assert any(said in each["detail"] for each in tests if each["result"] == kind)
    assert {each["role"] for each in tests} == {"tester"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["human"], "agent 'human' cannot be checked"),
        (["humman"], "did you mean 'human'"),
        (["mutant", "--role", "tester"], "is a coder, not a tester"),
        (["mutant", "--role", "both"], "mutant cannot be checked in both roles: it plays only the coder"),
        (["mutant", "--role", "judge"], "unknown role 'judge'"),
    ],
)
def test_what_cannot_be_checked_is_one_sentence(arguments: list[str], said: str) -> None:
    assert said in refused("check", "agent", *arguments)


@pytest.mark.usefixtures("bad")
def test_an_agent_of_ones_own_plays_the_roles_that_it_or_the_user_names() -> None:
    sentence = refused("check", "agent", "bad_agents:mind")
    assert "bad_agents:mind does not say what it plays: add --role coder, --role tester or --role both" in sentence
    assert "bad_agents:Judge says plays = 'judge', expected coder or tester" in refused(
        "check", "agent", "bad_agents:Judge"
    )
    assert "for example bad_agents:tester" in refused("check", "agent", "bad_agents")
    for role, played in (("tester", ["tester"]), ("both", ["coder", "tester"])):
        shown = codea1("check", "agent", "bad_agents:mind", "--role", role).stdout
        assert [line.split()[2] for line in shown.splitlines() if line.startswith("bad_agents:mind as")] == played
    shown = codea1("check", "agent", "bad_agents:Declared").stdout
    assert "bad_agents:Declared as tester" in shown
    assert "as coder" not in shown


def test_an_agent_that_could_not_be_asked_is_no_failure_and_no_success() -> None:
    pytest.importorskip("openai")
    nobody = "openai,model=m,base_url=http://127.0.0.1:9/v1,retries=0"
    result = codea1("check", "agent", nobody, "--role", "coder")
    assert result.exit_code == 3
    assert "nothing was tested" in result.stderr


def test_a_new_tester_writes_a_test_for_each_observation(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(folder))
    codea1("new", "agent", "fresh_agents")
    tests = document("check", "agent", "fresh_agents:tester", "--role", "tester")["tests"]
    (told,) = (each["detail"] for each in tests if each["name"] == "test cases are right")
    assert told.startswith("5 replies: 5 test cases can be read")
    assert "empty reply" not in told
