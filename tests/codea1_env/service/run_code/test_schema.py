"""Bodies of SandboxFusion's `/run_code`: requests are read strictly, answers have the documented form."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_env.service.run_code.schema import (
    BadRequest,
    CommandResult,
    CommandStatus,
    RunRequest,
    RunResponse,
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


def test_an_answer_has_the_documented_form() -> None:
    answer = RunResponse(RunStatus.FAILED, "", CommandResult(CommandStatus.FINISHED, 0.5, 3, "out", "err"))
    assert answer.to_json() == DOCUMENTED


@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_no_bytes_break_the_reader(body: bytes) -> None:
    with pytest.raises(BadRequest):
        RunRequest.from_json(body)


def test_a_request_may_hold_text_that_is_no_unicode() -> None:
    body = {"language": "python", "code": "print('\u00e9\ud800')", "run_timeout": 2.5, "memory_limit_MB": 300}
    assert RunRequest.from_json(json.dumps(body).encode()) == RunRequest("print('\u00e9\ud800')", 2.5, "", 300)


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
