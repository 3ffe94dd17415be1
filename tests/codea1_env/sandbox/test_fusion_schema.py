"""Bodies of SandboxFusion's `/run_code`, read strictly."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_env.sandbox.fusion_schema import (
    BadRequest,
    CommandResult,
    CommandStatus,
    MalformedAnswer,
    RunAnswer,
    RunRequest,
    RunStatus,
)

DOCUMENTED = {
    "status": "Failed",
    "message": "",
    "compile_result": None,
    "run_result": {
        "status": "Finished",
        "execution_time": 0.5,
        "return_code": 3,
        "stdout": "out",
        "stderr": "err",
    },
    "executor_pod_name": None,
    "files": {},
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def changed(**fields: Any) -> bytes:
    run = fields.pop("run", {})
    return json.dumps({**DOCUMENTED, "run_result": {**DOCUMENTED["run_result"], **run}, **fields}).encode()


def test_the_documented_answer_is_read_and_written() -> None:
    answer = RunAnswer.from_json(json.dumps(DOCUMENTED).encode())
    assert answer == RunAnswer(RunStatus.FAILED, "", CommandResult(CommandStatus.FINISHED, 0.5, 3, "out", "err"))
    assert answer.to_json() == DOCUMENTED


def test_what_older_servers_leave_out_is_empty() -> None:
    body = {"status": "Failed", "message": None, "run_result": {"status": "TimeLimitExceeded", "stdout": None}}
    assert RunAnswer.from_json(json.dumps(body).encode()).run == CommandResult(CommandStatus.TIME_LIMIT_EXCEEDED)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>Bad Gateway</html>",
        b"[]",
        b"[" * 100_000,
        b"\xff",
        b"{}",
        changed(status="Fine"),
        changed(run_result=None),
        changed(run_result=[]),
        changed(run={"status": "?"}),
        changed(run={"return_code": None}),
        changed(run={"return_code": "0"}),
        changed(run={"return_code": True}),
        changed(run={"stdout": 3}),
        changed(run={"execution_time": "fast"}),
    ],
)
def test_any_other_answer_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedAnswer):
        RunAnswer.from_json(body)


@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_no_bytes_break_the_readers(body: bytes) -> None:
    with pytest.raises(MalformedAnswer):
        RunAnswer.from_json(body)
    with pytest.raises(BadRequest):
        RunRequest.from_json(body)


def test_a_request_is_written_and_read() -> None:
    request = RunRequest("print('é\ud800')", 2.5, "in", 300)
    assert RunRequest.from_json(json.dumps(request.to_json()).encode()) == request
    assert RunRequest("x").to_json() == {"code": "x", "language": "python", "run_timeout": 10.0}


def test_a_request_with_all_documented_fields_is_read() -> None:
    body = {"language": "python", "code": "x", "compile_timeout": 10, "run_timeout": 3, "stdin": None}
    body |= {"memory_limit_MB": -1, "files": {"a": None}, "fetch_files": ["a"], "args": [], "newer": 1}
    assert RunRequest.from_json(json.dumps(body).encode()) == RunRequest("x", 3.0)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("language", "cpp"),
        ("language", None),
        ("code", 3),
        ("code", None),
        ("stdin", ["x"]),
        ("run_timeout", 0),
        ("run_timeout", -1),
        ("run_timeout", float("nan")),
        ("run_timeout", 1e9),
        ("run_timeout", True),
        ("run_timeout", "10"),
        ("memory_limit_MB", 1.5),
        ("files", {"main.txt": "aGk="}),
        ("files", []),
    ],
)
def test_a_request_that_cannot_be_served_says_which_field_is_to_blame(field: str, value: object) -> None:
    body = {"language": "python", "code": "x", field: value}
    with pytest.raises(BadRequest) as caught:
        RunRequest.from_json(json.dumps(body).encode())
    assert caught.value.field == field
