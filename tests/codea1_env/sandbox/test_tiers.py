"""Each kind of isolation: had as root and as nobody in particular, refused by name, and never weaker than allowed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from codea1_env.errors import SandboxError, UnknownName
from codea1_env.sandbox.interface import Call, Guarantee, Job
from codea1_env.sandbox.local import ALLOW_WEAK_VARIABLE, REQUIRE_VARIABLE, TIERS, WEAK_TIERS, LocalSandbox
from codea1_env.sandbox.local.sandbox import shared_sandbox
from codea1_env.values import decode
from tests.support import ROOT
from tests.support.sandboxes import DOUBLE, sandbox_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the tiers are Linux's")

NOBODY = 54_321
PROMISES = {
    "namespaces": Guarantee.ISOLATED,
    "bwrap": Guarantee.ISOLATED,
    "landlock": Guarantee.BEST_EFFORT,
    "seccomp": Guarantee.BEST_EFFORT,
    "rlimits": Guarantee.TRUSTED_ONLY,
}
# Each attempt returns what it got, or the name of what it was refused with.
ATTEMPTS = {
    "files": "open('/etc/passwd').read(4)",
    "folders": "len(os.listdir('/var')) > 0",
    "sources": f"len(os.listdir({str(ROOT / 'tests')!r})) > 0",
    "writing": "open('/tmp/mark', 'w').write('x')",
    "network": "socket.create_connection(('127.0.0.1', 9), 1)",
    "socket": "socket.socket().fileno() > 0",
    "fork": "os.fork() >= 0",
    "exec": "os.execv('/bin/true', ['true'])",
    "parent": "os.kill(os.getppid(), 0)",
    "suicide": "os.kill(os.getpid(), 9)",
}
PROGRAM = """
import ctypes, os, socket
def f(attempt):
    try:
        return eval(attempt)
    except OSError as error:
        return type(error).__name__
"""
SCRIPT = """
import json, sys, types
package = types.ModuleType("codea1_env")
package.__path__ = [sys.argv[1] + "/codea1_env"]
sys.modules["codea1_env"] = package  # its own __init__ wants packages that this interpreter may not have
from codea1_env.errors import SandboxError
from codea1_env.sandbox.interface import Call, Job
from codea1_env.sandbox.local import LocalSandbox
tier, program, attempts, options = json.loads(sys.argv[2])
with LocalSandbox(1, tiers=(tier,), **options) as sandbox:
    try:
        report = sandbox.run([Job(program, "f", tuple(Call(f"f({attempt!r})") for attempt in attempts))])[0]
    except SandboxError as error:
        print(json.dumps(str(error)))
    else:
        said = [(outcome.value or outcome.kind.encode()).decode() for outcome in report.outcomes]
        print(json.dumps([report.tier, sandbox.guarantee, said]))
"""


def readable_python() -> str | None:
    """An interpreter that any user can start, new enough."""
    for path in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        command = [path, "-S", "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
        try:
            if subprocess.run(command, check=False, **identity()).returncode == 0:
                return path
        except OSError:
            continue
    return None


def identity() -> dict[str, Any]:
    """Settings of `subprocess` for a user without any rights: another one if we are root, else ourselves."""
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}


def attempted(tier: str, attempts: dict[str, str], user: str) -> Any:
    """What came of attempts in a tier that a user's process has started, or why it cannot be had."""
    python, settings = (readable_python(), identity()) if user == "nobody" else (sys.executable, {})
    if python is None:
        pytest.skip("no interpreter that another user could start")
    options = {"packages": ()} if user == "nobody" else {}
    command = [python, "-c", SCRIPT, str(ROOT), json.dumps([tier, PROGRAM, list(attempts.values()), options])]
    return json.loads(subprocess.check_output(command, text=True, cwd="/", timeout=60, **settings))


FILES = """
import fcntl
def f():
    found = []
    for number in range(2000):
        try:
            fcntl.fcntl(number, fcntl.F_GETFD)
            found.append(number)
        except OSError:
            pass
    return found
"""


@pytest.mark.parametrize("tier", TIERS)
def test_a_job_has_no_file_but_its_own_however_many_the_trainer_has(tier: str) -> None:
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(400)]
    try:
        with sandbox_of(tier) as sandbox:
            report = sandbox.run([Job(FILES, "f", (Call("f()"),))])[0]
    finally:
        for number in held:
            os.close(number)
    assert report.outcomes[0].value == b"[0,1,2,3,4]"


@pytest.mark.parametrize("user", ["ourselves", "nobody"])
@pytest.mark.parametrize("tier", TIERS)
def test_a_tier_keeps_what_it_promises_whoever_starts_it(tier: str, user: str) -> None:
    attempts = {name: text for name, text in ATTEMPTS.items() if tier != "rlimits" or name == "files"}
    answer = attempted(tier, attempts, user)
    if isinstance(answer, str):
        assert tier in answer
        pytest.skip(answer)
    found_tier, guarantee, said = answer
    assert (found_tier, guarantee) == (tier, PROMISES[tier])
    got = {name: json.loads(text) for name, text in zip(attempts, said, strict=True)}
    if tier in WEAK_TIERS:
        assert got.pop("files") == "root"  # what makes them weak
        assert tier == "rlimits" or got.pop("folders") is True
        got.pop("sources", None)
    assert {type(value) for value in got.values()} <= {str}, got
    assert set(got.values()) <= {"PermissionError", "FileNotFoundError", "OSError"}, got


@pytest.mark.parametrize("tier", TIERS)
def test_the_machine_has_no_name_and_no_load(tier: str) -> None:
    seen = "os.uname().nodename", "ctypes.CDLL(None).sysinfo(ctypes.create_string_buffer(512))"
    with sandbox_of(tier) as sandbox:
        outcomes = sandbox.run([Job(PROGRAM, "f", tuple(Call(f"f({each!r})") for each in seen))])[0].outcomes
    name, load = (decode(outcome.value or b"") for outcome in outcomes)
    assert (name == "sandbox") is (PROMISES[tier] is Guarantee.ISOLATED)
    assert load == (0 if tier == "rlimits" else -1)


@pytest.fixture
def only_weak_tiers_here(monkeypatch: pytest.MonkeyPatch, refuse: Callable[..., None]) -> None:
    refuse("namespaces", "bwrap", "landlock")
    monkeypatch.delenv(ALLOW_WEAK_VARIABLE, raising=False)
    monkeypatch.delenv(REQUIRE_VARIABLE, raising=False)


@pytest.mark.usefixtures("only_weak_tiers_here")
def test_a_weak_tier_is_never_taken_silently() -> None:
    with LocalSandbox(1) as sandbox, pytest.raises(SandboxError) as caught:
        sandbox.run([DOUBLE])
    said = str(caught.value)
    assert all(f"{tier}: not today" in said for tier in ("namespaces", "bwrap", "landlock"))
    assert "seccomp (best effort)" in said
    assert f"allow_weak=True or {ALLOW_WEAK_VARIABLE}=1" in said


@pytest.mark.slow
@pytest.mark.usefixtures("only_weak_tiers_here")
def test_a_weak_tier_is_taken_where_it_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    with LocalSandbox(1, allow_weak=True) as sandbox:
        assert sandbox.run([DOUBLE])[0].tier == sandbox.tier == "seccomp"
        assert sandbox.refusals == tuple(f"{tier}: not today" for tier in ("namespaces", "bwrap", "landlock"))
    with LocalSandbox(1, require="rlimits") as sandbox:
        assert sandbox.tier == "seccomp"
    monkeypatch.setenv(ALLOW_WEAK_VARIABLE, "1")
    with LocalSandbox(1) as sandbox:
        assert sandbox.tier == "seccomp"
    with LocalSandbox(1, allow_weak=False) as sandbox, pytest.raises(SandboxError, match="not today"):
        sandbox.run([DOUBLE])


def test_a_required_tier_that_cannot_be_had_is_an_error_that_names_a_weaker_one(refuse: Callable[..., None]) -> None:
    refuse("namespaces", "bwrap")
    with LocalSandbox(1, require="bwrap") as sandbox, pytest.raises(SandboxError) as caught:
        sandbox.run([DOUBLE])
    said = str(caught.value)
    assert "namespaces: not today" in said
    assert "is landlock (best effort), with require='landlock'" in said or "is seccomp" in said


def test_the_environment_can_require_a_tier_and_an_argument_overrules_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(REQUIRE_VARIABLE, "namespace")
    with pytest.raises(UnknownName, match="namespaces"):
        LocalSandbox(1)
    assert LocalSandbox(1, require="landlock")._tiers == ("namespaces", "bwrap", "landlock")
    monkeypatch.setenv(REQUIRE_VARIABLE, "bwrap")
    assert LocalSandbox(1)._tiers == ("namespaces", "bwrap")
    assert set(LocalSandbox(1, allow_weak=False)._tiers) == set(TIERS) - set(WEAK_TIERS)
    assert shared_sandbox().name == "local"
    assert shared_sandbox() is shared_sandbox()


def test_where_bubblewrap_is_missing_its_tier_says_so_each_time(bootstrap: Callable[[str], None]) -> None:
    bootstrap("import os\nos.access = lambda *_: False")
    with LocalSandbox(1, tiers=("bwrap",)) as sandbox:
        for _ in range(2):
            with pytest.raises(SandboxError, match="bubblewrap is not installed"):
                sandbox.run([DOUBLE])
