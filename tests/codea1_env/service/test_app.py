"""The routes of `codea1 serve`: what they judge is what the library judges, and what they refuse has one sentence."""

from __future__ import annotations

import json
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codea1_env.facts.judge_version import JUDGE_VERSION
from codea1_env.facts.submissions import TestCase
from codea1_env.facts.verdicts import CaseReport, ValidCase, Verdict
from codea1_env.problems import ProblemSet
from codea1_env.problems.own_rows import problem_to_row
from codea1_env.rounds.referee import Referee
from codea1_env.runs.records import CaseRecord
from codea1_env.sandbox import Sandbox
from codea1_env.service.bounds import ServiceBounds
from tests.support.runs import EPISODE_SCHEMA
from tests.support.serving import HALF_RIGHT, RIGHT, WRONG, ServiceServer, asked, serving


@pytest.fixture(scope="module")
def server(sandbox: Sandbox, toys: ProblemSet) -> Iterator[ServiceServer]:
    with serving(sandbox, toys, bounds=ServiceBounds(max_items=40)) as server:
        yield server


def ask(server: ServiceServer, path: str, body: object = None) -> tuple[int, str]:
    return asked(server, path, body if isinstance(body, bytes | None) else json.dumps(body).encode())


def judged(server: ServiceServer, **fields: Any) -> list[dict[str, Any]]:
    status, text = ask(server, "/judge", fields)
    assert status == 200, text
    answer = json.loads(text)
    assert answer["judge_version"] == JUDGE_VERSION
    return list(answer["items"])


def test_rewards_and_verdicts_are_the_librarys(server: ServiceServer, sandbox: Sandbox, toys: ProblemSet) -> None:
    programs, suites = [RIGHT, WRONG, "def", RIGHT], [HALF_RIGHT, HALF_RIGHT, HALF_RIGHT, None]
    asked, case = {"problem_ids": [toys[0].id] * 4}, ValidCase(TestCase("add(2, 2)", "4", (), True, 1), b"4", True)
    replayed = [CaseRecord.of(CaseReport(case, Verdict.NOT_RUN)).model_dump(mode="json")]
    found = judged(server, **asked, programs=programs, suites=suites, golden=True, replayed={toys[0].id: replayed})
    here = Referee(toys, sandbox=sandbox, golden=True)
    expected = here.rewards(asked["problem_ids"], programs, suites, replayed={toys[0].id: [case]})
    for item, scored in zip(found, expected, strict=True):
        report = item.pop("report")
        assert report["candidate"]["verdict"] == scored.record()["loads"]
        assert item == {name: scored.record()[name] for name in item}


def test_a_problem_may_come_whole_and_hides_another(server: ServiceServer, toys: ProblemSet, sandbox: Sandbox) -> None:
    other = problem_to_row(toys[0]) | {"solution": WRONG, "golden": [], "examples": []}
    suite = "assert add(3, 1) == 2"
    asked = {"problem_ids": [toys[0].id], "programs": [WRONG], "suites": [suite]}
    (item,) = judged(server, **asked, problems=[other])
    assert item["report"]["suites"][0]["cases"][0]["prediction_right"] is True
    (item,) = judged(server, **asked)  # what a client has sent changes nothing for others
    assert item["report"]["suites"][0]["cases"][0]["prediction_right"] is False


def test_a_program_that_does_not_come_is_masked_and_chats_are_replies(server: ServiceServer, toys: ProblemSet) -> None:
    messages = [{"role": "assistant", "content": RIGHT}]
    asked = {"problem_ids": [toys[0].id] * 2, "suites": [HALF_RIGHT] * 2}
    masked, scored = judged(server, **asked, programs=[{"unavailable": "no luck"}, messages])
    assert (masked["coder"], masked["parts"]["coder"]) == (None, {})
    assert "no luck" in masked["masked_because"]
    assert scored["coder"] == 1.0


@pytest.mark.parametrize(
    "rules",
    [
        "zero_sum",
        {"name": "fixed", "reward": {"scheme": "zero_sum"}},
        {"name": "zero_sum"},  # as the rules of this name
        {"name": "zero_sum", "tests_per_suite": 2},
    ],
)
def test_rules_are_a_name_or_an_object(server: ServiceServer, toys: ProblemSet, rules: Any) -> None:
    asked = {"problem_ids": [toys[0].id], "programs": [RIGHT], "suites": [HALF_RIGHT]}
    ((found,), (by_default,)) = judged(server, **asked, rules=rules), judged(server, **asked)
    assert (found["coder"], found["tester"]) == (1.0, -1.0)
    assert by_default["tester"] != found["tester"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"problem_ids": ["nowhere"]}, "unknown problem"),
        ({"problem_ids": []}, "problem_ids"),
        ({"programs": []}, "equal length"),
        ({"programs": [3]}, "programs.0"),
        ({"programs": [[{"role": "user"}]]}, "chat messages"),
        ({"rules": "nice"}, "unknown rules"),
        ({"rules": {"name": "papper", "tests_per_suite": 4}}, "unknown rules 'papper'"),
        ({"rules": {"name": "paper", "reward": {"scheme": "os:system"}}}, "unknown reward scheme"),
        ({"rules": {"name": "paper", "reward": {"alhpa": 1}}}, "alhpa"),
        *[({"rules": {"name": "paper", "reward": {"alpha": odd}}}, "reward.alpha") for odd in (True, "1", [1], None)],
        ({"rules": {"name": "paper", "tests_per_suite": 4.0}}, "tests_per_suite"),
        ({"rules": {"name": "paper", "book": {"count_replay_failures": 1}}}, "count_replay_failures"),
        ({"rules": {"name": "paper", "reward": {"credit": {"common": 1}}}}, "credit.common"),
        ({"rules": {"tests_per_suite": 4}}, "name"),
        ({"limits": {"memory_mb": 10**6}}, "limits.memory_mb must be at most"),
        *[({"limits": {"cpu_s": odd}}, "cpu_s") for odd in (-1, True, "1", 1e-320, 1e308, 10**400, None)],
        *[({"limits": {"max_restarts": odd}}, "max_restarts") for odd in (True, 1.0, -1)],
        *[({"golden": odd}, "golden") for odd in ("yes", 1, 0)],
        *[({"problem_ids": [odd]}, "problem_ids") for odd in (1, None)],
        ({"programs": [{"unavailable": 3}]}, "programs.0"),
        ({"programs": [{"unavailable": "x", "why": "y"}]}, "programs.0"),
        ({"replayed": {"nowhere": []}}, "'nowhere' is not in problem_ids"),
        ({"problems": [{"id": "x"}]}, "missing"),
        ({"problems": [{"id": "x", "solution": "x," * 60_000}]}, "take too long to read"),
        ({"problem_ids": ["x"] * 41}, "at most 40 programs"),
        ({"program": "x"}, "program"),
    ],
)
def test_what_cannot_be_judged_is_one_sentence(server: ServiceServer, toys: ProblemSet, fields: Any, said: str) -> None:
    status, text = ask(server, "/judge", {"problem_ids": [toys[0].id], "programs": [RIGHT]} | fields)
    detail = json.loads(text)["detail"]
    assert (status, said in detail) == (422, True), text
    assert "\n" not in detail


def test_a_replayed_case_is_read_strictly(server: ServiceServer, toys: ProblemSet) -> None:
    case = ValidCase(TestCase("add(2, 2)", "4", (), True, 1), b"4", True)
    record = CaseRecord.of(CaseReport(case, Verdict.NOT_RUN)).model_dump(mode="json")
    for odd in ({"direct": "yes"}, {"line": "1"}, {"prediction_right": 1}, {"more": 1}, {"verdict": "nice"}):
        asked = {"problem_ids": [toys[0].id], "programs": [RIGHT], "replayed": {toys[0].id: [record | odd]}}
        status, text = ask(server, "/judge", asked)
        assert (status, next(iter(odd)) in text) == (422, True), text


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/judge", b'{"golden": true, "golden": false}', "'golden' twice"),
        ("/judge", b'{"limits": {"cpu_s": NaN}}', "finite numbers, got NaN"),
        ("/jobs", b'[{"program": "", "program": "x", "entry_point": "f"}]', "'program' twice"),
        ("/judge?rules=paper", b"{}", "no query"),
        ("/problems?limit=1", None, "no query"),
    ],
)
def test_what_would_be_ignored_is_refused(server: ServiceServer, path: str, body: bytes | None, said: str) -> None:
    status, text = asked(server, path, body)
    assert (status, said in text) == (422, True), text


@pytest.mark.parametrize("body", [b"{", b"[", b"[" * 100_000, b"\xff", b"null", b"{}"])
def test_no_bytes_break_a_route(server: ServiceServer, body: bytes) -> None:
    for path in ("/judge", "/jobs"):
        status, text = ask(server, path, body)
        assert status in (400, 422)
        assert json.loads(text)["detail"]


def test_jobs_that_cannot_be_run_are_one_sentence(server: ServiceServer) -> None:
    job = {"program": RIGHT, "entry_point": "add"}
    for jobs, said in (
        ([job | {"limits": {"cpu_s": 10**9}}], "limits.cpu_s"),
        ([job] * 41, "at most 40"),
        ([job | {"more": 1}], "more"),
        ([job | {"limits": {"cpus": 1}}], "cpus"),
        *[([job | {"limits": {"cpu_s": odd}}], "cpu_s") for odd in (True, "1", 1e-320, 1e308)],
        *[([job | {"isolates_calls": odd}], "isolates_calls") for odd in (1, "no")],
        ([job | {"harness": {"sauce": ""}}], "sauce"),
        ([job | {"calls": [["f()", [], "program", "", 1]]}], "calls"),
        ([job | {"calls": [["f()", [3]]]}], "calls"),
    ):
        status, text = ask(server, "/jobs", jobs)
        assert (status, said in json.loads(text)["detail"]) == (422, True)
    assert ask(server, "/jobs", []) == (200, "[]")


def test_a_report_has_the_published_schema_of_run_records(server: ServiceServer) -> None:
    parts = json.loads(ask(server, "/openapi.json")[1])["components"]["schemas"]
    published = EPISODE_SCHEMA["$defs"]
    assert parts["CandidateRecord"].keys() == published["CandidateRecord"].keys()
    for name in ("CandidateRecord", "SuiteRecord", "RejectionRecord"):
        assert parts[name]["properties"].keys() == published[name]["properties"].keys()


def test_the_pages_say_what_there_is(server: ServiceServer, toys: ProblemSet) -> None:
    about = json.loads(ask(server, "/")[1])
    assert about["sandbox"] == {"name": "local", "guarantee": "isolated"}
    assert about["judge"] == f"{server.url}/judge"
    assert json.loads(ask(server, "/problems")[1]) == [toy.id for toy in toys]
    assert "/judge" in json.loads(ask(server, "/openapi.json")[1])["paths"]
    assert ask(server, "/nowhere")[0] == 404


MANY = 80_000
WIDE = b",".join(b'"%d":[{}]' % n for n in range(20_000))


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/jobs", b"[" + b"{}," * MANY + b"{}]"),
        ("/jobs", b'[{"program":"","entry_point":"f","calls":[' + b"0," * MANY + b"0]}]"),
        ("/judge", b'{"problem_ids":["a"],"programs":[' + b"0," * MANY + b"0]}"),
        ("/judge", b'{"problem_ids":["a"],"programs":["x"],"replayed":{"a":[' + b"{}," * MANY + b"{}]}}"),
        ("/judge", b'{"problem_ids":["a"],"programs":["x"],"replayed":{' + WIDE + b"}}"),
        ("/judge", b'{"problem_ids":["a"],"programs":["x"],"rules":{' + WIDE + b"}}"),
        ("/judge", b'{"problem_ids":["a"],"programs":["x"],"rules":{"reward":{' + WIDE + b"}}}"),
        ("/judge", b'{"problem_ids":["a"],"programs":["x"],"limits":{' + WIDE + b"}}"),
        ("/judge", b'{"problem_ids":["a"],"programs":[{"unavailable":"",' + WIDE + b"}]}"),
        ("/judge", b"{" + WIDE + b"}"),
    ],
)
def test_a_request_of_many_faults_is_refused_before_all_are_said(server: ServiceServer, path: str, body: bytes) -> None:
    tracemalloc.start()
    try:
        status, text = ask(server, path, body)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert status == 422
    assert len(text) < 1000
    assert peak < 200 * len(body)  # with a fault for each item it is more


def test_a_body_has_a_bound_on_its_values_before_anything_is_made_of_it(sandbox: Sandbox, toys: ProblemSet) -> None:
    with serving(sandbox, toys, bounds=ServiceBounds(max_values=1000)) as server:
        for path in ("/judge", "/jobs"):
            assert "at most 1000 objects" in json.loads(ask(server, path, b"[" + b"[]," * 1000 + b"[]]")[1])["detail"]
        commas = "def add(a, b):\n    return " + "(a, b), " * 2000 + "0\n"  # in a text: no values
        assert judged(server, problem_ids=[toys[0].id], programs=[commas], suites=[HALF_RIGHT])


CANARY = "canary_of_the_service:x"
BODIES: list[tuple[str, Any]] = [
    ("/judge", {
        "problem_ids": ["toy/add"], "programs": ["x", [{"role": "assistant", "content": "x"}]], "suites": ["x", None],
        "problems": [{"id": "p", "statement": "x", "solution": "x", "entry_point": "f", "golden": ["x"], "kind": "x"}],
        "rules": {"name": "x", "reading": "x", "validation": "x", "reward": {"scheme": "x"}, "book": {"update": "x"}},
        "replayed": {"toy/add": [{"expression": "x", "imports": ["x"], "expected": "x", "verdict": "x"}]},
        "golden": None, "limits": {"cpu_s": "x"},
    }),
    ("/judge", {"problem_ids": ["toy/add"], "programs": ["x"], "rules": "x"}),
    ("/jobs", [{"program": "x", "entry_point": "x", "calls": [["f(1)", "x"]], "kind": "x", "harness": "x"}]),
]  # fmt: skip


def named(body: Any) -> Iterator[Any]:
    """The body with the canary's name in each place in turn, as a value, in an array and as a key."""
    if isinstance(body, str | None):
        yield from (CANARY, [CANARY], {CANARY: CANARY})
    elif isinstance(body, list):
        yield from ([*body[:n], each, *body[n + 1 :]] for n, old in enumerate(body) for each in named(old))
    elif isinstance(body, dict):
        yield {**body, CANARY: "x"}
        yield from ({**body, key: each} for key, old in body.items() for each in named(old))


@pytest.mark.parametrize(("path", "body"), BODIES)
def test_no_body_is_imported(server: ServiceServer, path: str, body: Any, tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "canary_of_the_service.py").write_text("x = None\n")
    monkeypatch.syspath_prepend(tmp_path)
    for each in named(body):
        assert ask(server, path, each)[0] in (200, 422)
        assert "canary_of_the_service" not in sys.modules, each
