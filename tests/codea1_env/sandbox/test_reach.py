"""Who may get all calls at once: whoever cannot see them, as far as the syntax of a program shows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codea1_env.problems import load_problems
from codea1_env.sandbox import Call, Job, Limits, Place, Sandbox
from codea1_env.sandbox.interface import LOADED_TOO_OFTEN
from codea1_env.sandbox.local.reach import may_see_calls

REACHING = [
    "import sys", "import gc", "import numpy", "import json.decoder", "from . import x",
    "import random\nrandom._os", "from random import _os", "import typing\ntyping.sys", "from re import sys",
    "import dataclasses as d\nd.inspect.currentframe()", "import enum\nenum.bltns.open", "import copy\ncopy.weakref",
    "g = (x for x in [])\ng.gi_frame", "async def f(): pass\nf().cr_frame", "f = None\nf.f_back.f_locals",
    "try:\n  1 / 0\nexcept Exception as e:\n  e.__traceback__", "().__class__.__base__.__subclasses__()",
    "'{0.gi_frame}'.format(1)", "s = 'x'\ns.format(1)", "import string\nstring.Formatter().vformat('', (), {})",
    "'{0.__dict__}'", "match x:\n  case A(gi_frame=y): pass", "match x:\n  case A(__dict__=y): 1",
    "import contextlib", "import dataclasses", "import typing\ntyping.contextlib", "import typing as t\nt._eval_type",
    "from functools import wraps as w", "import functools\nfunctools.update_wrapper",
    "class A:\n  __annotations__ = {}",
    "getattr(1, 'real')", "x = eval", "open('/proc/self/mem')", "__import__('gc')", "__builtins__",
    "(lambda: 0).__code__",
    "f.__globals__", "import operator\noperator.attrgetter", "from operator import methodcaller as m",
    "import functools\nfunctools.singledispatch", "import typing\ntyping.get_type_hints", "vars()", "memoryview(b'')",
    "match x:\n  case A(y): pass",
    "from operator import *\nx = attrgetter('gi_frame')", "from typing import ForwardRef as F",
    "import typing\ntyping.List['x'].__args__[0].evaluate", "import typing\ntyping.List['x'].__args__[0]._evaluate",
    "import re\nx = '" + "{" * 40_000 + "'", "import re" + "#" * 70_000,
    "from enum import property", "import re\nre.enum.property", "import typing\ntyping._tp_cache",
    "import collections as c\nc._tuplegetter", "from copy import _reconstruct",
    "\uff45val('1')", "f.\uff47i_frame", "_ = eval", "x = ().f_back",
]  # fmt: skip
HARMLESS = [
    "def f(x): return x", "import re\n"
    "P = re.compile('a.b')", "'{} {:>3}'.format(1, 2)", "def f(input, dir, code): return code",
    "class A:\n  def __init__(self): self._x = 1\n  def __eq__(self, other): return self._x == other._x",
    "from collections import defaultdict, Counter\nimport math, itertools as it\nfrom typing import List",
    "if __name__ == '__main__':\n  print(1)", "class A:\n"
    "  def __secret(self): return self.__secret", "def (", "x = (" * 300, "from collections import *",
]  # fmt: skip


@pytest.mark.parametrize("program", REACHING)
def test_a_program_that_may_reach_its_calls_gets_them_one_by_one(program: str) -> None:
    assert may_see_calls(program)


@pytest.mark.parametrize("program", HARMLESS)
def test_a_harmless_program_gets_all_at_once(program: str) -> None:
    assert not may_see_calls(program)


def test_so_do_the_solutions_of_our_own_problems() -> None:
    assert [problem.id for problem in load_problems("starter") if may_see_calls(problem.solution)] == []


UP = "  while frame:\n    yield from frame.f_locals.values()\n    frame = frame.f_back\n"
WAYS = {
    "frames": f"import sys\ndef calls():\n  frame = sys._getframe()\n{UP}",
    "a traceback": "def calls():\n  try: 1 / 0\n  except Exception as e: frame = e.__traceback__.tb_frame\n" + UP,
    "a generator": "def gen():\n  yield running.gi_frame.f_back\nrunning = gen()\ndef calls():\n  global running\n"
    f"  running = gen()\n  frame = next(running)\n{UP}",
    "a wrapper's attributes": "import functools\nfound = []\nclass Catch:\n"
    "  def __setattr__(self, name, value): found.append(value)\n"
    "def read(thing, name):\n  found.clear()\n"
    "  functools.update_wrapper(Catch(), thing, assigned=(name,), updated=())\n  return found[0]\n"
    "def gen(): yield read(running, 'gi_' + 'frame')\nrunning = gen()\n"
    "def calls():\n  global running\n  running = gen()\n  frame = read(next(running), 'f_' + 'back')\n"
    "  while frame:\n    yield from read(frame, 'f_' + 'locals').values()\n    frame = read(frame, 'f_' + 'back')\n",
    "a redirection": "import contextlib\nclass R(contextlib.redirect_stdout): _stream = '_getframe'\n"
    "def calls():\n  r = R(None)\n  r.__enter__()\n  frame = r._old_targets[0](0)\n  r.__exit__(None, None, None)\n"
    f"{UP}",
    "the collector": "import gc\ndef calls(): return [o for o in gc.get_objects() if type(o) is dict and "
    "'value_bytes' in o]\n",
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_later_calls_are_not_in_the_process_of_a_program_that_looks_for_them(sandbox: Sandbox, way: str) -> None:
    program = way + "def f(x):\n  found = [repr(each)[:9999] for each in calls()]\n"
    program += "  return [n for n in range(5) if any(f'secret-{n}' in each for each in found)]\n"
    calls = tuple(Call(f"f('secret-{n}')") for n in range(5))
    (report,) = sandbox.run([Job(program, "f", calls)])
    for number, outcome in enumerate(report.outcomes):
        assert outcome.value is not None, outcome
        seen = [int(each) for each in outcome.value.decode().strip("[]").split(",") if each]
        assert max(seen, default=0) <= number, "a later call"


def test_calls_that_come_singly_keep_their_places_state_and_restarts(sandbox: Sandbox) -> None:
    program = "import sys, os\nseen = []\ndef f(x):\n  if x == 2: os._exit(0)\n  if x == 3: raise KeyError\n"
    program += "  seen.append(x)\n  return seen\n"
    (report,) = sandbox.run([Job(program, "f", tuple(Call(f"f({n})") for n in range(6)))])
    kinds = [outcome.kind.value for outcome in report.outcomes]
    assert kinds == ["value", "value", "exited", "error", "value", "value"]
    assert [outcome.value for outcome in report.outcomes if outcome.value] == [b"[0]", b"[0,1]", b"[4]", b"[4,5]"]


KEEPS = """
import os, sys
seen, (readable, writable) = [], os.pipe()
os.set_blocking(readable, False)
def f(x):
    os.write(writable, bytes([x]))
    seen.append(x)
    if x == 7: os._exit(1)
    if x == 8: raise KeyError(x)
    return [seen, list(os.read(readable, 99))]
"""
ONE_CALL = st.builds(
    lambda x, place: Call(f"f({x})", place=place), st.integers(5, 9), st.sampled_from([Place.PROGRAM, Place.HARNESS])
)


@given(calls=st.lists(ONE_CALL, max_size=5))
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_calls_in_isolation_answer_as_if_there_were_no_others(sandbox: Sandbox, calls: list[Call]) -> None:
    job = Job(KEEPS, "f", tuple(calls), isolates_calls=True)
    together, *alone = sandbox.run([job, *(replace(job, calls=(call,)) for call in calls)])
    assert list(together.outcomes) == [outcome for report in alone for outcome in report.outcomes]
    assert list(together.entry_point_calls) == [made for report in alone for made in report.entry_point_calls]


def test_calls_in_isolation_that_hang_use_up_the_restarts_of_one_job(sandbox: Sandbox) -> None:
    program = "def f(x):\n  while x > 1: pass\n  return x\n"
    limits = Limits(cpu_s=0.2, max_restarts=1)
    job = Job(program, "f", tuple(Call(f"f({n})") for n in (1, 2, 3, 1)), limits=limits, isolates_calls=True)
    (report,) = sandbox.run([job])
    assert [outcome.kind.value for outcome in report.outcomes] == ["value", "time_limit", "time_limit", "not_run"]


@pytest.mark.parametrize(("factor", "is_enough"), [(16.0, True), (2.0, False)])
def test_loading_before_each_call_has_a_time_of_its_own(sandbox: Sandbox, factor: float, is_enough: bool) -> None:
    burn = "import time\ndef burn(s):\n  end = time.process_time() + s\n  while time.process_time() < end: pass\n"
    program, limits = f"{burn}burn(0.05)\ndef f(x):\n  burn(0.03)\n  return x\n", Limits(cpu_s=0.1, job_factor=factor)
    job = Job(program, "f", tuple(Call(f"f({n})") for n in range(25)), limits=limits, isolates_calls=True)
    (report,) = sandbox.run([job])
    ended = [(outcome.kind.value, outcome.error_type) for outcome in report.outcomes]
    assert ended[:3] == [("value", "")] * 3
    assert set(ended[6:]) == {("value", "") if is_enough else ("not_run", LOADED_TOO_OFTEN)}
