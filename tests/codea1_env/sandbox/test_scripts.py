"""Programs on standard input in the local sandbox: a process of its own for each input, the output and the exit status
decide."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codea1_env.facts.problem_kinds import Script
from codea1_env.facts.verdicts import Outcome, OutcomeKind
from codea1_env.sandbox import Sandbox
from codea1_env.sandbox.interface import Call, Job, Limits, Place
from codea1_env.values import encode

ADD = "print(sum(map(int, input().split())))\n"
LIMITS = Limits(cpu_s=0.5, wall_s=1.0, value_bytes=4096)


def outcomes_of(
    sandbox: Sandbox, program: str, *calls: Call | str, form: Script = Script.WORDS, limits: Limits = LIMITS
) -> tuple[Outcome, ...]:
    made = tuple(Call(call) if isinstance(call, str) else call for call in calls)
    (report,) = sandbox.run([Job(program, "run", made, limits=limits, script=form)])
    return report.outcomes


RIGHT = {
    "input": ADD,
    "read": "import sys\nprint(sum(map(int, sys.stdin.read().split())))",
    "lines without their last character": "import sys\nprint(sum(map(int, sys.stdin.readline()[:-1].split())))",
    "bytes": "import sys\nsys.stdout.buffer.write(b'%d' % sum(map(int, sys.stdin.buffer.read().split())))",
    "descriptors": "import os\nos.write(1, b'%d' % sum(map(int, os.read(0, 99).split())))\nos._exit(0)",
    "open": "print(sum(map(int, open(0).read().split())))",
    "main": f"def main():\n    {ADD}\nif __name__ == '__main__':\n    main()",
    "exit": f"{ADD}exit()",
    "quit": f"{ADD}quit(0)",
    "status 0": f"import sys\n{ADD}sys.exit(0)",
    "status 256, of which the system keeps eight bits": f"{ADD}raise SystemExit(256)",
    "thread": f"import threading\ndef main():\n    {ADD}\nthreading.Timer(0.01, main).start()",
    "exit handler": "import atexit\natexit.register(lambda: print(sum(map(int, input().split()))))",
    "a stream that is not closed": "out = open(1, 'w')\nout.write(str(sum(map(int, input().split()))))",
    "standard error": f"import sys\nprint('x' * 9999, file=sys.stderr)\n{ADD}",
    "white space": "import sys\nsys.stdout.write('\\r\\n \\t%d\\r\\n\\n' % sum(map(int, input().split())))",
    "names of our own": f"run = 5\nchannel = None\n{ADD}",
    "patched streams": f"import sys\nsys.__stdout__ = sys.__stdin__ = None\n{ADD}",
}

FAILING = {
    "status": (f"{ADD}raise SystemExit(3)", OutcomeKind.ERROR, "SystemExit: 3"),
    "message": (f"{ADD}raise SystemExit('no')", OutcomeKind.ERROR, "SystemExit: no"),
    "os status": (f"{ADD}sys.stdout.flush()\nos._exit(1)", OutcomeKind.ERROR, "SystemExit: exit status 1"),
    "exception": (f"{ADD}1 / 0", OutcomeKind.ERROR, "ZeroDivisionError: division by zero"),
    "too little input": (f"{ADD}input()", OutcomeKind.ERROR, "EOFError: EOF when reading a line"),
    "no text": ("import sys\nsys.stdout.buffer.write(b'\\xff')", OutcomeKind.ERROR, "UnicodeDecodeError"),
    "flood": ("while True:\n    print('x' * 500)", OutcomeKind.OUTPUT_LIMIT, "printed more than 4,096 bytes"),
    "loop": (f"{ADD}while True:\n    pass", OutcomeKind.TIME_LIMIT, "more than 0.5 s"),
    "sleep": (f"{ADD}import time\ntime.sleep(60)", OutcomeKind.TIME_LIMIT, "Slept"),
    "signal": (f"{ADD}import os\nos.abort()", OutcomeKind.CRASHED, "SIGABRT"),
    "memory": (f"{ADD}x = bytearray(10**10)", OutcomeKind.MEMORY_LIMIT, "MemoryError"),
    "a closed output": (f"{ADD}import os\nos.close(1)", OutcomeKind.ERROR, "SystemExit: exit status 120"),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_program_reads_and_writes_as_it_likes(sandbox: Sandbox, name: str) -> None:
    arguments = Call(arguments=encode((("30 4\n",), {})))
    found = outcomes_of(sandbox, RIGHT[name], "run('3 4')", arguments, "run('-1 -1\\r\\n')")
    assert [outcome.value for outcome in found] == [b'"7"', b'"34"', b'"-2"'], found


@pytest.mark.slow
@pytest.mark.parametrize("name", FAILING)
def test_a_run_that_does_not_end_well_has_failed_and_the_next_run_is_not_harmed(sandbox: Sandbox, name: str) -> None:
    program, kind, summary = FAILING[name]
    first, second = outcomes_of(sandbox, f"import os, sys\n{program}", "run('3 4')", "run('5 6')")
    assert first.kind is second.kind is kind
    assert first.summary.startswith(summary), first


def test_an_input_is_not_in_the_next_process_and_no_state_remains(sandbox: Sandbox) -> None:
    program = "import builtins\nseen = getattr(builtins, 'seen', 0)\nbuiltins.seen = seen + 1\nprint(seen, input())"
    assert [each.value for each in outcomes_of(sandbox, program, "run('a')", "run('b')")] == [b'"0 a"', b'"0 b"']


def test_an_input_longer_than_a_pipe_is_read_or_left(sandbox: Sandbox) -> None:
    call = Call(arguments=encode(((" ".join(["1"] * 200_000),), {}), max_bytes=1 << 20))
    for program in (RIGHT["read"], RIGHT["bytes"], "print(200_000)"):
        assert outcomes_of(sandbox, program, call)[0].value == b'"200000"'


@pytest.mark.parametrize(
    ("program", "printed"),
    [("print('ab ' * 500_000)", "ab " * 500_000), ("print(' a')\nprint('b  c')", " a\nb  c")],
    ids=["long", "spaces"],
)
def test_an_exact_output_is_whole_and_keeps_its_lines(sandbox: Sandbox, program: str, printed: str) -> None:
    limits = Limits(value_bytes=1 << 21)
    (found,) = outcomes_of(sandbox, program, "run('')", form=Script.EXACT, limits=limits)
    assert found.value == encode(printed, max_bytes=1 << 21)


def test_a_harness_calls_the_program_as_often_as_it_likes(sandbox: Sandbox) -> None:
    place = Place.HARNESS
    calls = (
        Call("int(run('1 2')) + int(run('3 4'))", place=place),
        Call("run('5 6')"),
        Call("run('x')", place=place),
        Call("[run(text) for text in ('1', '2')]", place=place),
        Call("run(7)", place=place),
    )
    (report,) = sandbox.run([Job(ADD, "run", calls, limits=LIMITS, script=Script.WORDS)])
    total, direct, failed, both, no_text = report.outcomes
    assert (total.value, direct.value, both.value) == (b"10", b'"11"', encode(["1", "2"]))
    assert failed.kind is OutcomeKind.ERROR
    assert failed.error_type == "ValueError"
    assert no_text.error_type == "TypeError"
    assert [len(record) for record in report.entry_point_calls] == [2, 0, 1, 2, 1]


@pytest.mark.slow
def test_a_harness_goes_on_after_a_run_that_hangs_floods_or_crashes(sandbox: Sandbox) -> None:
    program = (
        "what = input()\nif what == 'hang':\n    while True: pass\nif what == 'flood':\n    print('x' * 9999)\n"
        "if what == 'crash':\n    import os; os.abort()\nprint(what)"
    )
    calls = [Call(f"run({what!r})", place=Place.HARNESS) for what in ("a", "hang", "b", "flood", "crash", "c")]
    kinds = [outcome.kind for outcome in outcomes_of(sandbox, program, *calls)]
    assert [kind.value for kind in kinds] == ["value", "time_limit", "value", "output_limit", "crashed", "value"]


ARGUMENTS = {
    "argv": "print(sys.argv)",
    "parser": "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--n', type=int, default=1)\n"
    "parser.add_argument('words', nargs='*')\nprint(parser.parse_args())",
    "standard input": "print(sys.stdin.read(), sys.argv[1:])",
    "changed": "sys.argv.append('x')\nprint(len(sys.argv))",
    "bytes": "print([os.fsencode(word) for word in sys.argv[1:]])",
    "status": "sys.exit(len(sys.argv) - 1)",
}


@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.parametrize("given", [(), ("3", "4"), ("--n", "2", ""), ("a b", "\u00e9\n", "--", "\\"), ("x" * 100_000,)])
def test_arguments_are_those_of_plain_python(sandbox: Sandbox, name: str, given: Any, tmp_path: Path) -> None:
    program = f"import os, sys\n{ARGUMENTS[name]}\n"
    (tmp_path / "program.py").write_text(program)
    command = [sys.executable, "-S", "program.py", *given]
    plain = subprocess.run(command, input=b"", capture_output=True, check=False, cwd=tmp_path)
    direct = Call(arguments=encode((given, {}), max_bytes=1 << 20))
    harness = Call(f"run(*{given!r})", place=Place.HARNESS)
    limits = replace(LIMITS, value_bytes=1 << 20)
    form = Script.COMMAND_LINE_EXACT
    for found in outcomes_of(sandbox, program, direct, harness, form=form, limits=limits):
        assert (found.kind is OutcomeKind.VALUE) == (plain.returncode == 0), (found, plain)
        if found.value is not None:
            assert found.value == encode(plain.stdout.decode().rstrip("\n"), max_bytes=1 << 20)


def test_arguments_are_short_texts_and_no_state_remains(sandbox: Sandbox) -> None:
    calls = ["run(1)", "run('a\\0')", "run('\\ud800')", "run(x='a')", "run('x' * 131_072)", "run('a')", "run('b', 'c')"]
    program = "import sys\nprint(*sys.argv[1:])\nsys.argv[:] = ['d']"
    *refused, first, second = outcomes_of(sandbox, program, *calls, form=Script.COMMAND_LINE_WORDS)
    types = ["TypeError", "ValueError", "UnicodeEncodeError", "TypeError", "ValueError"]
    assert [outcome.error_type for outcome in refused] == types
    assert (first.value, second.value) == (b'"a"', b'"b c"')


def test_loading_only_compiles(sandbox: Sandbox) -> None:
    programs = ["raise SystemExit(1)", "while True: pass", "print(", ""]
    reports = sandbox.run([Job(program, "run", limits=LIMITS, script=Script.WORDS) for program in programs])
    assert [report.loaded for report in reports] == [True, True, False, True]
    assert reports[2].load.error_type == "SyntaxError"


@pytest.mark.slow
def test_many_hanging_runs_end_the_job(sandbox: Sandbox) -> None:
    calls = [f"run('{number}')" for number in range(8)]
    kinds = [outcome.kind for outcome in outcomes_of(sandbox, "while True: pass", *calls)]
    assert kinds == [OutcomeKind.TIME_LIMIT] * 4 + [OutcomeKind.NOT_RUN] * 4


@pytest.mark.parametrize(
    "forged",
    [
        "sys.stdout.buffer.write(frame_bytes(b'V', 0, b'\"7\"'))",
        "os.write(1, frame_bytes(b'V', 0, b'\"7\"'))",
        "os.write(1, end_note(b'V', b'\"7\"', 0))\nos._exit(1)",
        "os.write(1, end_note(b'V', b'\"7\"', 0))",
        "[os.write(fd, frame_bytes(b'V', 0, b'\"7\"')) for fd in (0, 2, 3, 4, 5)]",
    ],
)
def test_frames_in_the_output_are_output(sandbox: Sandbox, forged: str) -> None:
    head = (
        "import os, struct, sys\n"
        "def frame_bytes(tag, call, payload):\n    return struct.pack('<cIQI', tag, call, 0, len(payload)) + payload\n"
        "def end_note(tag, payload, call):\n    note = frame_bytes(tag, call, payload)\n"
        "    return note + struct.pack('<I', len(note))\n"
    )
    (found,) = outcomes_of(sandbox, head + forged, "run('3 4')")
    assert found.value != b'"7"'


def test_a_forged_note_states_an_error_at_most(sandbox: Sandbox) -> None:
    note = "import json, os, struct\npayload = json.dumps(['Mine', 'Mine', 'hello', False]).encode()\n"
    note += "frame = struct.pack('<cIQI', b'E', 0, 0, len(payload)) + payload\n"
    note += "os.write(1, b'7' + frame + struct.pack('<I', len(frame)))\nos._exit(1)"
    (found,) = outcomes_of(sandbox, note, "run('')")
    assert found.summary == "Mine: hello"


ENDINGS = {
    "carriage returns": "print([r, sys.stdin.read(), open(0, newline='').read()])",
    "names of the streams": "print(sys.stdin, sys.stdout)",
    "built-in names": "print(type(__builtins__).__name__, __builtins__.len([r]))",
    "what was shown last": "class A:\n  def __del__(self): print('gone')\nsys.displayhook(A)\na = A()",
    "__del__ that imports": "class A:\n  def __del__(self):\n    import json\n    print(json.dumps(r))\na = A()",
    "__del__ that looks": "class A:\n  def __del__(self): print(sys.argv, sys.path, sys.meta_path, len(sys.modules))\n"
    "a = A()",
    "own class": "class Out:\n  def __init__(self): self.parts = []\n  def write(self, t): self.parts.append(t)\n"
    "  def flush(self): sys.__stdout__.write(''.join(self.parts)); self.parts.clear()\nsys.stdout = Out()\nprint(r)",
    "own class without flush": "class Out:\n  def write(self, t): sys.__stdout__.write(t)\nsys.stdout = Out()\n"
    "print(r)",
    "own class whose flush fails": "class Out:\n  write = sys.stdout.write\n  def flush(self): 1 / 0\n"
    "sys.stdout = Out()\nprint(r)",
    "fast output": "import io\nclass Fast(io.BytesIO):\n  def flush(self):\n    os.write(1, self.getvalue())\n"
    "    self.truncate(0)\nsys.stdout = io.TextIOWrapper(Fast(), write_through=True)\nprint(r)",
    "detached": "import io\nsys.stdout = io.TextIOWrapper(sys.stdout.detach())\nprint(r)",
    "a wrapper that is never flushed": "import io\nout = io.TextIOWrapper(sys.stdout.buffer)\nout.write(str(r))",
    "another file": "sys.stdout = open('/dev/stdout', 'w')\nprint(r)",
    "no stream": "print(r)\nsys.stdout = None",
    "a deleted stream": "print(r)\ndel sys.stdout",
    "a closed stream": "print(r)\nsys.stdout.close()",
    "__del__": "class A:\n  def __del__(self): sys.stdout.write(str(r))\na = A()",
    "__del__ after an exit": "class A:\n  def __del__(self): print(r)\na = A()\nsys.exit()",
    "__del__ in a cycle": "class A:\n  def __del__(self): print(r)\na = A()\na.a = a",
    "__del__ in a cycle and another file": "class A:\n  def __del__(self): print(r)\na = A()\na.a = a\ndel a\n"
    "sys.stdout = open(1, 'w')\nprint(r)",
    "__del__ without globals": "class A:\n  def __init__(self, write): self.write = write\n"
    "  def __del__(self): self.write('7')\nA.a = A(sys.stdout.write)",
    "__del__ that fails": "class A:\n  def __del__(self): 1 / 0\na = A()\nprint(r)",
    "held by another module": "import math\nclass A:\n  def __del__(self): sys.stdout.write(str(r))\n"
    "math.a = A()\ndel math.a",
    "finally of a generator": "def g():\n  try: yield\n  finally: print(r)\nx = g()\nnext(x)",
    "context of a generator": "import contextlib\n@contextlib.contextmanager\ndef g():\n  try: yield\n"
    "  finally: print(r)\nx = g()\nx.__enter__()",
    "excepthook that ends": "def hook(*_):\n  print(r)\n  sys.stdout.flush()\n  os._exit(0)\n"
    "sys.excepthook = hook\nraise KeyError",
    "excepthook that exits": "def hook(*_):\n  print(r)\n  sys.exit(0)\nsys.excepthook = hook\nraise KeyError",
    "excepthook that returns": "sys.excepthook = lambda *_: print(r)\nraise KeyError",
    "excepthook that fails": "sys.excepthook = lambda *_: 1 / 0\nprint(r)\nraise KeyError",
    "no excepthook": "del sys.excepthook\nprint(r)\nraise KeyError",
    "excepthook and an exit": "sys.excepthook = lambda *_: os._exit(9)\nprint(r)\nsys.exit(0)",
    "an exit handler that fails": "import atexit\natexit.register(lambda: 1 / 0)\nprint(r)",
    "an exit handler that exits": "import atexit\natexit.register(lambda: sys.exit(4))\nprint(r)",
    "a closed descriptor": "print(r)\nsys.stdout.flush()\nos.close(1)\nraise KeyError",
    "standard input by its name": "print(r)\nprint(open('/dev/stdin').read())",
    "the null device": "print(r)\nprint('x', file=open('/dev/null', 'w'))",
    "own class that writes as it goes": "class Out:\n  def __init__(self): self.parts = []\n  def flush(self): pass\n"
    "  def write(self, t): self.parts.append(t)\n  def __del__(self): sys.__stdout__.write(''.join(self.parts))\n"
    "sys.stdout = Out()\nprint(r)",
    "a huge exit code": "print(r)\nsys.exit(2**70)",
    "an exit code that is a class's": "class E(SystemExit):\n  code = property(lambda self: 1 / 0)\nprint(r)\nraise E",
    "recursion to the limit": "def down(n): return n and down(n - 1)\nprint(r, down(996))",
    "a limit of the stack": "import resource\nresource.setrlimit(resource.RLIMIT_STACK, (1 << 26, 1 << 26))\nprint(r)",
}


@pytest.mark.parametrize("name", ENDINGS)
def test_a_script_ends_as_it_ends_in_plain_python(sandbox: Sandbox, name: str, tmp_path: Path) -> None:
    head = "\ufeffimport os, sys\nr = sum(map(int, input().split()))\n"
    script = tmp_path / "program.py"
    script.write_text(head + ENDINGS[name])
    plain = subprocess.run([sys.executable, "-S", script], input=b"3 4\na\rb\n", capture_output=True, check=False)
    (found,) = outcomes_of(sandbox, head + ENDINGS[name], "run('3 4\\na\\rb')")
    assert (found.kind is OutcomeKind.VALUE) == (plain.returncode == 0), (found, plain)
    if found.value is not None:
        assert found.value == encode(b" ".join(plain.stdout.split()).decode())
