"""Our own server behind SandboxFusion's `/run_code`: what it answers, and that programs in it are like scripts."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from codea1_env.errors import SandboxError
from codea1_env.sandbox import Job, JobReport, Limits, Sandbox
from codea1_env.service.bounds import ServiceBounds
from codea1_env.service.run_code.schema import CommandResult, CommandStatus, RunResponse, RunStatus
from tests.support.serving import ServiceServer, half_sent, serving


@pytest.fixture(scope="module")
def server(sandbox: Sandbox) -> Iterator[ServiceServer]:
    with serving(sandbox, bounds=ServiceBounds(max_body_bytes=1 << 20)) as server:
        yield server


Answer = tuple[int, Any]


def ask(
    server: ServiceServer, body: object, *, method: str = "POST", path: str = "/run_code", **headers: str
) -> Answer:
    host, port = server.address
    connection = http.client.HTTPConnection(str(host), port, timeout=30)
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    try:
        connection.request(method, path, data, {"Content-Type": "application/json", **headers})
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def ran(server: ServiceServer, code: str, **fields: Any) -> RunResponse:
    status, body = ask(server, {"code": code, "language": "python", **fields})
    assert status == 200
    run = body["run_result"]
    return RunResponse(
        RunStatus(body["status"]), body["message"], CommandResult(**run | {"status": CommandStatus(run["status"])})
    )


def printed(server: ServiceServer, code: str, **fields: Any) -> str:
    answer = ran(server, code, **fields)
    assert answer.status is RunStatus.SUCCESS, answer
    assert answer.run is not None
    return answer.run.stdout


# -- programs are like scripts --


def test_a_script_is_run_and_its_output_returned(server: ServiceServer) -> None:
    code = "import sys\nprint('out', __name__, sys.argv, __file__)\nprint('err', file=sys.stderr)"
    answer = ran(server, code)
    assert answer.status is RunStatus.SUCCESS
    assert answer.run is not None
    assert answer.run.status is CommandStatus.FINISHED
    assert (answer.run.stdout, answer.run.stderr) == ("out __main__ ['main.py'] main.py\n", "err\n")
    assert answer.run.return_code == 0
    assert answer.run.execution_time is not None


def test_the_answer_has_the_documented_fields(server: ServiceServer) -> None:
    _, body = ask(server, {"code": "1", "language": "python"})
    assert set(body) == {"status", "message", "compile_result", "run_result", "executor_pod_name", "files"}
    assert set(body["run_result"]) == {"status", "execution_time", "return_code", "stdout", "stderr"}


@pytest.mark.parametrize(
    ("code", "return_code", "stdout", "stderr"),
    [
        ("print('before')\n1 / 0", 1, "before\n", "ZeroDivisionError: division by zero\n"),
        ("def f(:", 1, "", "SyntaxError: invalid syntax\n"),
        # A ValueError before Python 3.11.4.
        ("print(1)\0", 1, "", "Error: source code string cannot contain null bytes\n"),
        ("raise SystemExit", 0, "", ""),
        ("raise SystemExit(3)", 3, "", ""),
        ("raise SystemExit(256 + 7)", 7, "", ""),
        ("raise SystemExit('farewell')", 1, "", "farewell\n"),
        ("import os; print('flushed', flush=True); print('lost'); os._exit(4)", 4, "flushed\n", ""),
        ("x = 'a' * 10**12", 1, "", "MemoryError\n"),
        ("import sys; sys.excepthook = lambda *_: print('hook'); 1 / 0", 1, "hook\n", ""),
        ("import atexit; atexit.register(print, 'bye'); 1 / 0", 1, "bye\n", "ZeroDivisionError: division by zero\n"),
    ],
)
def test_a_script_ends_as_under_an_interpreter(
    server: ServiceServer, code: str, return_code: int, stdout: str, stderr: str
) -> None:
    run = ran(server, code).run
    assert run is not None
    assert (run.status, run.return_code, run.stdout) == (CommandStatus.FINISHED, return_code, stdout)
    assert run.stderr.endswith(stderr)
    assert bool(run.stderr) == bool(stderr)


def test_a_traceback_shows_the_programs_own_lines_only(server: ServiceServer) -> None:
    run = ran(server, "def f():\n    return [][1]  # here\nf()").run
    assert run is not None
    assert run.stderr.startswith('Traceback (most recent call last):\n  File "main.py", line 3, in <module>\n    f()\n')
    assert "# here" in run.stderr
    assert run.stderr.count("File ") == 2


@pytest.mark.parametrize(
    ("code", "return_code"),
    [
        ("import os; os.abort()", -6),
        ("import signal; signal.raise_signal(11)", -11),
        ("import posix; posix._exit(0)", 1),
    ],
)
def test_the_death_of_a_process_is_a_failure_with_its_signal(
    server: ServiceServer, code: str, return_code: int
) -> None:
    answer = ran(server, code)
    assert answer.status is RunStatus.FAILED
    assert answer.run is not None
    assert answer.run.return_code == return_code


@pytest.mark.slow
def test_out_of_time_what_was_printed_comes_back(server: ServiceServer) -> None:
    loops = [
        "while True: pass",
        "while True:\n  try:\n    while True: pass\n  except Exception: pass",
        "import time; time.sleep(60)",
        "import threading; threading.Thread(target=threading.Event().wait).start()",
    ]
    with ThreadPoolExecutor(len(loops)) as pool:
        codes = [f"print('before', flush=True)\n{loop}" for loop in loops]
        answers = list(pool.map(lambda code: ran(server, code, run_timeout=0.2), codes))
    assert len(answers) == len(loops)
    for answer in answers:
        assert answer.status is RunStatus.FAILED
        assert answer.run is not None
        assert answer.run.status is CommandStatus.TIME_LIMIT_EXCEEDED
        assert (answer.run.return_code, answer.run.stdout) == (None, "before\n")


def test_nothing_printed_after_the_time_is_up_comes_back(server: ServiceServer) -> None:
    code = "print('before', flush=True)\ntry:\n  while True: pass\nexcept:\n  pass\nprint('__PASS__', flush=True)"
    run = ran(server, code.replace("while True: pass", "\n    while True: int()"), run_timeout=0.2).run
    assert run is not None
    assert (run.status, run.stdout) == (CommandStatus.TIME_LIMIT_EXCEEDED, "before\n")


@pytest.mark.slow
def test_code_that_does_not_let_python_stop_it_is_stopped_by_the_sandbox(server: ServiceServer) -> None:
    run = ran(server, "print('lost', flush=True); sum(range(10**12))", run_timeout=0.2).run
    assert run is not None
    assert (run.status, run.stdout) == (CommandStatus.TIME_LIMIT_EXCEEDED, "")


@pytest.mark.parametrize(
    "code",
    [
        "print(sum(map(int, open(0).read().split())))",
        "import sys; print(sum(map(int, sys.stdin.read().split())))",
        "import sys; print(sum(map(int, sys.stdin.buffer.read().split())))",
        "import os; print(sum(map(int, b''.join(iter(lambda: os.read(0, 9999), b'')).split())))",
        "import sys; print(sum(int(x) for line in sys.stdin for x in line.split()))",
        "print(sum(int(x) for _ in range(30000) for x in input().split()))",
    ],
)
def test_stdin_can_be_read_in_any_way(server: ServiceServer, code: str) -> None:
    assert printed(server, code, stdin="1 2 3\n" * 30_000) == "180000\n"  # more than a pipe holds


def test_without_stdin_there_is_nothing_to_read(server: ServiceServer) -> None:
    assert printed(server, "import sys; print(repr(sys.stdin.read()))") == "''\n"
    assert "EOFError" in getattr(ran(server, "input()").run, "stderr", "")


def test_output_on_the_descriptors_is_returned_too(server: ServiceServer) -> None:
    code = "import os, sys\nos.write(1, b'raw ')\nos.write(2, b'error')\nprint(sys.stdout.fileno())"
    run = ran(server, code).run
    assert run is not None
    assert (run.stdout, run.stderr) == ("raw 1\n", "error")


def test_much_output_is_kept_from_the_front_and_costs_no_memory(server: ServiceServer) -> None:
    run = ran(server, "print('head')\nfor _ in range(40): print('é' * 10**6)", memory_limit_MB=64).run
    assert run is not None
    assert run.return_code == 0
    assert run.stdout.startswith("head\né")
    assert (1 << 20) - 4 <= len(run.stdout.encode()) <= (1 << 20) + 4


def test_threads_pools_and_exit_handlers_are_waited_for(server: ServiceServer) -> None:
    code = """
import atexit, threading, time
from concurrent.futures import ThreadPoolExecutor
atexit.register(print, "at exit")
threading.Thread(target=lambda: (time.sleep(0.1), print("thread"))).start()
ThreadPoolExecutor(2).submit(lambda: (time.sleep(0.2), print("pool")))
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
"""
    assert printed(server, code) == "thread\npool\nat exit\n"


def test_alarms_are_the_programs_own(server: ServiceServer) -> None:
    code = """
import signal
class Late(Exception): pass
def late(*_): raise Late
signal.signal(signal.SIGALRM, late)
signal.setitimer(signal.ITIMER_REAL, 0.1)
try:
    while True:
        int()
except Late:
    print("late")
"""
    assert printed(server, code) == "late\n"


def test_the_memory_limit_of_a_request_holds(server: ServiceServer) -> None:
    code = "x = bytearray(200 << 20); print(len(x) >> 20)"
    assert printed(server, code, memory_limit_MB=400) == "200\n"
    assert "MemoryError" in getattr(ran(server, code, memory_limit_MB=100).run, "stderr", "")
    assert ran(server, code, memory_limit_MB=10**9).status is RunStatus.SUCCESS  # as much as the server gives


def test_a_script_is_isolated_as_any_program(server: ServiceServer) -> None:
    code = """
import os
for act in (lambda: open("/etc/passwd"), os.fork, lambda: open("x", "w")):
    try:
        act()
        print("yes")
    except OSError:
        print("no")
"""
    assert printed(server, code) == "no\nno\nno\n"


@pytest.mark.parametrize(
    "result", ["1", "None", "[b'', b'', 0]", "(b'', b'', True, 0, 1.0)", "('', '', 0, False, 1.0)"]
)
def test_a_program_that_returns_nonsense_in_our_name_fails(server: ServiceServer, result: str) -> None:
    code = f"import sys\nsys._getframe(3).f_globals['Ran'] = lambda *_: {result}"
    answer = ran(server, code)
    assert answer.status is RunStatus.FAILED
    assert answer.run is not None
    assert "replaced its own output" in answer.run.stderr


# -- the release's protocol: scripts that print their own verdicts --

RELEASE = """
import signal
class TO(Exception): pass
def handler(s, f): raise TO()
def run_safe(func):
    try:
        signal.signal(signal.SIGALRM, handler)
        signal.alarm(5)
        func()
        signal.alarm(0)
        print('__PASS__', flush=True)
    except TO:
        print('__TIMEOUT__', flush=True)
    except:
        signal.alarm(0)
        print('__FAIL__', flush=True)
def check(candidate):
    assert candidate(1, 2) == 3
    assert candidate(-1, 1) == 0
def c_0():
    def add(a, b): return a + b
    check(add)
def c_1():
    def add(a, b): return a - b
    check(add)
def c_2():
    raise Exception('SyntaxError')
def c_3():
    print('__PASS__', flush=True)
    import os; os._exit(0)
run_safe(c_0)
run_safe(c_1)
run_safe(c_2)
run_safe(c_3)
"""


def test_a_script_in_the_style_of_the_release_works_and_stays_forgeable(server: ServiceServer) -> None:
    lines = printed(server, RELEASE, run_timeout=30).split()
    assert lines == ["__PASS__", "__FAIL__", "__FAIL__", "__PASS__"]  # the last one is a lie: it runs no check


# -- requests --


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"{", None),
        (b"[1]", None),
        (b"", None),
        ({"code": "1", "language": "cpp"}, "language"),
        ({"code": "1"}, "language"),
        ({"language": "python"}, "code"),
        ({"code": "1", "language": "python", "run_timeout": -1}, "run_timeout"),
        ({"code": "1", "language": "python", "files": {"a": "YQ=="}}, "files"),
    ],
)
def test_a_request_that_cannot_be_served_is_told_why(server: ServiceServer, body: object, field: str | None) -> None:
    status, answer = ask(server, body)
    assert status == 422
    assert answer["detail"][0]["loc"] == ["body", *([field] if field else [])]
    assert answer["detail"][0]["msg"]


def test_pings_are_answered_and_other_paths_are_not(server: ServiceServer) -> None:
    assert ask(server, b"", method="GET", path="/v1/ping") == (200, "pong")
    assert ask(server, b"", method="GET", path="/")[0] == 200
    assert ask(server, b"", method="GET", path="/run_code")[0] == 405
    assert ask(server, {}, path="/run_jupyter")[0] == 404


def test_a_body_that_is_too_large_is_refused_unread(server: ServiceServer) -> None:
    status, answer = ask(server, {"code": "#" * (2 << 20), "language": "python"})
    assert status == 413
    assert "bytes" in answer["detail"]


def test_a_body_without_a_length_is_refused(server: ServiceServer) -> None:
    with socket.create_connection(server.address, timeout=10) as client:
        client.sendall(b"POST /run_code HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 411 ")


def test_what_a_web_page_can_post_unasked_is_refused(server: ServiceServer) -> None:
    body = {"code": "1", "language": "python"}
    assert ask(server, body, **{"Content-Type": "text/plain"})[0] == 422
    assert ask(server, body, **{"Content-Type": "application/json; charset=utf-8"})[0] == 200


@pytest.mark.slow
def test_a_connection_serves_many_requests(server: ServiceServer) -> None:
    connection = http.client.HTTPConnection(*server.address, timeout=30)
    started = time.monotonic()
    for number in range(20):
        body = json.dumps({"code": f"print({number})", "language": "python"})
        connection.request("POST", "/run_code", body, {"Content-Type": "application/json"})
        assert json.loads(connection.getresponse().read())["run_result"]["stdout"] == f"{number}\n"
    assert time.monotonic() - started < 20 * 0.2  # 40 ms more each if packets waited for one another
    connection.close()


def test_concurrent_requests_get_their_own_answers(server: ServiceServer) -> None:
    with ThreadPoolExecutor(5) as pool:
        outputs = list(pool.map(lambda number: printed(server, f"print({number})"), range(40)))
    assert outputs == [f"{number}\n" for number in range(40)]


def test_a_client_that_hangs_up_disturbs_nobody(server: ServiceServer, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_connection(server.address, timeout=10) as client:
        client.sendall(half_sent())
    assert printed(server, "print(1)") == "1\n"
    assert capfd.readouterr().err == ""


# -- the sandbox behind it --


class Fixed:
    """Says what it was told to say."""

    name = "fixed"

    def __init__(self, say: Callable[[Sequence[Job]], list[JobReport]]) -> None:
        self.run = say

    def close(self) -> None:
        """Nothing to end."""


def test_a_sandbox_that_fails_is_a_sandbox_error(broken_sandbox: Any) -> None:
    def refuse(jobs: Sequence[Job]) -> list[JobReport]:
        raise SandboxError("no workers")

    for failing, said in ((broken_sandbox, "internal error"), (Fixed(refuse), "no workers")):
        with serving(failing) as server:
            answer = ran(server, "print(1)")
            assert answer.status is RunStatus.SANDBOX_ERROR
            assert said in answer.message


def test_the_timeout_is_processor_time_and_waiting_gets_more() -> None:
    asked: list[Limits] = []

    def note(jobs: Sequence[Job]) -> list[JobReport]:
        asked.extend(job.limits for job in jobs)
        raise SandboxError("that is all")

    with serving(Fixed(note)) as server:
        ran(server, "1", run_timeout=4, memory_limit_MB=77)
    assert 4 < asked[0].cpu_s < 5
    assert asked[0].wall_s > 8
    assert asked[0].memory_mb == 77
