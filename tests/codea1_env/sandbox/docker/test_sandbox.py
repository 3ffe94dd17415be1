"""The docker back end against a real engine: what comes out of it, and what programs can reach in it."""

from __future__ import annotations

import os
import socket
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import codea1_env.sandbox.docker.container
import codea1_env.sandbox.docker.engine
from codea1_env.audit.attacks import HostileCandidate, HostileProgram, load_attacks
from codea1_env.audit.candidate_judging import play_candidate
from codea1_env.audit.findings import AuditResult
from codea1_env.errors import SandboxError, UserError
from codea1_env.facts.problem_kinds import Script
from codea1_env.facts.submissions import Candidate
from codea1_env.facts.verdicts import OutcomeKind
from codea1_env.judging.judge import Duel, Judge
from codea1_env.problems import ProblemSet
from codea1_env.rules.replies import read_suite
from codea1_env.rules.ruleset import Reading, preset
from codea1_env.sandbox.docker.container import startup_folder
from codea1_env.sandbox.docker.engine import connected
from codea1_env.sandbox.docker.image import own_image
from codea1_env.sandbox.docker.sandbox import DockerSandbox, shared_docker_sandbox
from codea1_env.sandbox.interface import Call, Harness, Job, Limits, Place
from codea1_env.sandbox.local import LocalSandbox
from codea1_env.values import decode, encode, equal
from tests.support.containers import missing_engine
from tests.support.sandboxes import DOUBLE, answers

if obstacle := missing_engine():
    pytest.skip(obstacle, allow_module_level=True)

ATTACKS = load_attacks().programs
CANDIDATES = load_attacks().candidates


def direct(*expressions: str) -> tuple[Call, ...]:
    return tuple(Call(expression) for expression in expressions)


KINDS = {
    "def f(x): return {x: (1, 2.5, {3})}\n": "value",
    "def f(x): return object()\n": "opaque",
    "def f(x): raise KeyError(x)\n": "error",
    "def f(x): return 'a' * 10**6\n": "output_limit",
    "def f(x): return len(bytearray(2**30))\n": "memory_limit",
    "def f(x):\n    while True: pass\n": "time_limit",
    "import time\ndef f(x): time.sleep(60)\n": "time_limit",
    "import os\ndef f(x): os._exit(0)\n": "exited",
    "import os\ndef f(x): os.abort()\n": "crashed",
    "def g(x): return x\n": "not_run",
    "def f(x: return x\n": "not_run",
}


@pytest.mark.parametrize("program", KINDS)
def test_each_kind_of_outcome_is_that_of_local(docker: DockerSandbox, local: LocalSandbox, program: str) -> None:
    job = Job(program, "f", direct("f('a')"), limits=Limits(cpu_s=0.3, wall_s=1.0))
    report, expected = docker.run([job])[0], local.run([job])[0]
    assert report.outcomes[0].kind.value == KINDS[program]
    assert (report.load, report.outcomes) == (expected.load, expected.outcomes)
    assert report.tier == docker.tier == "container"


def test_programs_on_standard_input_give_what_they_give_locally(docker: DockerSandbox, local: LocalSandbox) -> None:
    program = "print(sum(map(int, input().split())))\nif input() == 'fail': raise SystemExit(3)\n"
    job = Job(program, "run", direct("run('3 4\\n-\\n')", "run('3 4\\nfail\\n')", "run('3')"), script=Script.WORDS)
    outcomes = docker.run([job])[0].outcomes
    assert [outcome.kind.value for outcome in outcomes] == ["value", "error", "error"]
    assert outcomes == local.run([job])[0].outcomes


def test_harness_calls_go_through_the_stand_in(docker: DockerSandbox, local: LocalSandbox) -> None:
    source = "import numpy as np\ndef check(c):\n    return np.allclose(c(np.ones(2)), [2.0, 2.0])\n"
    calls = tuple(Call(expression, (), Place.HARNESS) for expression in ("check(f)", "f(3) + 1", "f(None)"))
    job = Job("def f(x): return x + x\n", "f", (*calls, Call("f(2)")), harness=Harness(source))
    outcomes = docker.run([job])[0].outcomes
    assert [outcome.value for outcome in outcomes[:2]] == [b"true", b"7"]
    assert outcomes[2].error_type == "TypeError"
    assert outcomes == local.run([job])[0].outcomes


def test_numpy_can_be_imported_where_it_is_installed_here(docker: DockerSandbox) -> None:
    np = pytest.importorskip("numpy")
    job = Job("import numpy\ndef f(): return [numpy.__version__, numpy.ones(2)]\n", "f", direct("f()"))
    assert docker.run([job])[0].outcomes[0].value == encode([np.__version__, np.ones(2)])


def test_many_jobs_of_all_kinds_come_back_in_order(docker: DockerSandbox) -> None:
    programs = ["def f(x): return x\n", "def f(x): raise ValueError(x)\n", "import numpy\ndef f(x): return x\n"]
    reports = docker.run([Job(programs[n % 3], "f", direct(f"f({n})")) for n in range(120)])
    for n, report in enumerate(reports):
        outcome = report.outcomes[0]
        assert outcome.message == str(n) if n % 3 == 1 else outcome.value == str(n).encode()


def test_a_judge_reports_what_it_reports_locally(docker: DockerSandbox, local: LocalSandbox, toys: ProblemSet) -> None:
    reply = "```python\nassert add(1, 2) == 3\nassert add(0, 5) == 5\nassert add(1, 1) == 3\nassert add(1) == 1\n```"
    suite = read_suite(reply, Reading.STRICT, entry_point="add")
    bodies = ["return a + b", "return a - b", "while True: pass", "import os; os._exit(0)", "return __import__('os')"]
    candidates = tuple(Candidate(f"def add(a, b): {body}\n") for body in bodies)
    duel = Duel(toys.by_id("toy/add"), candidates, ((suite,),) * len(candidates))
    assert Judge(docker, preset("fixed")).judge([duel]) == Judge(local, preset("fixed")).judge([duel])


def test_a_job_that_may_use_more_than_a_container_has_is_refused(docker: DockerSandbox) -> None:
    job = Job(DOUBLE.program, "f", DOUBLE.calls, limits=Limits(memory_mb=9999))
    with pytest.raises(UserError, match=r"memory_mb must be at least 9999, .* got 4096"):
        docker.run([job])


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_gains_nothing_and_the_next_job_is_answered(docker: DockerSandbox, attack: HostileProgram) -> None:
    report = docker.run([attack.to_job()])[0]
    outcomes = report.outcomes
    assert OutcomeKind.INTERNAL_ERROR not in [report.load.kind, *(outcome.kind for outcome in outcomes)], report
    for outcome, right in zip(outcomes, attack.right, strict=bool(attack.right)):
        assert outcome.value is None or not equal(outcome.value, encode(eval(right)), nan_equal=True), report
    for expected in filter(None, (attack.evidence, attack.values)):
        assert [outcome.value for outcome in outcomes] == [encode(eval(value)) for value in expected], report
    if attack.outcomes:
        assert {outcome.kind for outcome in outcomes} <= attack.outcomes, report
    assert answers(docker)


@pytest.mark.parametrize("attack", CANDIDATES, ids=lambda attack: attack.name)
def test_each_verdict_on_a_hostile_candidate_is_true(docker: DockerSandbox, attack: HostileCandidate) -> None:
    result, sentence = play_candidate(attack, docker, "no secret of this host")
    assert result is AuditResult.HELD, sentence
    assert answers(docker)


def test_containers_are_hardened_in_every_way_that_the_engine_offers(docker: DockerSandbox, engine: Any) -> None:
    assert answers(docker)
    with connected() as client:
        for container in engine.containers():
            found = client.inspect_container(container["Id"])
            host = found["HostConfig"]
            assert host["AutoRemove"]
            assert host["ReadonlyRootfs"]
            assert not host["Privileged"]
            assert (host["NetworkMode"], host["IpcMode"], host["LogConfig"]["Type"]) == ("none", "none", "none")
            assert host["CapDrop"] == ["ALL"]
            assert sorted(name.removeprefix("CAP_") for name in host["CapAdd"]) == ["KILL", "SETGID", "SETUID"]
            assert host["SecurityOpt"] == ["no-new-privileges"]
            assert host["Memory"] == host["MemorySwap"] == 2 * 4096 << 20
            assert 0 < host["PidsLimit"] <= 4096
            assert 0 < host["NanoCpus"] <= 4e9
            assert "noexec" in host["Tmpfs"]["/tmp"]
            assert not any(mount["RW"] for mount in found["Mounts"] if mount["Type"] == "bind")
    assert docker.refusals == ()


RIGHTS = """
import os
def f():
    status = dict(line.split(":\\t", 1) for line in open("/proc/self/status"))
    return [os.getuid(), os.getgid(), *(int(status[name], 16) for name in ("CapPrm", "CapEff", "CapAmb"))]
"""


def test_each_zygote_has_a_user_of_its_own_and_no_rights(docker: DockerSandbox) -> None:
    # The kinds have zygotes of their own. /proc is hidden by Landlock where it is available.
    kinds = ("", "import threading\n", "import numpy\n")
    found = []
    for kind in kinds:
        job = Job(f"{kind}import os\ndef f(): return [os.getuid(), os.getgid(), *os.getgroups()]\n", "f", direct("f()"))
        found.append(decode(docker.run([job])[0].outcomes[0].value))
    users = [user for user, *_ in found]
    assert len(set(users)) == len(kinds)
    assert all(user >= 20_000 for user in users)
    assert found == [[user, user] for user in users]
    rights = docker.run([Job(RIGHTS, "f", direct("f()"))])[0].outcomes[0]
    assert rights.kind is OutcomeKind.ERROR or decode(rights.value)[2:] == [0, 0, 0]


NEIGHBOUR = """
import os, time
{kind}
def f(seconds):
    time.sleep(seconds)
    return os.getpid()
def g(pid):
    found = []
    for name, way in {{"kill": lambda: os.kill(pid, 9), "see": lambda: open(f"/proc/{{pid}}/mem", "rb")}}.items():
        try:
            way()
            found.append(name)
        except OSError:
            pass
    return found
"""


def test_jobs_of_other_zygotes_can_neither_be_killed_nor_looked_into(docker: DockerSandbox) -> None:
    sleeper = Job(NEIGHBOUR.format(kind=""), "f", direct("f(0.5)"))
    killer = NEIGHBOUR.format(kind="import threading")
    calls = direct(*(f"g({pid})" for pid in range(1, 120)))
    with ThreadPoolExecutor(1) as pool:
        sleeping = pool.submit(docker.run, [sleeper])
        outcomes = docker.run([Job(killer, "g", calls)])[0].outcomes
        assert sleeping.result(timeout=60)[0].outcomes[0].kind is OutcomeKind.VALUE
    reached = [number + 1 for number, outcome in enumerate(outcomes) if outcome.value not in (b"[]", None)]
    assert len(reached) <= 1, reached  # itself at most
    assert answers(docker)


def test_a_program_sees_no_more_of_the_environment_than_locally(docker: DockerSandbox, local: LocalSandbox) -> None:
    job = Job("import os, sys\ndef f(): return [sorted(os.environ), sys.path]\n", "f", direct("f()"))
    assert docker.run([job])[0].outcomes == local.run([job])[0].outcomes


PROBE = """
import ctypes, os, socket

def run_a_file():
    with open("/tmp/program", "w") as file:
        file.write("#!/bin/sh")
    os.chmod("/tmp/program", 0o755)
    os.execv("/tmp/program", ["program"])

def mount():
    if ctypes.CDLL(None).mount(b"none", b"/tmp", b"tmpfs", 0, None) != 0:
        raise OSError

def find_processes():
    if len([name for name in os.listdir("/proc") if name.isdigit()]) < 8:  # the zygote and some of its children
        raise OSError

def f(port, secret):
    ways = {
        "a file of the host": lambda: open(secret),
        "the root file system": lambda: open("/written", "w"),
        "the network": lambda: socket.create_connection(("127.0.0.1", port), 1),
        "the rights of root": lambda: os.setuid(0),
        "mounts": mount,
        "running a file": run_a_file,
        "processes of the host": find_processes,
    }
    return [name for name, way in ways.items() if succeeds(way)]

def succeeds(way):
    try:
        way()
    except OSError:
        return False
    return True
"""
# What is added to a module of ours in the container to take a layer away.
WITHOUT = {
    "Landlock": ("landlock.py", "def restrict(visible): raise kernel.KernelRefuses(95, 'not today')"),
    "filters of system calls": ("seccomp.py", "installer = lambda program: lambda pid: None"),
}


@pytest.mark.parametrize("layer", WITHOUT)
def test_the_container_holds_without_a_layer(engine: Any, layer: str, tmp_path: Path, monkeypatch: Any) -> None:
    module, change = WITHOUT[layer]

    @contextmanager
    def weakened(listener: Any) -> Iterator[Path]:
        with startup_folder(listener) as folder:
            path = folder / "codea1_env" / "sandbox" / "inside" / module
            path.write_text(f"{path.read_text()}\n{change}\n")
            yield folder

    monkeypatch.setattr(codea1_env.sandbox.docker.container, "startup_folder", weakened)
    (tmp_path / "secret").write_text("secret")
    with socket.create_server(("127.0.0.1", 0)) as server, DockerSandbox(1) as sandbox:
        call = f"f({server.getsockname()[1]}, {str(tmp_path / 'secret')!r})"
        outcomes = sandbox.run([Job(PROBE, "f", direct(call))])[0].outcomes
        assert [outcome.value for outcome in outcomes] == [b"[]"], outcomes
        assert answers(sandbox)


@pytest.fixture
def given_image(engine: Any) -> Iterator[Callable[[str], str]]:
    """Makes an image without labels of ours: this Python, and `python3` as a link to the given path."""
    made: list[str] = []

    def make(python3: str) -> str:
        with connected() as client, tempfile.TemporaryFile() as file:
            own = own_image(client, {})
            with tarfile.open(fileobj=file, mode="w") as archive:
                for path in (*own.shown, *filter(os.path.islink, ("/lib", "/lib64", "/usr/lib64"))):
                    archive.add(path, filter=without_packages)
                link = tarfile.TarInfo("usr/bin/python3")
                link.type, link.linkname = tarfile.SYMTYPE, python3
                archive.addfile(link)
            file.seek(0)
            client.import_image(file, repository="codea1-test", tag=str(len(made)))
            made.append(f"codea1-test:{len(made)}")
            return client.inspect_image(made[-1])["Id"]

    yield make
    with connected() as client:
        for image in made:
            client.remove_image(image, force=True)


def without_packages(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    left_out = ("site-packages", "dist-packages", "test", "__pycache__")
    return None if os.path.basename(member.name) in left_out else member


def test_an_image_that_the_user_names_is_used_as_it_is(given_image: Any, engine: Any, monkeypatch: Any) -> None:
    image = given_image(os.path.realpath(sys._base_executable))
    monkeypatch.setenv("CODEA1_DOCKER_IMAGE", image)
    with shared_docker_sandbox.__wrapped__() as sandbox:  # type: ignore[attr-defined]
        assert answers(sandbox)
        assert image in [container["ImageID"] for container in engine.containers()]


def test_an_image_without_python_and_one_that_is_not_there_are_said(given_image: Callable[[str], str]) -> None:
    with DockerSandbox(1, image="nobody/nothing:1") as sandbox, pytest.raises(UserError, match="docker pull nobody/no"):
        sandbox.run([DOUBLE])
    with DockerSandbox(1, image=given_image("/nowhere")) as sandbox, pytest.raises(SandboxError, match="python3"):
        sandbox.run([DOUBLE])


def test_the_image_is_made_once(docker: DockerSandbox, engine: Any) -> None:
    assert answers(docker)
    with connected() as client:
        before = engine.images(client)
        with DockerSandbox(1) as sandbox:
            assert answers(sandbox)
        assert engine.images(client) == before != []


def age(folder: Path) -> None:
    entry = folder / "codea1_env" / "sandbox" / "inside" / "docker_entry.py"
    entry.write_text(entry.read_text().replace("_OLDEST = (3, 11)", "_OLDEST = (4, 0)"))


UNREACHABLE = r"on the same kernel .*no connection"
CHANGES: list[tuple[Callable[[Path], Path | None], str]] = [
    (lambda folder: folder / "not-there", "engine on the same kernel that sees the same"),
    (lambda folder: os.unlink(folder / "socket"), UNREACHABLE),
    (age, r"its Python is 3\.\d+, and"),
]


@pytest.mark.parametrize(("change", "said"), CHANGES)
def test_an_engine_with_other_files_kernel_or_python_is_told_apart(engine, monkeypatch, change, said) -> None:
    @contextmanager
    def changed(listener: Any) -> Iterator[Path]:
        with startup_folder(listener) as folder:
            yield change(folder) or folder

    monkeypatch.setattr(codea1_env.sandbox.docker.container, "startup_folder", changed)
    with DockerSandbox(1) as sandbox, pytest.raises(SandboxError, match=said):
        sandbox.run([DOUBLE])
    assert said != UNREACHABLE or [each for each in engine.containers() if each["State"] == "created"] == []
