"""The client of SandboxFusion's `/run_code`, against a small server that speaks the documented schema.

The server runs `python main.py` per request, as the original does without isolation; tests make it fail.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from codea1_env.errors import SandboxError, UserError
from codea1_env.judge import Duel, Judge
from codea1_env.outcomes import Outcome, OutcomeKind
from codea1_env.problems import ProblemSet
from codea1_env.rules.replies import read_suite
from codea1_env.rules.ruleset import Reading, preset
from codea1_env.sandbox import (
    Call,
    Guarantee,
    Harness,
    Job,
    JobReport,
    Limits,
    Place,
    Sandbox,
    fusion_http,
    fusion_script,
    load_sandbox,
)
from codea1_env.sandbox.fusion_client import ENDPOINT_VARIABLE, SandboxFusion, shared_fusion
from codea1_env.sandbox.fusion_ledger import Bounds
from codea1_env.submissions import Candidate
from codea1_env.values import encode

HARNESS = Place.HARNESS
LIMITS = Limits(cpu_s=0.15, wall_s=20.0)
NOISE = "import random\ndef f(x): return random.Random(x).randbytes(4000)"
MOODY = """
import os, time
def f(x, *more):
    if x == "hang":
        while True: pass
    if x == "die": os.abort()
    if x == "exit": os._exit(3)
    if x == "much": return "y" * 10**6
    if x == "opaque": return object()
    if x == "raise": raise KeyError(x)
    if x == "memory": return len("x" * 10**11)
    return x * 2
"""
Fault = Callable[["PlainHandler"], bool]
"""Answers a request in its own way and returns True, or returns False to have it answered."""


class PlainServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, port: int = 0) -> None:
        self.codes: list[str] = []
        self.faults: list[Fault] = []
        self.max_output = 1 << 20
        self.environment = {"PYTHONHASHSEED": "0"}
        """With which our runner need not start anew."""
        self.n_running = 0
        self.most_running = 0
        self.lock = threading.Lock()
        super().__init__(("127.0.0.1", port), PlainHandler)
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def stop(self) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        assert isinstance(sys.exc_info()[1], OSError)  # a client that has hung up


class PlainHandler(BaseHTTPRequestHandler):
    server: PlainServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert self.path == "/run_code"
        assert body["language"] == "python"
        with self.server.lock:
            fault = self.server.faults.pop(0) if self.server.faults else None
            self.server.codes.append(body["code"])
        if fault is None or not fault(self):
            self.send(200, self.ran(body["code"], body["run_timeout"]))

    def ran(self, code: str, timeout_s: float) -> dict[str, Any]:
        with self.server.lock:
            self.server.n_running += 1
            self.server.most_running = max(self.server.most_running, self.server.n_running)
        try:
            return self.ran_alone(code, timeout_s)
        finally:
            with self.server.lock:
                self.server.n_running -= 1

    def ran_alone(self, code: str, timeout_s: float) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "main.py").write_text(code)
            process = subprocess.Popen(
                [sys.executable, "-S", "main.py"],
                cwd=folder,
                env={**os.environ, **self.server.environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            run: dict[str, Any] = {"status": "Finished", "execution_time": 0.1}
            try:
                out, err = process.communicate(timeout=timeout_s)
                run["return_code"] = process.returncode
            except subprocess.TimeoutExpired:
                process.kill()
                out, err = process.communicate()
                run |= {"status": "TimeLimitExceeded", "return_code": None}
        run |= {"stdout": out[: self.server.max_output].decode(errors="replace"), "stderr": err.decode()}
        status = "Success" if run["return_code"] == 0 else "Failed"
        return {"status": status, "message": "", "compile_result": None, "run_result": run, "files": {}}

    def send(self, status: int, content: object) -> bool:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        return True

    def log_message(self, *args: object) -> None:
        """Quiet."""


@pytest.fixture(scope="module")
def only_server() -> Iterator[PlainServer]:
    server = PlainServer()
    yield server
    server.stop()


@pytest.fixture
def server(only_server: PlainServer) -> PlainServer:
    """As if it were new."""
    only_server.faults = []
    only_server.environment = {"PYTHONHASHSEED": "0"}
    only_server.max_output = 1 << 20
    only_server.most_running = 0
    return only_server


@pytest.fixture(scope="module")
def only_fusion(only_server: PlainServer) -> Iterator[SandboxFusion]:
    with SandboxFusion(only_server.url, concurrency=3, attempts=3) as fusion:
        yield fusion


@pytest.fixture
def fusion(server: PlainServer, only_fusion: SandboxFusion) -> SandboxFusion:
    """Of a server in a good mood, which it knows already."""
    assert only_fusion.run([Job("def f(): return 1", "f", (Call("f()"),))])[0].outcomes[0].value == b"1"
    return only_fusion


def job(*calls: str | Call, program: str = MOODY, **options: Any) -> Job:
    asked = tuple(Call(call) if isinstance(call, str) else call for call in calls)
    return Job(program, "f", asked, limits=options.pop("limits", LIMITS), **options)


def in_harness(*expressions: str) -> list[Call]:
    return [Call(expression, place=HARNESS) for expression in expressions]


def kinds(fusion: Sandbox, job: Job) -> list[str]:
    return [outcome.kind.value for outcome in fusion.run([job])[0].outcomes]


# -- outcomes: those of the local sandbox --

SAME_AS_LOCAL = {
    "every kind of direct call": job(
        *["f(1)", "f('raise')", "f('opaque')", "f('much')", "f('memory')"],
        *["f('hang')", "f('die')", "f('exit')", "f([1])"],
    ),
    "too many faults": job("f('die')", "f('exit')", "f(1)", "f(2)", limits=replace(LIMITS, max_restarts=1)),
    "a broken program": job("f(1)", program="def f(:"),
    "no entry point": job("f(1)", program="g = 1"),
    "an exit while loading": job("f(1)", program="import sys; sys.exit(0)"),
    "a death while loading": job("f(1)", program="import os; os.abort()"),
    "a loop while loading": job("f(1)", program="while True: pass"),
    "a program that prints": job("f(1)", program="print('hi' * 10**5)\ndef f(x):\n    print(x)\n    return x"),
    "a preamble": job("f(16)", program="def f(x): return math.isqrt(x)", preamble="import math"),
    "values of all types": job(
        "f('é\\ud800')",
        "f((1, [2.5, {'a': {1, 2}}], None))",
        "f(b'ab')",
        "f(2 ** 5000)",
        program="def f(x): return (x, frozenset({'b', 'a', 'c'}), float('inf'), 1j)",
    ),
    "nothing to call": job(),
    "a harness": job(
        Call("f(1)"),
        *in_harness("f(1) + f(2)", "sorted([f(2), f(0)])", "abs(f(0.1) - 0.2) < 1e-9", "1 / 0", "f(object())"),
        Call("math.sqrt(f(2))", ("import math",), HARNESS),
        *in_harness("f('raise')", "f('opaque') + 1", "f('much')"),
        *in_harness("f(f(f(1)))", "[f(x) for x in range(f(f(1)))]", "all(f(i) == 2 * i for i in range(300))"),
    ),
    "a check that fails in the middle": job(
        *in_harness("check(candidate)", "check(f)"),
        harness=Harness("def check(c):\n  for i in range(9):\n    assert set([c(i)]) == {i * 2}\n  assert c(4) == 9"),
    ),
    "a harness that asks while it loads": job(*in_harness("a + f(3)"), harness=Harness("a = f(f(1))")),
    "a harness that does not load": job(*in_harness("f(1)", "f(2)"), harness=Harness("import nothing_like_it")),
    "questions that kill or hang": job(*in_harness("f(1)", "f('die')", "f(2)", "f('hang')", "f(3)")),
    "a harness that dies or hangs": job(
        *in_harness("(f(1), os.abort())", "f(2)", "all(f(1) for _ in [0]) and all(iter(lambda: 1, 0))", "f(3)"),
        harness=Harness("import os"),
    ),
    "state between the questions": job(
        *in_harness("[f(), f(), f()]"), program="n = 0\ndef f():\n    global n\n    n += 1\n    return n"
    ),
}
SETS = job(*in_harness("[f(x) for x in {'a', 'b', 'c', 'd', 'e'}]"), program="def f(x): return list({x, 'b', 'c'})")


@pytest.fixture(scope="module")
def reports(sandbox: Sandbox, only_fusion: SandboxFusion) -> dict[str, Any]:
    """All of them in one batch each: local, and through the server."""
    both = zip(sandbox.run(list(SAME_AS_LOCAL.values())), only_fusion.run(list(SAME_AS_LOCAL.values())), strict=True)
    return dict(zip(SAME_AS_LOCAL, both, strict=True))


def without_measurements(report: JobReport) -> list[Outcome]:
    """A time limit has several ways to be found out, and each says its own."""
    outcomes = [report.load, *report.outcomes]
    return [replace(each, message="") if each.kind is OutcomeKind.TIME_LIMIT else each for each in outcomes]


@pytest.mark.parametrize("name", SAME_AS_LOCAL)
def test_outcomes_are_those_of_the_local_sandbox(reports: dict[str, Any], name: str) -> None:
    local, remote = reports[name]
    assert without_measurements(remote) == without_measurements(local)
    assert remote.tier == "the server's own"


def test_the_order_of_sets_is_that_of_the_local_sandbox_whatever_the_servers(
    sandbox: Sandbox, fusion: SandboxFusion, server: PlainServer
) -> None:
    server.environment = {"PYTHONHASHSEED": "random"}
    assert fusion.run([SETS])[0].outcomes == sandbox.run([SETS])[0].outcomes


def test_a_judged_duel_gives_the_same_report_as_the_local_sandbox_and_mixes_nothing(
    sandbox: Sandbox, fusion: SandboxFusion, toys: ProblemSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    packed = fusion_script._packed

    def spy(data: Any) -> str:
        if isinstance(data, dict):
            sent.append(json.dumps({name: data.get(name) for name in ("job", "applies", "answers")}))
        return packed(data)

    monkeypatch.setattr(fusion_script, "_packed", spy)
    reports = [Judge(each, preset("fixed")).judge([duel(toys)])[0] for each in (sandbox, fusion)]
    assert reports[0] == reports[1]
    assert not any(candidate.has_internal_error for candidate in reports[1].candidates)
    marks = ("SOLUTION", "CANDIDATE", "!= 0.4")  # of texts that no process may see together
    for mark in marks:
        assert any(mark in text for text in sent)
    for text in sent:
        assert sum(mark in text for mark in marks) <= 1
        assert "42" not in text  # no process sees an expected value


def duel(toys: ProblemSet) -> Duel:
    tests = """
assert add(20, 22) == 42
assert add(2, 2) == 5
assert add(1, 'a') == 3
assert add(0.1, 0.2) != 0.4
assert all(add(i, -i) == 0 for i in range(20))
assert add(20, 22) == 42
"""
    suite = read_suite(f"```python\n{tests}```", Reading.STRICT, entry_point="add")
    problem = replace(toys.by_id("toy/add"), solution="def add(a, b):\n    return a + b  # SOLUTION")
    bodies = ["b + a", "a - b", "str(a + b)", "add(a, b)"]
    candidates = tuple(Candidate(f"def add(a, b):\n    return {body}  # CANDIDATE\n") for body in bodies)
    return Duel(problem, candidates, ((suite,),) * len(candidates))


def test_processor_time_is_told_per_call_and_in_all(fusion: SandboxFusion) -> None:
    work = "def f(x):\n    for _ in range(x): pass\n"
    short, long = fusion.run([job("f(1)", program=work), job("f(1)", "f(3_000_000)", program=work)])
    assert 0 <= short.call_s[0] < 0.02 < long.call_s[1] < long.cpu_s
    asked = fusion.run([job(*in_harness("[f(1_500_000), f(1_500_000)]"), program=work)])[0]
    assert asked.call_s[0] > 0.02


def test_starting_the_interpreter_is_not_the_programs_time(fusion: SandboxFusion) -> None:
    tiny = replace(LIMITS, cpu_s=0.02)
    assert kinds(fusion, job("f(1)", program="def f(x): return x", limits=tiny)) == ["value"]


def test_a_sleeper_is_asked_twice_before_it_counts(fusion: SandboxFusion, server: PlainServer) -> None:
    n_before = len(server.codes)
    sleeper = job("f(1)", program="import time\ndef f(x): time.sleep(60)", limits=Limits(cpu_s=0.3, wall_s=0.3))
    assert kinds(fusion, sleeper) == ["time_limit"]
    assert len(server.codes) == n_before + 2


# -- hostile programs --

STEAL = """
import base64, gc, os, struct, zlib
def nonce():
    return next(o["nonce"] for o in gc.get_objects() if isinstance(o, dict) and "nonce" in o and "cpu_s" in o)
def forge(tag, call, payload, nonce):
    frame = struct.pack("<cIQI", tag, call, 0, len(payload)) + payload
    text = base64.b64encode(zlib.compress(frame)).decode()
    checksum = zlib.crc32(f"{nonce}:{text}".encode())
    for fd in range(20):
        try: os.write(fd, f"\\n{nonce}:{text}:{checksum:08x}\\n".encode())
        except OSError: pass
"""


FLOOD = """for fd in range(20):
        try: os.write(fd, b"x" * (10**7 if x == 1 else 0))
        except OSError: pass
    return x"""


def hostile(body: str) -> Job:
    return job("f(1)", "f(2)", program=f"{STEAL}\ndef f(x):\n    {body}\n")


def test_frames_with_another_nonce_say_nothing(fusion: SandboxFusion) -> None:
    forged = hostile("forge(b'V', 0, b'42', 'f' * 32); forge(b'V', 1, b'42', 'f' * 32); return x * 2")
    assert [outcome.value for outcome in fusion.run([forged])[0].outcomes] == [b"2", b"4"]


def test_a_stolen_nonce_buys_no_more_than_claiming_a_value(fusion: SandboxFusion) -> None:
    # It can say that a call returned something, as by returning it; and what it says last counts.
    forged = hostile("forge(b'V', 0, b'42', nonce()); forge(b'V', 1, b'43', nonce()); os._exit(0)")
    report = fusion.run([forged])[0]
    assert [outcome.value for outcome in report.outcomes] == [b"42", b"43"]


def test_claiming_to_be_finished_makes_no_values(fusion: SandboxFusion) -> None:
    forged = hostile("forge(b'h', 0, b'', nonce()); forge(b'z', 0, b'', nonce()); os._exit(0)")
    assert kinds(fusion, forged) == ["exited", "exited"]


def test_claiming_to_have_no_room_is_not_our_failure(fusion: SandboxFusion) -> None:
    forged = replace(hostile("forge(b'f', 0, b'', nonce()); os._exit(0)"), limits=replace(LIMITS, max_restarts=9))
    assert kinds(fusion, forged) == ["crashed", "crashed"]


def test_a_claim_that_is_no_value_is_a_broken_channel(fusion: SandboxFusion) -> None:
    report = fusion.run([hostile("forge(b'V', 0, b'{', nonce()); os._exit(0)")])[0]
    assert report.outcomes[0].error_type == "BrokenChannel"


def test_a_flood_of_output_costs_only_the_call_that_makes_it(fusion: SandboxFusion) -> None:
    first, second = fusion.run([hostile(FLOOD)])[0].outcomes
    assert first.value is None
    assert first.kind is not OutcomeKind.INTERNAL_ERROR
    assert second.value == b"2"


def test_more_output_than_is_read_is_the_programs_fault(fusion: SandboxFusion, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusion_http, "_MAX_ANSWER_BYTES", 1 << 19)
    first, second = fusion.run([hostile(FLOOD)])[0].outcomes
    assert (first.kind, first.error_type) == (OutcomeKind.CRASHED, "BrokenChannel")
    assert second.value == b"2"


# -- servers that fail --


def http(status: int, content: object = b"") -> Fault:
    return lambda handler: handler.send(status, content)


def hang_up(handler: PlainHandler) -> bool:
    handler.close_connection = True
    return True


SANDBOX_ERROR = {"status": "SandboxError", "message": "no room", "run_result": None, "files": {}}
LOST_OUTPUT = {"status": "Success", "message": "", "run_result": {"status": "Finished", "return_code": 0, "stdout": ""}}
FAULTS = {
    "500": http(500, {"detail": "oops"}),
    "503": http(503),
    "429": http(429),
    "sandbox error": http(200, SANDBOX_ERROR),
    "not JSON": http(200, b"<html>"),
    "another object": http(200, {"hello": 1}),
    "hanging up": hang_up,
    "lost output": http(200, LOST_OUTPUT),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_that_passes_is_not_seen(server: PlainServer, fusion: SandboxFusion, name: str) -> None:
    server.faults = [FAULTS[name]]
    assert kinds(fusion, job("f(1)", "f('die')")) == ["value", "crashed"]


@pytest.mark.parametrize("name", [name for name in FAULTS if name != "hanging up"])
def test_a_fault_that_stays_is_our_failure(server: PlainServer, fusion: SandboxFusion, name: str) -> None:
    server.faults = [FAULTS[name]] * 3
    report = fusion.run([job("f(1)", "f(2)")])[0]
    assert report.load.kind is OutcomeKind.INTERNAL_ERROR
    assert [outcome.kind for outcome in report.outcomes] == [OutcomeKind.INTERNAL_ERROR] * 2
    assert server.url in report.load.message


def test_a_refused_request_is_our_failure_and_is_not_sent_again(server: PlainServer, fusion: SandboxFusion) -> None:
    n_before = len(server.codes)
    server.faults = [http(422, {"detail": "language"})]
    assert kinds(fusion, job("f(1)")) == ["internal_error"]
    assert len(server.codes) == n_before + 1


def test_what_is_known_before_a_lasting_fault_is_kept(server: PlainServer, fusion: SandboxFusion) -> None:
    server.faults = [lambda handler: False, *[http(500)] * 3]
    assert kinds(fusion, job("f(1)", "f('die')", "f(2)")) == ["value", "crashed", "internal_error"]


def test_a_server_that_always_fails_is_not_waited_for_each_time(server: PlainServer) -> None:
    with SandboxFusion(server.url, attempts=2) as fusion:
        assert kinds(fusion, job("f(1)")) == ["value"]
        server.faults = [http(500)] * 200
        n_before = len(server.codes)
        reports = fusion.run([job("f(1)")] * 60)
        assert all(report.load.kind is OutcomeKind.INTERNAL_ERROR for report in reports)
        assert len(server.codes) - n_before < 60 + 30
        server.faults = []
        assert kinds(fusion, job("f(1)")) == ["value"]


def test_a_server_that_restarts_in_the_middle_is_not_noticed() -> None:
    server = PlainServer()
    port = server.server_address[1]
    with SandboxFusion(server.url, concurrency=2) as fusion, ThreadPoolExecutor(1) as pool:
        running = pool.submit(fusion.run, [job("f(1)") for _ in range(12)])
        while len(server.codes) < 6:
            time.sleep(0.01)
        server.stop()
        time.sleep(0.3)
        server = PlainServer(port)
        try:
            reports = running.result(timeout=30)
        finally:
            server.stop()
    assert [report.outcomes[0].value for report in reports] == [b"2"] * 12


def test_a_server_that_is_not_there_is_named_in_one_sentence() -> None:
    server = PlainServer()
    server.stop()
    with SandboxFusion(server.url, attempts=2) as fusion, pytest.raises(SandboxError) as caught:
        fusion.run([job("f(1)")] * 50)
    assert str(caught.value) == f"the SandboxFusion server at {server.url} cannot be reached: Connection refused"


def test_a_server_that_dies_ends_the_batch() -> None:
    server = PlainServer()
    with SandboxFusion(server.url, attempts=2) as fusion:
        assert kinds(fusion, job("f(1)")) == ["value"]
        server.stop()
        with pytest.raises(SandboxError, match="cannot be reached"):
            fusion.run([job("f(1)")] * 50)


def test_another_kind_of_server_is_refused(server: PlainServer) -> None:
    server.faults = [http(404)]
    with SandboxFusion(server.url) as fusion, pytest.raises(SandboxError, match="no SandboxFusion at"):
        fusion.run([job("f(1)")])


def test_a_server_whose_python_is_not_ours_is_refused_with_its_complaint(server: PlainServer) -> None:
    run = {"status": "Finished", "return_code": 1, "stdout": "", "stderr": "Traceback\nSyntaxError: invalid syntax\n"}
    server.faults = [http(200, {"status": "Failed", "message": "", "run_result": run})] * 9
    with SandboxFusion(server.url) as fusion, pytest.raises(SandboxError, match="SyntaxError: invalid syntax"):
        fusion.run([job("f(1)")])


def test_where_the_output_of_the_dead_is_dropped_the_call_is_still_found(server: PlainServer) -> None:
    def drop(handler: PlainHandler) -> bool:
        answer = handler.ran(handler.server.codes[-1], 10)
        if answer["run_result"]["return_code"] != 0:
            answer["run_result"]["stdout"] = ""
        return handler.send(200, answer)

    server.faults = [drop] * 200
    with SandboxFusion(server.url, concurrency=1) as fusion:
        direct = job("f(1)", "f(2)", "f('die')", "f(3)")
        assert kinds(fusion, direct) == ["value", "value", "crashed", "value"]
        asked = job(*in_harness("(f(1), f('die'))", "(f(2), os.abort())", "f(3)"), harness=Harness("import os"))
        assert kinds(fusion, asked) == ["crashed", "crashed", "value"]
        assert kinds(fusion, job("f(1)", program="import os; os.abort()")) == ["not_run"]
    assert server.faults


# -- bounds --


def test_no_more_requests_are_under_way_than_allowed(server: PlainServer, fusion: SandboxFusion) -> None:
    fusion.run([job("f(1)")] * 12)
    assert server.most_running == 3


def test_values_that_do_not_fit_into_one_output_come_in_several(server: PlainServer) -> None:
    with SandboxFusion(server.url, bounds=Bounds(max_output_bytes=9000)) as fusion:
        n_before = len(server.codes)
        asked = job(*in_harness("[f(1)[:9], f(2)[:9], f(3)[:9]]"), program=NOISE)
        direct, indirect = fusion.run([job("f(1)", "f(2)", "f(3)", program=NOISE), asked])
    values = [bytes.fromhex(json.loads(outcome.value or b"{}")["b"]) for outcome in direct.outcomes]
    assert [len(value) for value in values] == [4000] * 3
    assert indirect.outcomes[0].value == encode([value[:9] for value in values])
    assert len(server.codes) >= n_before + 3 + 5


def test_a_value_that_does_not_fit_at_all_is_our_failure_and_of_no_other_call(server: PlainServer) -> None:
    noise = "import random\ndef f(x): return random.Random(1).randbytes(x)"
    with SandboxFusion(server.url, bounds=Bounds(max_output_bytes=6000)) as fusion:
        asked = [job("f(8)", "f(9000)", "f(9)", program=noise), job(*in_harness("f(9000)", "f(8)"), program=noise)]
        direct, harness = fusion.run(asked)
    assert [outcome.kind.value for outcome in direct.outcomes] == ["value", "internal_error", "value"]
    assert [outcome.kind.value for outcome in harness.outcomes] == ["internal_error", "value"]


def test_questions_that_depend_on_one_another_too_deeply_are_our_failure(server: PlainServer) -> None:
    with SandboxFusion(server.url, bounds=Bounds(max_rounds=3)) as fusion:
        deep = job(*in_harness("f(1)", "f(f(f(f(f(f(1))))))", "f(2)"))
        assert kinds(fusion, deep) == ["value", "internal_error", "value"]


def test_a_harness_that_never_asks_the_same_is_our_failure(server: PlainServer) -> None:
    with SandboxFusion(server.url, bounds=Bounds(max_rounds=3)) as fusion:
        assert kinds(fusion, job(*in_harness("f(time.time_ns())"), harness=Harness("import time"))) == [
            "internal_error"
        ]


def test_a_server_that_cuts_output_is_given_less(server: PlainServer) -> None:
    server.max_output = 150_000
    program = "import random\ndef f(x): return random.Random(x).randbytes(30_000)"
    with SandboxFusion(server.url) as fusion:
        assert kinds(fusion, job(*[f"f({i})" for i in range(6)], program=program)) == ["value"] * 6


# -- the object --


def test_it_is_a_sandbox_that_promises_nothing_about_strangers(fusion: SandboxFusion) -> None:
    assert isinstance(fusion, Sandbox)
    assert (fusion.name, fusion.guarantee) == ("sandbox-fusion", Guarantee.TRUSTED_ONLY)
    assert fusion.run([]) == []


def test_close_is_idempotent_and_a_later_run_starts_afresh(fusion: SandboxFusion) -> None:
    fusion.close()
    fusion.close()
    assert kinds(fusion, job("f(1)")) == ["value"]


def test_close_ends_a_run_of_another_thread(server: PlainServer, fusion: SandboxFusion) -> None:
    sleeper = job("f(1)", program="import time\ndef f(x): time.sleep(2)", limits=Limits(wall_s=60))
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(fusion.run, [sleeper] * 20)
        while server.n_running < 3:
            time.sleep(0.01)
        fusion.close()
        with pytest.raises(SandboxError, match="closed"):
            running.result(timeout=10)


def test_threads_share_it(fusion: SandboxFusion) -> None:
    with ThreadPoolExecutor(4) as pool:
        done = pool.map(lambda i: fusion.run([job(f"f({i})")])[0].outcomes[0].value, range(8))
        assert list(done) == [encode(2 * i) for i in range(8)]


def test_a_forked_process_opens_its_own_connections(fusion: SandboxFusion) -> None:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write, fusion.run([job("f(1)")])[0].outcomes[0].value or b"")
        finally:
            os._exit(0)
    os.close(write)
    assert os.read(read, 10) == b"2"
    os.waitpid(pid, 0)
    os.close(read)
    assert kinds(fusion, job("f(1)")) == ["value"]


def test_it_travels_by_pickle(fusion: SandboxFusion) -> None:
    with pickle.loads(pickle.dumps(fusion)) as copy:
        assert kinds(copy, job("f(1)")) == ["value"]


def test_the_environment_names_the_server(server: PlainServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENDPOINT_VARIABLE, f"{server.url}/run_code")  # some people name the whole address
    sandbox = load_sandbox("codea1_env.sandbox.fusion_client:shared_fusion")
    assert sandbox is shared_fusion()
    assert kinds(sandbox, job("f(1)")) == ["value"]
    sandbox.close()


def test_without_a_server_one_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENDPOINT_VARIABLE, raising=False)
    with pytest.raises(UserError, match=ENDPOINT_VARIABLE):
        shared_fusion()


@pytest.mark.parametrize("url", ["127.0.0.1:8080", "ftp://x", "http://", "http://x:99999", "http://x:y"])
def test_a_broken_address_is_refused_at_once(url: str) -> None:
    with pytest.raises(UserError, match="address"):
        SandboxFusion(url)


def test_nonsense_numbers_are_refused() -> None:
    for options in ({"concurrency": 0}, {"attempts": 0}):
        with pytest.raises(ValueError, match="at least one"):
            SandboxFusion("http://127.0.0.1:1", **options)
