"""The programs that are sent to a SandboxFusion server: our runner, one job's texts, and what to do with them."""

from __future__ import annotations

import base64
import dis
import json
import math
import secrets
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from codea1_env.sandbox.fusion_schema import MAX_TIMEOUT_S
from codea1_env.sandbox.interface import Job

__all__ = ["Answer", "Script", "harness_script", "program_script", "scout_script"]

_START_S = 5.0  # for the interpreter and our runner, on a loaded machine
_RUNNER = "codea1_env.sandbox.fusion_runner"
_ROLES = {
    "program": (_RUNNER,),
    "harness": ("codea1_env.sandbox.inside.harness", _RUNNER),
    "scout": ("codea1_env.sandbox.inside.harness", _RUNNER),
}
"""Modules that are needed there, the last of which is run."""

_PRELUDE = """\
import os, sys
if sys.flags.hash_randomization and os.path.isfile(sys.argv[0]):
    # The order of sets must not differ between two runs; nor may the number of threads.
    fixed = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    fixed.update(PYTHONHASHSEED="0", TZ="UTC")
    try:
        os.execve(sys.executable, [sys.executable, sys.argv[0]], {**os.environ, **fixed})
    except OSError:
        pass
import base64, json, zlib
def unpacked(text):
    return json.loads(zlib.decompress(base64.b64decode(text)))
def install(name, source):
    module = type(sys)(name)
    if source is None:
        module.__path__ = []
    sys.modules[name] = module
    exec(compile(source or "", "<" + name + ">", "exec", dont_inherit=True), vars(module))
for name, source in unpacked("{modules}"):
    install(name, source)
sys.modules[name].run(unpacked("{task}"))
"""


@dataclass(frozen=True, slots=True)
class Script:
    """One request."""

    code: str
    nonce: str
    run_timeout_s: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What the program said when its entry point was applied."""

    arguments: str
    """Encoded, as latin-1 text."""
    tag: bytes
    """Of its frame, or `Mark.LOST`."""
    payload: bytes


def program_script(
    job: Job, calls: Sequence[int], max_output_bytes: int, applies: Sequence[str] = (), n_quiet: int = 0
) -> Script:
    """Return the request that loads a program and evaluates direct calls, then applies its entry point.

    Args:
        job: the program's.
        calls: positions of the direct calls.
        max_output_bytes: what may be printed.
        applies: encoded arguments to apply the entry point to, as latin-1 text.
        n_quiet: for how many of them, from the front, nothing need be said.
    """
    texts = {
        "entry": job.entry_point,
        "value_bytes": job.limits.value_bytes,
        "preamble": job.preamble,
        "program": job.program,
        "calls": [[index, job.calls[index].expression] for index in calls],
        "serve": True,
    }
    task = {"role": "program", "job": texts, "applies": list(applies), "quiet": n_quiet}
    return _script(job, task, 1 + len(calls) + len(applies), max_output_bytes)


def harness_script(
    job: Job, calls: Sequence[int], max_output_bytes: int, answers: Sequence[Answer], may_guess: bool
) -> Script:
    """Return the request that loads a harness and evaluates calls in it, with answers of the program from before.

    Args:
        job: the harness's.
        calls: positions of the harness calls.
        max_output_bytes: what may be printed.
        answers: what the program said, in the order in which the harness asked.
        may_guess: whether to go on after a question without an answer.
    """
    rows = [[answer.arguments, answer.tag.decode("latin-1"), answer.payload.decode("latin-1")] for answer in answers]
    task = {"role": "harness", "job": _harness_texts(job, calls), "answers": rows, "may_guess": may_guess}
    return _script(job, task, 1 + len(calls), max_output_bytes)


def scout_script(job: Job, calls: Sequence[int], max_output_bytes: int) -> Script:
    """Return the request that finds out what a harness will probably ask."""
    return _script(job, {"role": "scout", "job": _harness_texts(job, calls)}, 1 + len(calls), max_output_bytes)


def _harness_texts(job: Job, calls: Sequence[int]) -> dict[str, Any]:
    return {
        "entry": job.entry_point,
        "value_bytes": job.limits.value_bytes,
        "source": job.harness.source,
        "calls": [[index, job.calls[index].expression, list(job.calls[index].imports)] for index in calls],
    }


def _script(job: Job, task: dict[str, Any], n_activities: int, max_output_bytes: int) -> Script:
    limits, nonce = job.limits, secrets.token_hex(16)
    texts = json.dumps(task["job"])
    wants_numpy = "numpy" in texts
    task |= {
        "nonce": nonce,
        "max_output_bytes": max_output_bytes,
        "cpu_s": limits.cpu_s,
        "wall_s": limits.wall_s,
        "memory_mb": limits.memory_mb,
        "life_s": math.ceil(limits.cpu_s * n_activities) + 2,
        "numpy": wants_numpy,
    }
    code = _PRELUDE.replace("{modules}", _modules(task["role"])).replace("{task}", _packed(task))
    if wants_numpy:
        code = f"# numpy\n{code}"  # so that a server which has it ready can see that it is wanted
    run_timeout_s = _START_S + limits.wall_s + 2 * limits.cpu_s * n_activities
    return Script(code, nonce, min(run_timeout_s, MAX_TIMEOUT_S))


@cache
def _modules(role: str) -> str:
    """Return the sources of the modules that a role needs and, before them, of all of ours that they import."""
    sources: dict[str, str | None] = {}

    def add(name: str) -> None:
        package = name.rpartition(".")[0]
        if package and package not in sources:
            add(package)
        source = None if _is_package(name) else _source(name)
        for needed in _imports(source or ""):
            if needed not in sources:
                add(needed)
        sources[name] = source

    for name in _ROLES[role]:
        add(name)
    return _packed(list(sources.items()))


def _source(name: str) -> str:
    return files("codea1_env").joinpath(*name.split(".")[1:-1], f"{name.rpartition('.')[2]}.py").read_text("utf-8")


def _is_package(name: str) -> bool:
    return files("codea1_env").joinpath(*name.split(".")[1:], "__init__.py").is_file()


def _imports(source: str) -> list[str]:
    """Return the modules of ours that a source imports when it is loaded.

    Read from its byte code: building syntax trees in several threads at once fails now and then in CPython before
    3.11.8, in whichever thread has bad luck.
    """
    found = []
    package = ""
    for instruction in dis.get_instructions(compile(source, "<source>", "exec", dont_inherit=True)):
        if instruction.opname == "IMPORT_NAME":
            package = instruction.argval if instruction.argval.startswith("codea1_env") else ""
            if package and not _is_package(package):
                found.append(package)
        elif instruction.opname == "IMPORT_FROM" and package and _is_package(package):
            found.append(f"{package}.{instruction.argval}")
    return found


def _packed(data: object) -> str:
    return base64.b64encode(zlib.compress(json.dumps(data).encode())).decode()
