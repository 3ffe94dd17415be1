from __future__ import annotations

import json
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from codea1_env.sandbox import Job
from codea1_env.sandbox.remote import RemoteSandbox
from tests.support.command_line import check_document, refused, started
from tests.support.processes import descendants
from tests.support.serving import job
from tests.support.waiting import wait_until

pytest.importorskip("fastapi", reason="fastapi is not installed")


@pytest.fixture
def serving() -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    process = started("serve", "-p", "starter", "--port", 0, "--workers", 1, "--grace", 1, "--json")
    line = process.stdout.readline()
    check_document(["serve"], line)
    yield process, json.loads(line)
    if process.poll() is None:
        process.kill()
    process.communicate(timeout=30)


def post(url: str, result: str) -> str:
    """Run a program whose only call has this result; return how the call ended."""
    body = json.dumps(job(result)).encode()
    request = urllib.request.Request(f"{url}/jobs", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as response:
        return str(json.loads(response.read())[0]["outcomes"][0]["kind"])


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:  # it has just ended
        return False


def test_it_serves_until_sigterm_and_leaves_no_process(serving: tuple[subprocess.Popen[str], dict[str, Any]]) -> None:
    process, told = serving
    assert told["sandbox"]["name"] == "local"
    assert post(told["url"], "6 * 7") == "value"
    started_by_it = descendants(process.pid)
    assert len(started_by_it) > 1
    process.terminate()
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    assert err.startswith("serving")
    assert err.endswith("error: interrupted\n")
    assert "Traceback" not in err
    assert wait_until(lambda: not any(map(lives, started_by_it)))


def test_ctrl_c_ends_it_while_a_program_runs(serving: tuple[subprocess.Popen[str], dict[str, Any]]) -> None:
    process, told = serving
    assert post(told["url"], "1") == "value"
    idle = descendants(process.pid)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(post, told["url"], "__import__('time').sleep(15)")
        assert wait_until(lambda: descendants(process.pid) - idle)
        asked = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        assert time.monotonic() - asked < 10
        assert process.returncode == 130
        assert answer.exception() is not None or answer.result() != "value"


@pytest.mark.parametrize(
    ("options", "said", "token"),
    [
        (("--host", "0.0.0.0"), "other machines", ""),
        (("--sandbox", "nowhere"), "unknown sandbox", ""),
        ((), "at least 16 characters", "s3cret"),
        (("--sandbox", "docker", "--workers", 2), "--workers requires --sandbox local", ""),
    ],
)
def test_what_cannot_be_served_is_one_sentence(
    options: tuple[str, ...], said: str, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEA1_SERVE_TOKEN", token)
    sentence = refused("serve", "-p", "starter", "--port", 0, *options)
    assert "s3cret" not in sentence
    assert said in sentence


@pytest.mark.slow
def test_its_token_is_in_the_environment_and_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = "a-t0ken-of-20-letters"
    monkeypatch.setenv("CODEA1_SERVE_TOKEN", token)
    process = started("serve", "-p", "starter", "--port", 0, "--workers", 1, "--json")
    told = json.loads(process.stdout.readline())
    assert told["needs_token"] is True
    with pytest.raises(urllib.error.HTTPError, match="401"):
        post(told["url"], "1")
    assert RemoteSandbox(told["url"]).run([Job("def f(): ...", "f")])[0].loaded
    process.terminate()
    out, err = process.communicate(timeout=30)
    assert token not in out + err + json.dumps(told)
