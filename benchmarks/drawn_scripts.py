"""Programs on standard input that read, print and end in many ways, and tests of what they print.

A program has four parts: how it reads all of its input, what it computes, how it prints that, and how it ends. The
solution of a problem reads, prints and ends in the usual way.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial

from drawn import Draw, Program, Subject, Test, drawn_subjects, holding
from plain_python import Ended, Mode, PlainPython

from codea1_env.facts.answers import OutputForm
from codea1_env.facts.problem_kinds import RUN, ProblemKind
from codea1_env.problems.problem import Problem

_PROGRAMS_PER_PROBLEM, _PLAIN_TESTS, _OTHER_TESTS = 8, 2, 1
_N_INPUTS = 3
_USUAL = 0.5
"""Share of the parts of a program that are the solution's."""
_WRONG = 0.15
"""Share of the programs that compute something else."""

_READ: dict[str, str] = {
    "read": "t = sys.stdin.read()",
    "lines": "t = ''.join(sys.stdin)",
    "readlines": "t = ''.join(sys.stdin.readlines())",
    "readline": "t = ''.join(iter(sys.stdin.readline, ''))",
    "input": "t = ''\ntry:\n    while True:\n        t += input() + '\\n'\nexcept EOFError:\n    pass",
    "one input": "t = input() + '\\n'",
    "inputs until a blank line": "t = ''.join(line + '\\n' for line in iter(input, ''))",
    "prompt": "t = input('? ') + '\\n' + sys.stdin.read()",
    "bytes": "t = sys.stdin.buffer.read().decode()",
    "lines of bytes": "t = b''.join(sys.stdin.buffer).decode()",
    "raw": "t = sys.stdin.buffer.raw.read(1 << 20).decode()",
    "open(0)": "t = open(0).read()",
    "open(0) without translation": "t = open(0, newline='').read()",
    "open(0) of bytes": "t = open(0, 'rb').read().decode()",
    "a name": "t = open('/dev/stdin').read()",
    "os.read": "t = b''.join(iter(lambda: os.read(0, 7), b'')).decode()",
    "the size": "t = os.read(0, os.fstat(0).st_size or 1 << 20).decode()",
    "fileinput": "import fileinput\nt = ''.join(fileinput.input())",
    "a line and the rest": "t = sys.stdin.readline()\nt += sys.stdin.read()",
    "an input and the rest": "t = input() + '\\n'\nt += ''.join(sys.stdin)",
    "next": "t = next(sys.stdin, '')\nt += sys.stdin.read()",
    "characters": "t = ''\nwhile c := sys.stdin.read(1):\n    t += c",
    "own text": "sys.stdin = io.StringIO(sys.stdin.read())\nt = ''.join(sys.stdin)",
    "own stream": "sys.stdin = io.TextIOWrapper(sys.stdin.buffer, newline='')\nt = sys.stdin.read()",
    "own input": "input = iter(sys.stdin.buffer.readline, b'').__next__\nt = ''\ntry:\n    while True:\n"
    "        t += input().decode()\nexcept StopIteration:\n    pass",
    "reconfigured": "sys.stdin.reconfigure(encoding='utf-8', newline='\\n')\nt = sys.stdin.read()",
    "other encoding": "sys.stdin.reconfigure(encoding='latin-1')\nt = sys.stdin.read()",
    "surrogates": "sys.stdin.reconfigure(encoding='ascii', errors='surrogateescape')\n"
    "t = sys.stdin.read().encode('ascii', 'surrogateescape').decode()",
    "detached": "t = sys.stdin.detach().read().decode()",
    "original": "t = sys.__stdin__.read()",
    "peek": "sys.stdin.buffer.peek(1)\nt = sys.stdin.read()",
    "select": "import select\nselect.select([0], [], [], 1)\nt = sys.stdin.read()",
    "a thread": "import threading\nfound = []\n"
    "reader = threading.Thread(target=lambda: found.append(sys.stdin.read()))\n"
    "reader.start()\nreader.join()\n(t,) = found",
    "without a terminal": "t = '' if sys.stdin.isatty() or sys.stdin.seekable() else sys.stdin.read()",
    "facts of the stream": "t = sys.stdin.read()\nassert (sys.stdin.name, sys.stdin.mode, sys.stdin.encoding)"
    " == ('<stdin>', 'r', 'utf-8')",
    "twice": "t = sys.stdin.read() + sys.stdin.read()",
    "after the end": "t = sys.stdin.read()\ntry:\n    input()\nexcept EOFError as error:\n    assert str(error)",
    "a generator": "def lines():\n    yield from sys.stdin\nt = ''.join(lines())",
    "enumerated": "t = ''.join(line for _, line in enumerate(sys.stdin))",
    "closed": "with sys.stdin:\n    t = sys.stdin.read()",
    "main": "def main():\n    global t\n    t = sys.stdin.read()\nif __name__ == '__main__':\n    main()",
    "arguments": "t = sys.stdin.read() if len(sys.argv) == 1 else ''",
    "main by name": "import __main__\n__main__.t = sys.stdin.read()",
}

_COMPUTE: dict[str, str] = {
    "sum": "out = [sum(map(int, t.split()))]",
    "words": "out = t.split()",
    "lines": "out = t.splitlines()",
    "breaks": "out = t.split('\\n')",
    "upper": "out = [t.upper()]",
    "reversed": "out = [t[::-1]]",
    "length": "out = [len(t)]",
    "repr": "out = [repr(t)]",
    "codes": "out = list(map(ord, t))",
    "bytes": "out = [t.encode().hex()]",
    "counted": "import collections\nout = sorted(collections.Counter(t.split()).items())",
    "sorted": "out = sorted(t.split(), key=len)",
    "set": "out = sorted(set(t))",
    "first": "out = [t[:1]]",
    "nothing": "out = []",
    "blanks": "out = ['', ' ', '', t, '']",
    "wide": "out = ['é', '\\u2003', '日本', '\\x1c', '\\xa0', 'a\\x85b', '\\u2028', t]",
    "often": "out = [len(t)] * 2000",
    "truth": "out = [bool(t), None, 1.5, 2j, (1,), {'a': t[:1]}]",
    "class": "class P:\n    def __init__(self, n): self.n = n\n    def __str__(self): return f'P{self.n}'\n"
    "out = [P(len(t))]",
    "pickled": "import pickle\nclass P:\n    def __init__(self, n): self.n = n\n"
    "out = [pickle.loads(pickle.dumps(P(len(t)))).n]",
    "data class": "import dataclasses\n@dataclasses.dataclass\nclass P:\n    n: int\nout = [P(len(t))]",
    "recursive": "def down(n): return n and 1 + down(n - 1)\nout = [down(900)]",
    "deeply recursive": "sys.setrecursionlimit(9000)\ndef down(n): return n and 1 + down(n - 1)\nout = [down(5000)]",
    "event loop": "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return len(t)\n"
    "out = [asyncio.run(f())]",
    "random": "import random\nrandom.seed(1)\nout = [random.random(), len(t)]",
    "hash": "out = [hash('a') == hash('a'), list({'x', 'y', 'z'})]",
    "limits": "out = [sys.getrecursionlimit() >= 1000, sys.maxsize, sys.byteorder, sys.flags.optimize]",
    "module": "out = [__name__, __doc__, __spec__, __package__, sorted(k for k in globals() if k.startswith('_x'))]",
    "names": "out = [sys.modules['__main__'].__name__, vars() is globals(), type(__builtins__).__name__]",
    "builtins": "out = [__builtins__.len(t), hasattr(__builtins__, 'raw_input')]",
    "evaluated": "out = [eval('len(t)')]\nexec('out.append(1)')",
    "big": "out = [10 ** 3000, len(t)]",
    "digits": "out = [str(10 ** 5000)]",
    "numpy": "import numpy as np\nout = [np.array([len(t), 2]), np.float64(1.5)]",
    "decimal": "from decimal import Decimal\nout = [Decimal(len(t)) / 3]",
    "time": "import time, datetime\ntime.sleep(0.001)\nout = [time.time() > 1, datetime.date(2020, 1, 2)]",
    "warned": "import warnings\nwarnings.warn('x')\nout = [len(t)]",
    "logged": "import logging\nlogging.warning('x')\nout = [len(t)]",
}

_PRINT: dict[str, str] = {
    "print": "for o in out: print(o)",
    "star": "print(*out)",
    "star, lines": "print(*out, sep='\\n')",
    "star, nothing": "print(*out, sep='')",
    "end": "for o in out: print(o, end=' ')",
    "end, lines": "for o in out: print(o, end=' \\n')",
    "tabs": "print(*out, sep='\\t', end='\\r\\n')",
    "no end": "print(*out, sep='\\n', end='')",
    "flush": "for o in out: print(o, flush=True)",
    "options from a dict": "print(*out, **{'sep': '\\n', 'end': '\\n\\n\\n'})",
    "wrong option": "print(*out, sep=1)",
    "None for options": "print(*out, sep=None, end=None, file=None)",
    "write": "sys.stdout.write('\\n'.join(map(str, out)))",
    "writelines": "sys.stdout.writelines(f'{o}\\n' for o in out)",
    "buffer": "sys.stdout.buffer.write('\\n'.join(map(str, out)).encode())",
    "os.write": "os.write(1, '\\n'.join(map(str, out)).encode())",
    "list": "print(out)",
    "repr": "for o in out: print(repr(o))",
    "format": "for o in out: print('%s' % (o,))",
    "standard error": "print(*out, file=sys.stderr)",
    "both streams": "for o in out: print(o); print(o, file=sys.stderr)",
    "mixed": "for o in out:\n    print(o)\n    sys.stdout.buffer.write(b'-\\n')",
    "mixed with the descriptor": "for o in out:\n    print(o)\n    os.write(1, b'-\\n')",
    "mixed and flushed": "for o in out:\n    print(o)\n    sys.stdout.flush()\n    sys.stdout.buffer.write(b'-\\n')",
    "partial": "import functools\nprint = functools.partial(print, flush=True)\nfor o in out: print(o)",
    "own print": "def print(*args, old=print): old(*args, sep='\\n')\nprint(*out)",
    "builtin replaced": "import builtins\nold = print\nbuiltins.print = lambda *a: old(*a, sep='|')\nprint(*out)",
    "redirected": "import contextlib\nwith contextlib.redirect_stdout(io.StringIO()) as held:\n    print(*out)\n"
    "print(held.getvalue())",
    "redirected and lost": "import contextlib\nwith contextlib.redirect_stdout(io.StringIO()):\n    print(*out)",
    "own class": "class Out:\n    def write(self, text): sys.__stdout__.write(text.upper())\n"
    "    def flush(self): pass\n"
    "sys.stdout = Out()\nprint(*out)",
    "own class without flush": "class Out:\n    write = sys.stdout.write\nsys.stdout = Out()\nprint(*out)",
    "own class flushed at the end": "class Out(io.StringIO):\n    def flush(self):\n        if self.getvalue():\n"
    "            os.write(1, self.getvalue().encode())\n        self.seek(0); self.truncate()\n"
    "sys.stdout = Out()\nprint(*out)",
    "own text": "sys.stdout = io.StringIO()\nprint(*out)\nsys.__stdout__.write(sys.stdout.getvalue())",
    "own text, lost": "sys.stdout = io.StringIO()\nprint(*out)",
    "own stream": "sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8', write_through=True)\nprint(*out)",
    "own stream over a detached one": "sys.stdout = io.TextIOWrapper(sys.stdout.detach(), 'utf-8')\nprint(*out)",
    "own stream that is dropped": "other = io.TextIOWrapper(sys.stdout.buffer, 'utf-8')\nother.write(str(out))\n"
    "del other",
    "own stream that is kept": "other = io.TextIOWrapper(sys.stdout.buffer, 'utf-8')\nother.write(str(out))",
    "opened": "sys.stdout = open(1, 'w')\nprint(*out)",
    "opened and kept open": "other = open(1, 'w', closefd=False)\nprint(*out, file=other)\nprint('-')",
    "opened by name": "with open('/dev/stdout', 'w') as other:\n    print(*out, file=other)",
    "a copy of the descriptor": "sys.stdout = os.fdopen(os.dup(1), 'w')\nprint(*out)",
    "unbuffered": "sys.stdout = open(1, 'wb', buffering=0)\nsys.stdout.write(str(out).encode())",
    "reconfigured": "sys.stdout.reconfigure(line_buffering=True, newline='\\r\\n')\nprint(*out)",
    "other encoding": "sys.stdout.reconfigure(encoding='utf-16')\nprint(*out)",
    "ascii": "sys.stdout.reconfigure(encoding='ascii', errors='backslashreplace')\nprint(*out)",
    "latin": "sys.stdout.reconfigure(encoding='latin-1', errors='replace')\nprint(*out)",
    "broken bytes": "print(*out, flush=True)\nsys.stdout.buffer.write(b'\\xff')",
    "surrogate": "print(*out)\nprint('\\ud800')",
    "nul": "print(*out, sep='\\0')",
    "byte order mark": "print('\\ufeff', *out)",
    "odd blanks": "print(*out, sep='\\x0b\\x0c', end='\\x1f')",
    "wide blanks": "print(*out, sep='\\u2003')",
    "carriage returns": "print(*out, sep='\\r', end='\\r')",
    "display hook": "for o in out: sys.displayhook(o)",
    "pprint": "import pprint\npprint.pprint(out)",
    "a thread": "import threading\nthreading.Thread(target=print, args=out).start()",
    "threads": "import threading\nfor o in out:\n    it = threading.Thread(target=print, args=(o,))\n    it.start()\n"
    "    it.join()",
    "a pool": "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(2) as pool:\n"
    "    for line in pool.map(str, out): print(line)",
    "facts of the stream": "print(sys.stdout.name, sys.stdout.mode, sys.stdout.encoding, sys.stdout.isatty(),"
    " sys.stdout.line_buffering, sys.stdout.errors, sys.stdout.fileno(), sys.stdout.newlines)",
    "facts of standard error": "print(sys.stderr.name, sys.stderr.errors, sys.stderr.line_buffering)",
    "the stream": "print(sys.stdin, sys.stdout, sys.stderr)",
    "write's result": "print(sys.stdout.write('abc'), *out)",
    "is the original": "print(sys.stdout is sys.__stdout__, sys.stdin is sys.__stdin__, *out)",
    "traceback": "import traceback\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    traceback.print_exc()\nprint(*out)",
    "traceback on standard output": "import traceback\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n"
    "    traceback.print_exc(limit=0, file=sys.stdout)\nprint(*out)",
    "logging": "import logging\nlogging.basicConfig(stream=sys.stdout, format='%(message)s', level=0)\n"
    "for o in out: logging.info(o)",
    "a closed stream": "print(*out)\nsys.stdout.close()\nprint('x')",
    "help": "import pydoc\nprint(*out, pydoc.plain('x'))",
    "until broken": "for o in out:\n    print(o)\n    if not o: break\nelse:\n    print('all')",
}

_END: dict[str, str] = {
    "end": "",
    **{  # `()` and `(0,)` are left out: whether they are the arguments of SystemExit depends on Python's version
        f"exit {code}": f"sys.exit({code})"
        for code in (
            "",
            "0",
            "None",
            "False",
            "True",
            "1",
            "2",
            "'0'",
            "''",
            "0.0",
            "[]",
            "(0, 1)",
            "256",
            "257",
            "-1",
            "2 ** 32",
            "2 ** 64",
            "-2 ** 70",
        )
    },
    "built-in exit": "exit()",
    "built-in exit with a status": "exit(3)",
    "built-in quit": "quit(0)",
    "built-in quit with a text": "quit('bye')",
    "class": "raise SystemExit",
    "number": "raise SystemExit(0)",
    "own exit": "class E(SystemExit): pass\nraise E(0)",
    "own exit, own status": "class E(SystemExit):\n    code = 0\nraise E(5)",
    "exit in finally": "try:\n    1 / 0\nfinally:\n    sys.exit(0)",
    "exit while handling": "try:\n    1 / 0\nexcept ZeroDivisionError:\n    sys.exit()",
    "exit that is caught": "try:\n    sys.exit(4)\nexcept:\n    print('caught')",
    "exit that is caught by its class": "try:\n    sys.exit(4)\nexcept SystemExit as e:\n    print(e.code, e.args)",
    "exit is no Exception": "try:\n    sys.exit(0)\nexcept Exception:\n    print('no')",
    "finally": "try:\n    sys.exit(0)\nfinally:\n    print('last')",
    "os": "sys.stdout.flush()\nos._exit(0)",
    "os, lost": "os._exit(0)",
    "os, status": "sys.stdout.flush()\nos._exit(2)",
    "error": "raise ValueError('x')",
    "division": "1 / 0",
    "assertion": "assert not out, 'x'",
    "interrupt": "raise KeyboardInterrupt",
    "base": "raise BaseException",
    "stop": "raise StopIteration",
    "generator exit": "raise GeneratorExit",
    "group": "raise ExceptionGroup('x', [ValueError()])",
    "broken message": "class E(Exception):\n    def __str__(self): 1 / 0\nraise E",
    "name": "undefined_name",
    "import": "import no_such_module",
    "memory": "raise MemoryError",
    "recursion": "def f(): f()\nf()",
    "signal": "import signal\nsignal.raise_signal(signal.SIGTERM)",
    "handled signal": "import signal\nsignal.signal(signal.SIGUSR1, lambda *_: print('got'))\n"
    "signal.raise_signal(signal.SIGUSR1)",
    "interrupt by a signal": "import signal\ntry:\n    signal.raise_signal(signal.SIGINT)\n"
    "except KeyboardInterrupt:\n"
    "    print('stopped')",
    "alarm": "import signal\nsignal.signal(signal.SIGALRM, lambda *_: sys.exit(0))\nsignal.setitimer(0, 0.01)\n"
    "signal.pause()",
    "abort": "sys.stdout.flush()\nos.abort()",
    "exit handler": "import atexit\natexit.register(print, 'bye')",
    "exit handlers": "import atexit\nfor n in range(3): atexit.register(print, n)",
    "exit handler that fails": "import atexit\natexit.register(lambda: 1 / 0)",
    "exit handler that exits": "import atexit\natexit.register(sys.exit, 3)",
    "exit handler after an error": "import atexit\natexit.register(os._exit, 0)\nprint('', flush=True)\n1 / 0",
    "exit handler of an exit handler": "import atexit\natexit.register(lambda: atexit.register(print, 'late'))",
    "unregistered": "import atexit\natexit.register(print, 'x')\natexit.unregister(print)",
    "finaliser": "class A:\n    def __del__(self): print('gone')\na = A()",
    "finalisers": "class A:\n    def __init__(self, n): self.n = n\n    def __del__(self): print('gone', self.n)\n"
    "a, b, _c, D = A(1), A(2), A(3), A(4)",
    "finaliser with names": "class A:\n    def __del__(self): print(other, len(out))\na = A()\nother = 5",
    "finaliser of a cycle": "class A:\n    def __del__(self): print('gone')\na = A()\na.me = a\ndel a",
    "finalisers in a list": "class A:\n    def __init__(self, n): self.n = n\n    def __del__(self): print(self.n)\n"
    "a = [A(1), A(2), A(3)]",
    "finaliser in a cycle of objects": "class A:\n    def __init__(self, n): self.n = n\n"
    "    def __del__(self): print(self.n)\na, b = A(1), A(2)\na.b, b.a = b, a",
    "finaliser that imports": "class A:\n    def __del__(self):\n        import json\n"
    "        print(json.dumps([1]))\na = A()",
    "finaliser that imports what is loaded": "class A:\n    def __del__(self):\n        import sys, io\n"
    "        print('loaded', io)\na = A()",
    "finaliser that looks": "class A:\n    def __del__(self): print(sys.argv, sys.path, len(sys.modules), __name__)\n"
    "a = A()",
    "finaliser that opens": "class A:\n    def __del__(self): print(open(0).read())\na = A()",
    "finaliser that raises for all to see": "class A:\n    def __del__(self): raise SystemExit(4)\na = A()",
    "finaliser that ends": "class A:\n    def __del__(self): os._exit(5)\na = A()",
    "finaliser of what was shown": "class A:\n    def __del__(self): print('gone')\n"
    "sys.displayhook(A().__class__)\na = A()",
    "finaliser that fails": "class A:\n    def __del__(self): 1 / 0\na = A()",
    "finaliser that exits": "class A:\n    def __del__(self): sys.exit(3)\na = A()\ndel a",
    "finaliser of a class": "class M(type):\n    def __del__(cls): print('class gone')\nclass A(metaclass=M): pass",
    "finaliser held by a function": "class A:\n    def __del__(self): print('gone')\ndef f(a=A()): pass",
    "finaliser held by an exception": "class A:\n    def __del__(self): print('gone')\ndef f():\n    a = A()\n"
    "    1 / 0\n"
    "try:\n    f()\nexcept ZeroDivisionError as e:\n    kept = e",
    "finaliser after an error": "class A:\n    def __del__(self): print('gone')\na = A()\n1 / 0",
    "finaliser of weakref": "import weakref\nclass A: pass\na = A()\nit = weakref.finalize(a, print, 'gone')",
    "weak reference": "import weakref\nclass A: pass\na = A()\nr = weakref.ref(a, lambda _: print('gone'))",
    "generator": "def g():\n    try:\n        yield\n    finally:\n        print('closed')\nit = g()\nnext(it)",
    "generator that was not started": "def g():\n    try:\n        yield\n    finally:\n"
    "        print('closed')\nit = g()",
    "context": "import contextlib\nit = contextlib.ExitStack()\nit.callback(print, 'closed')",
    "excepthook": "sys.excepthook = lambda *_: print('hook')\n1 / 0",
    "excepthook that ends": "def hook(*_):\n    print('hook', flush=True)\n    os._exit(0)\n"
    "sys.excepthook = hook\n1 / 0",
    "excepthook that exits": "sys.excepthook = lambda *_: sys.exit(0)\n1 / 0",
    "excepthook that fails": "sys.excepthook = lambda *_: 1 / 0\n{}[1]",
    "excepthook and no error": "sys.excepthook = lambda *_: os._exit(9)\nsys.exit(0)",
    "excepthook and an interrupt": "def hook(*_):\n    print('hook', flush=True)\n    os._exit(0)\n"
    "sys.excepthook = hook\n"
    "raise KeyboardInterrupt",
    "no excepthook": "del sys.excepthook\n1 / 0",
    "excepthook of None": "sys.excepthook = None\n1 / 0",
    "unraisable hook": "sys.unraisablehook = lambda *_: print('hook')\nclass A:\n    def __del__(self): 1 / 0\n"
    "a = A()\n"
    "del a",
    "thread that fails": "import threading\nit = threading.Thread(target=lambda: 1 / 0)\nit.start()\nit.join()",
    "thread that exits": "import threading\nit = threading.Thread(target=sys.exit, args=(3,))\nit.start()\nit.join()",
    "thread that ends all": "import threading\nsys.stdout.flush()\n"
    "threading.Thread(target=os._exit, args=(0,)).start()\n"
    "1 / 0 if False else None",
    "thread that prints late": "import threading, time\ndef f():\n    time.sleep(0.02)\n    print('late')\n"
    "threading.Thread(target=f).start()",
    "thread after an error": "import threading, time\ndef f():\n    time.sleep(0.02)\n    print('late', flush=True)\n"
    "    os._exit(0)\nthreading.Thread(target=f).start()\n1 / 0",
    "daemon": "import threading, time\nthreading.Thread(target=time.sleep, args=(9,), daemon=True).start()",
    "timer": "import threading\nthreading.Timer(0.01, print, ('late',)).start()",
    "thread hook": "import threading\nthreading.excepthook = lambda *_: print('hook')\n"
    "it = threading.Thread(target=lambda: 1 / 0)\nit.start()\nit.join()",
    "low-level thread": "import _thread, time\n_thread.start_new_thread(print, ('x',))\ntime.sleep(0.05)",
    "pool": "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(1)\n"
    "pool.submit(print, 'late')",
    "big thread": "import threading\nthreading.stack_size(1 << 26)\nsys.setrecursionlimit(1 << 20)\n"
    "threading.Thread(target=lambda: print('big')).start()",
    "no standard output": "sys.stdout = None",
    "no standard output and a print": "sys.stdout = None\nprint('x')",
    "deleted standard output": "del sys.stdout",
    "deleted standard output and a print": "del sys.stdout\nprint('x')",
    "closed standard output": "sys.stdout.close()",
    "detached standard output": "sys.stdout.detach()",
    "closed descriptor": "os.close(1)",
    "closed descriptor after a flush": "sys.stdout.flush()\nos.close(1)",
    "no standard error": "sys.stderr = None\n1 / 0",
    "closed standard error": "sys.stderr.close()",
    "closed standard input": "sys.stdin.close()",
    "standard error on standard output": "sys.stderr = sys.stdout\nprint('x', file=sys.stderr)",
    "no original": "sys.__stdout__ = None\nprint('x')",
    "duplicated": "os.dup2(1, 2)\nprint('x', file=sys.stderr)",
    "no modules": "sys.modules.clear()",
    "not main": "del sys.modules['__main__']",
    "other main": "sys.modules['__main__'] = io",
    "no garbage collection": "import gc\ngc.disable()\nclass A:\n    def __del__(self): print('gone')\na = A()\n"
    "a.a = a",
    "frozen": "import gc\nclass A:\n    def __del__(self): print('gone')\na = A()\na.a = a\ngc.freeze()",
    "no builtins": "import builtins\ndel builtins.print",
    "profile": "sys.setprofile(lambda *_: None)",
    "trace": "sys.settrace(lambda *_: None)",
    "switched": "sys.setswitchinterval(1e-6)",
    "read until the end": "sys.stdin.close()\ntry:\n    input()\nexcept ValueError:\n    print('closed')",
    "limit of the stack": "import resource\nresource.setrlimit(resource.RLIMIT_STACK, (1 << 26, 1 << 26))",
    "limit of the digits": "sys.set_int_max_str_digits(0)\nprint(len(str(10 ** 5000)))",
    "a class that ends": "class A:\n    def __init_subclass__(cls): sys.exit(0)\nclass B(A): pass\nprint('no')",
    "a decorator that exits": "@sys.exit\ndef f(): pass",
    "a lambda": "(lambda: sys.exit(0))()\nprint('no')",
    "coroutine that is never awaited": "async def f(): pass\nf()",
    "exit in an event loop": "import asyncio\nasync def f(): sys.exit(0)\nasyncio.run(f())",
    "return code of a context": "import contextlib\nwith contextlib.suppress(SystemExit):\n    sys.exit(3)",
    "warning as an error": "import warnings\nwarnings.simplefilter('error')\nwarnings.warn('x')",
    "a print that fails": "class P:\n    def __str__(self): sys.exit(0)\nprint(P())",
}

_INPUTS = (
    "3 4",
    "1 2 3\n",
    "",
    "\n",
    "  5  6  \n\n",
    "1\r\n2\r\n",
    "a\rb\n",
    "7\r8",
    "héllo wörld",
    "日本語 テスト\n",
    "😀 x",
    "\ufeff1 2",
    "1\t2 ",
    "x\0y",
    "one line\nanother line\n",
    "a\x0cb",
    "a\u2028b",
    "tab\x1cfs",
    "1_000 2",
    "٣ 4",
    "-1 -2",
    "1\n2\n3\n4\n5",
    " \n ",
    "a b\n\nc",
    "9" * 5000,
    "word " * 20_000,
    "\x1a",
    "\x85",
)

_PROPERTIES = (
    "run({i}) != 'xyzzy'",
    "len(run({i})) == {length}",
    "run({i}).split() == {words}",
    "run({i})[:1] == {first}",
    "run({i}) == run({i})",
    "run({i}) != run({j})",
    "run({i}) in ({vi}, {vj})",
    "[run(x) for x in [{i}, {j}]] == [{vi}, {vj}]",
    "all(run(x) == y for x, y in [({i}, {vi}), ({j}, {vj})])",
    "run({i}) + run({j}) == {both}",
    "run({i}).startswith({first})",
    "sorted(run({i}).split()) == sorted({words})",
    "len(run({i}).splitlines()) == {lines}",
    "run({i}).strip() == {stripped}",
    "run({i}).count('1') == {ones}",
    "run(run({i})) == run({vi})",
    "run({i}) and run({j})",
    "not run({i})",
    "int(run({i})) >= 0",
    "run({i}).upper() == {vi}.upper()",
    "set(run({i})) == set({vi})",
    "f'{{run({i})}}|' == {vi} + '|'",
)


def _subject(plain: PlainPython, name: str, n_programs: int, rng: random.Random) -> Subject:
    what = rng.choice(sorted(_COMPUTE))
    output = rng.choice(list(OutputForm))
    solution = _source("read", what, "print", "end")
    problem = Problem(name, "Print.", RUN, solution, (), kind=ProblemKind.STDIN, output=output)
    subject = Subject(problem, tuple(_program(what, rng) for _ in range(n_programs)))
    return replace(subject, tests=tuple(_tests(subject, rng, plain)))


subjects: Draw = partial(drawn_subjects, "stdin", _PROGRAMS_PER_PROBLEM, _subject)
"""Draw problems, each with programs and tests that its solution passes."""


def _source(read: str, compute: str, show: str, end: str) -> str:
    return "\n".join(("import io, os, sys", _READ[read], _COMPUTE[compute], _PRINT[show], _END[end], ""))


def _program(what: str, rng: random.Random) -> Program:
    read, show, end = (
        usual if rng.random() < _USUAL else rng.choice(sorted(table))
        for usual, table in (("read", _READ), ("print", _PRINT), ("end", _END))
    )
    compute = rng.choice(sorted(_COMPUTE)) if rng.random() < _WRONG else what
    return Program(f"{read}; {compute}; {show}; {end}", _source(read, compute, show, end))


def _tests(subject: Subject, rng: random.Random, plain: PlainPython) -> list[Test]:
    """Return tests on some inputs with which the solution ends well."""
    inputs = [repr(text) for text in rng.sample(_INPUTS, 2 * _N_INPUTS - 1)]
    ask = [subject.question(Test("", f"{RUN}({i})"), subject.problem.solution, Mode.VALUE) for i in inputs]
    answers = zip(inputs, plain.answers(ask), strict=True)
    known = [(i, answer.detail) for i, answer in answers if answer.ended is Ended.PASSED][:_N_INPUTS]
    if len(known) < 2:
        return []
    tests = [
        Test("plain", f"{RUN}({i}) == {it}", f"{RUN}({i})", it)
        for i, value in known[:_PLAIN_TESTS]
        for it in (value if rng.random() < 0.8 else repr(f"{eval(value)}\n"),)
    ]
    forms = rng.sample(_PROPERTIES, 4)
    drawn = [Test("property", form.format(**_parts(*rng.sample(known, 2)))) for form in forms]
    return [*tests, *holding(subject, drawn, plain)[:_OTHER_TESTS]]


def _parts(one: tuple[str, str], other: tuple[str, str]) -> dict[str, object]:
    (i, vi), (j, vj) = one, other
    text = eval(vi)
    return {
        "i": i,
        "j": j,
        "vi": vi,
        "vj": vj,
        "length": len(text),
        "words": text.split(),
        "first": repr(text[:1]),
        "both": repr(text + eval(vj)),
        "lines": len(text.splitlines()),
        "stripped": repr(text.strip()),
        "ones": text.count("1"),
    }
