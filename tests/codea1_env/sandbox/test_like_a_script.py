"""A program sees what a script of plain Python sees; `docs/sandbox.md` lists each difference, and where it is."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from codea1_env.facts.problem_kinds import Script
from codea1_env.sandbox.interface import Call, Job
from codea1_env.sandbox.local import TIERS
from codea1_env.sandbox.local.worker import clean_environment
from codea1_env.values import decode
from tests.support import ROOT
from tests.support.sandboxes import sandbox_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the table is about Linux")

LOOKS = r'''
import builtins, json, os, re, sys
GETTERS = """getdefaultencoding getfilesystemencoding getfilesystemencodeerrors getdlopenflags getswitchinterval
    getprofile gettrace get_int_max_str_digits get_asyncgen_hooks get_coroutine_origin_tracking_depth getrecursionlimit
    is_finalizing exc_info""".split()
def plain(value):
    if callable(value):
        return f"{type(value).__name__} {getattr(value, '__qualname__', '')}"
    if value is sys.modules or value is sys.path_importer_cache:
        return sorted(value)
    return re.sub("0x[0-9a-f]+", "0x", repr(value))
def attempt(source):
    try:
        return plain(eval(source))
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
EXPRESSIONS = """
    len(dir(builtins))
    exit
    help
    os.environ
    os.getcwd()
    os.getpid() == os.getppid()
    os.cpu_count()
    open('/proc/self/cmdline').read()
    os.read(os.open('/proc/self/cmdline', 0), 999)
    __import__('pathlib').Path('/proc/self/cmdline').read_bytes()
    __import__('locale').setlocale(0, '')
    __import__('locale').setlocale(6, '')
    __import__('locale').setlocale(6, 'C.UTF-8')
    __import__('locale').getlocale()
    __import__('locale').localeconv()
    __import__('locale').getpreferredencoding()
    __import__('time').strftime('%A %x %Z', (2024, 2, 29, 1, 2, 3, 3, 60, 0))
    __import__('argparse').ArgumentParser('p').parse_known_args()[0]
    __import__('multiprocessing.dummy').dummy.Pool(2).map(abs, [-1, 2])
    __import__('multiprocessing.pool').pool.ThreadPool().map(abs, [-1, 2])
    __import__('multiprocessing').BoundedSemaphore(2).release()
    __import__('multiprocessing').RLock().release()
    __import__('concurrent.futures').futures.ThreadPoolExecutor(2).submit(abs, -1).result()
    __import__('threading').current_thread().name
    __import__('os').register_at_fork
    __builtins__ is builtins
    __cached__
    __name__
    __file__
    __loader__ is None
    type('C', (), {}).__module__
    f.__code__.co_filename
""".strip().split("\n")
def f():
    names = [name for name in dir(sys) if not name.startswith("_")]
    looks = {f"sys.{name}": plain(getattr(sys, name)) for name in names}
    looks |= {f"sys.{name}()": plain(getattr(sys, name)()) for name in GETTERS}
    looks |= {source: attempt(source) for source in map(str.strip, EXPRESSIONS)}
    return json.dumps(looks)
'''
PRINTS = f"{LOOKS}\nprint(f())\n"


def documented(title: str = "What a program sees") -> dict[str, str]:
    """What the page lists in a section: what is seen, and of which programs ("all", "functions") or in which tiers."""
    page = (ROOT / "docs/sandbox.md").read_text()
    (section,) = re.findall(rf"##+ {title}\n(.*?)\n##", page, re.DOTALL)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.split("\n") if line[:3] == "| `"]
    return {name: of for names, of, _ in rows for name in re.findall("`(.+?)`", names)}


def of_script(folder: Path, *arguments: str) -> dict[str, object]:
    (folder / "program.py").write_text(PRINTS)
    python: str = sys._base_executable  # type: ignore[attr-defined]
    environment = {name: text for name, text in clean_environment().items() if name != "LD_BIND_NOW"}
    settings = {"cwd": folder, "env": environment, "stdin": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    looks: dict[str, object] = json.loads(
        subprocess.check_output([python, "program.py", *arguments], timeout=60, **settings)  # type: ignore[call-overload]
    )
    return looks


@pytest.mark.parametrize("tier", TIERS)
def test_programs_differ_from_scripts_only_where_the_page_says_so(tier: str, tmp_path: Path) -> None:
    scripts, scripted = Call("run('a', 'b c')"), Script.COMMAND_LINE_EXACT
    jobs = [
        Job(LOOKS, "f", (Call("f()"),)),
        Job(PRINTS, "run", (Call("run('')"),), script=Script.EXACT),
        Job(PRINTS, "run", (scripts,), script=scripted),
    ]
    with sandbox_of(tier) as sandbox:
        reports = sandbox.run(jobs)
    table, bare = documented(), of_script(tmp_path)
    for number, report in enumerate(reports):
        looks = json.loads(decode(report.outcomes[0].value or b""))
        right = bare if number < 2 else of_script(tmp_path, "a", "b c")
        different = {name for name in right | looks if right.get(name) != looks.get(name)}
        assert different == {name for name, of in table.items() if of == "all" or not number}, {
            name: (right.get(name), looks.get(name)) for name in different - table.keys()
        }
        shown = json.dumps(looks)
        assert str(ROOT) not in shown
        assert not re.search(rf"\b{os.getpid()}\b", shown)


@pytest.mark.parametrize("tier", TIERS)
def test_no_file_that_shows_a_command_line_names_the_trainer(tier: str) -> None:
    look = "def f():\n  try: return open('/proc/thread-self/cmdline').read()\n  except OSError: return ''\n"
    with sandbox_of(tier) as sandbox:
        (report,) = sandbox.run([Job(look, "f", (Call("f()"),))])
    read = str(decode(report.outcomes[0].value or b""))
    assert "{" not in read
    assert not re.search(rf"\b{os.getpid()}\b", read)


OTHERS = """
import gc, os, sys
def kept():
    gc.unfreeze()
    held, frame = [one for one in gc.get_objects() if type(one) is dict and "tier" in one], sys._getframe()
    while frame := frame.f_back:
        held += frame.f_locals.values()
    return repr(held)
def f(look):
    try:
        return str(eval(look))
    except OSError:
        return ""
"""


@pytest.mark.parametrize("tier", TIERS)
def test_other_processes_show_only_where_the_page_says_so(tier: str) -> None:
    table, pid = documented("What shows of other processes"), str(os.getpid())
    with sandbox_of(tier) as sandbox:
        calls = tuple(Call(f"f({look.replace('PID', pid)!r})") for look in ("kept()", *table))
        kept, *seen = [str(decode(got.value or b"")) for got in sandbox.run([Job(OTHERS, "f", calls)])[0].outcomes]
    assert "frame" in kept
    assert not re.search(rf"\b{pid}\b|{re.escape(str(ROOT))}'", kept)
    shown = {look for look, text in zip(table, seen, strict=True) if text}
    listed = {look for look, tiers in table.items() if tier in tiers.split(", ")}
    of_user = {"open('/proc/PID/environ').read()"}  # where root's processes become another user's
    assert shown == listed or (os.geteuid() == 0 and shown == listed - of_user)


SEMAPHORES = """
import multiprocessing, threading
def f(name, steps):
    lock, seen = getattr(multiprocessing, name)(), []
    for step in steps:
        try:
            seen.append(eval(step))
        except Exception as error:
            seen.append(type(error).__name__)
    return seen
"""
STEPS = ["lock.acquire()", "lock.acquire(False)", "lock.acquire(True, 0.01)", "lock.release()", "lock.release()"]
STEPS += ["lock.release()", "lock.acquire(timeout=-1)", "lock._semlock._is_mine()", "lock._semlock._count()"]


def test_semaphores_of_threads_count_as_those_of_processes() -> None:
    calls = [(name, STEPS) for name in ("Lock", "RLock", "Semaphore", "BoundedSemaphore")]
    scope: dict[str, object] = {}
    exec(SEMAPHORES, scope)
    job = Job(SEMAPHORES, "f", tuple(Call(f"f({name!r}, {steps!r})") for name, steps in calls))
    with sandbox_of("landlock") as sandbox:
        outcomes = sandbox.run([job])[0].outcomes
    assert [decode(outcome.value or b"") for outcome in outcomes] == [scope["f"](*call) for call in calls]  # type: ignore[operator]
