"""A program's own tests are left out; what the definitions may need stays."""

import pytest

from codea1_env.problems import load_problems
from codea1_env.rules.replies import read_candidate
from codea1_env.rules.ruleset import Reading
from tests.support.toys import fenced

F = "def f(n):\n    return n * n\n"
LEFT_OUT = {
    "assert": F + "assert f(2) == 5",
    "print": F + "print(f(2))",
    "main": F + "if __name__ == '__main__':\n    import doctest\n    doctest.testmod()",
    "table": F + "cases = [(1, 2)]\nfor a, b in cases:\n    assert f(a) == b, a",
    "test function": F + "cases=[[1],[2]]\ndef test_f():\n    for a, b in cases:\n        assert f(a) == b\ntest_f()",
    "check": F + "def check(candidate):\n    assert candidate(2) == 5\ncheck(f)",
    "try": F + "try:\n    print(f('a'))\nexcept ValueError as e:\n    print(e)",
    "result": F + "result = f(3)\nprint(result)\n",
    "unittest": "import unittest\n"
    + F
    + "class T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(f(1), 2)\nunittest.main()",
    "doctest": F + "import doctest\ndoctest.testmod()",
    "memo assert": (
        "memo = {}\ndef f(n):\n    if n in memo: return memo[n]\n    memo[n] = n * n\n"
        "    return memo[n]\nassert f(2) == 5\nprint(f(3))"
    ),
    "count": "C = 0\ndef f(n):\n    global C\n    C += 1\n    return n\nassert f(2) == 5",
    "approx": "import math\n" + F + "assert math.isclose(f(2), 4.1)",
    "np": "import numpy as np\n" + F + "np.testing.assert_allclose(f(2), 4.1)\nassert np.allclose(f(2), 1)",
    "bare": F + "f(3)\nf(4)",
    "compare": F + "f(3) == 9",
    "constants": (
        "ROMAN = {'a': 1}\ndef f(n):\n    out = []\n    for c in n:\n        v = ROMAN[c]\n"
        "        out.append(v)\n    return out\nassert f('b') == [2]"
    ),
    "passed": F + "passed = 0\nif f(2) == 4:\n    passed += 1\nprint(passed)",
    "raise": F + "if f(2) != 4:\n    raise AssertionError('no')",
    "instance": "class S:\n    def f(self, n):\n        return n\ns = S()\nprint(s.f(2))\nassert S().f(3) == 4",
    "input": F + "n = int(input())\nprint(f(n))",
    "sorted": F + "assert sorted(f(x) for x in [1,2]) == [1, 5]",
    "caching assert": "from functools import lru_cache\n@lru_cache(None)\ndef f(n):\n    return n\nassert f(2) == 5",
    "json": "import json\n" + F + "print(json.dumps(f(2)))",
    "made by a call": "def make():\n    return lambda n: n\nf = make()\nassert f(2) == 5",
    "pytest": F + "import pytest\nwith pytest.raises(ValueError):\n    f(2)",
    "a count of its own": F + "n_pass = 0\ndef run():\n    global n_pass\n    assert f(2) == 5\n    n_pass += 1\nrun()",
    "a name that it deletes": F + "assert f(2) == 5\nx = 3\ndel x",
    "lambda": "f = lambda n: n * n\nassert f(2) == 5",
    "main func": F + "def main():\n    n = int(input())\n    print(f(n))\nmain()",
    "time": "import time\n" + F + "start = time.time()\nprint(f(2))\nprint(time.time() - start)",
    "class table": F
    + "class Case:\n    def __init__(self, a):\n        self.a = a\nfor c in [Case(1)]:\n    assert f(c.a) == 1",
}
STAYS = {
    "register": (
        "REG = {}\ndef register(fn):\n    REG[fn.__name__] = fn\ndef g(n): return n\nregister(g)\n"
        "def f(n):\n    return REG['g'](n)"
    ),
    "build": "T = []\ndef build():\n    for i in range(9): T.append(i)\nbuild()\ndef f(n): return T[n]",
    "metaclass": (
        "D = []\nclass M(type):\n    def __new__(c, *a):\n        D.append(1)\n        return type.__new__(c, *a)\n"
        "class X(metaclass=M):\n    pass\ndef f(n):\n    return n\nassert f(len(D)) == 1"
    ),
    "limit": "import sys\nsys.setrecursionlimit(9999)\n" + F,
    "fill": (
        "memo = {}\ndef fill(n): memo[n] = n\nfill(1)\ndef f(n):\n    if n in memo: return memo[n]\n"
        "    memo[n] = memo[n-1]\n    return memo[n]"
    ),
    "prime": (
        "memo = {}\ndef f(n):\n    if n in memo: return memo[n]\n    memo[n] = f(n - 1) if n else 0\n"
        "    return memo[n]\nfor i in range(100):\n    f(i)"
    ),
    "prime cache": (
        "from functools import lru_cache\n@lru_cache(None)\ndef f(n):\n    return n\nfor i in range(100):\n    f(i)"
    ),
    "table loop": "T = {}\nfor i in range(3):\n    T[i] = i\ndef f(n): return T[n]",
    "assign": "def g(): return 3\nX = g()\ndef f(n): return X",
    "deco": "f = g = None\ndef wrap(h): return h\ndef f(n): return n\nf = wrap(f)",
    "attr": "def f(n): return f.k\nf.k = 3",
    "method": "L = []\nL.append(1)\ndef f(n): return L",
    "alias": "L = []\nM = L\nM.append(1)\ndef f(n): return L",
    "alias2": "L = []\ndef add(xs): xs.append(1)\nadd(L)\ndef f(n): return L",
    "loop alias": "L = [[]]\nfor row in L:\n    row.append(1)\ndef f(n): return L",
    "on a line with data": "K = 3; assert K == 3\ndef f(n): return K",
    "deleted": "x = 3\ndef f(n): return n\ny = f(x)\ndel y",
    "grown": "T = []\ndef f(n): return n\nt = f(2)\nt += T.append(1) or 1\ndef g(): return T\ndef f(n): return g()",
    "of a type": "class A:\n    n = 0\n    def __init__(self): type(self).n += 1\nA()\ndef f(n): return A.n",
    "seed": "import random\nrandom.seed(0)\ndef f(n): return random.random()",
    "heap": "import heapq\nH = [3, 1]\nheapq.heapify(H)\ndef f(n): return H[0]",
    "exec": "exec('def f(n): return n')\ndef f(n): return 1",
    "setattr": "class A: pass\nsetattr(A, 'x', 1)\ndef f(n): return A.x",
    "getter": "L = []\ndef get(): return L\nget().append(1)\ndef f(n): return L",
    "global in helper": "C = None\ndef init():\n    global C\n    C = 3\nprint(init())\ndef f(n): return C",
    "with print": "C = []\ndef init():\n    C.append(1)\n    print('ok')\ninit()\ndef f(n): return C",
    "class state": "class S:\n    n = []\n    def add(self): self.n.append(1)\nS().add()\ndef f(n): return S.n",
    "local alias": "T = [[]]\ndef init():\n    row = T[0]\n    row.append(1)\ninit()\ndef f(n): return T",
    "try import": "try:\n    import numpy\nexcept ImportError:\n    print('no')\ndef f(n): return n",
    "for sieve": (
        "P = [True] * 9\nfor i in range(2, 9):\n    for j in range(i * i, 9, i):\n        P[j] = False\n"
        "def f(n): return P[n]"
    ),
    "if": "import sys\nif sys.version_info > (3,):\n    X = 1\nelse:\n    X = 2\ndef f(n): return X",
    "instance": (
        "class Trie:\n    def __init__(self): self.d = {}\n    def add(self, x): self.d[x] = 1\n"
        "t = Trie()\nt.add(3)\ndef f(n): return n in t.d"
    ),
    "instance loop": (
        "class Trie:\n    def __init__(self): self.d = {}\n    def add(self, x): self.d[x] = 1\n"
        "t = Trie()\nfor w in 'ab':\n    t.add(w)\ndef f(n): return n in t.d"
    ),
    "next": "it = iter([1,2])\nnext(it)\ndef f(n): return next(it)",
    "decimal": "from decimal import getcontext\ngetcontext().prec = 50\ndef f(n): return n",
    "counter": "from collections import deque\nq = deque()\nq.appendleft(1)\ndef f(n): return q",
    "setter lambda": "S = {}\nput = lambda k: S.update({k: 1})\nput(3)\ndef f(n): return S",
    "walrus": "print(y := 3)\ndef f(n): return y",
    "comp": "L = []\n[L.append(i) for i in range(3)]\ndef f(n): return L",
}


UNREADABLE = {  # what follows a program, and is no Python
    "cut in a list": "assert f(1) == 2\nassert f(2) == [1, 2,",
    "cut in a text": "assert f('a') == 'must",
    "cut in a print": "print(f(2))  # 4\nprint(f(",
    "cut in a main block": "if __name__ == '__main__':\n    assert f(1) == 2\n    assert f(2) == [",
    "an equals sign lacks": "assert f(1) = 2\nassert f(2) == 5\n",
    "cut in a loop": "for a, b in [(1, 1)]:\n    assert f(a) == b\nfor a in [1]:\n    assert f(",
    "cut in a test function": "def test_f():\n    assert f(1) == 1\n    assert f(",
    "cut in a try": "try:\n    f('')\nexcept TypeError:\n    print(f(",
    "closed in a line of its own": "assert f(1) == [\n    1,\n]\nf(3",
}
UNREADABLE_PROGRAMS = {
    "the program is cut": "def f(n):\n    return (n *",
    "cut in a helper": F + "assert f(1) == 1\ndef g(n):\n    return (n",
    "cut in a table": F + "T = [1, 2,",
    "deep": "def f(n):\n    return f.one\nf.one = " + "(" * 150 + "1" + ")" * 150,
    "wrong before its tests": "def f(n) return n\nassert f(1) == 2\nassert f(2) == [",
    "within a docstring": 'def f(n):\n    """\nassert f(1) == 2\n    """\n    return (n',
}


@pytest.mark.parametrize("tests", UNREADABLE.values(), ids=UNREADABLE)
def test_tests_at_the_end_that_are_no_python_are_left_out(tests):
    candidate = read_candidate(f"```python\n{F}\n{tests}", Reading.STRICT, entry_point="f")
    assert (candidate.program, candidate.n_own_tests > 0) == (F.rstrip("\n"), True)


@pytest.mark.parametrize(
    "needed", ["f.memo = {}", "f.register(int, str)", "Solution.k = 3", "T = []\nfor i in range(3):\n    T.append(i)"]
)
def test_only_the_broken_test_goes_and_what_the_program_needs_stays(needed):
    program = f"class Solution:\n    def f(self, n):\n        return T\ndef f(n):\n    return T\n{needed}"
    tests = "\nassert f(2) == 4\nassert f(3) == [1,"
    for entry_point in ("f", "Solution().f"):
        candidate = read_candidate(f"```python\n{program}{tests}", Reading.STRICT, entry_point=entry_point)
        assert candidate.program in (program, f"{program}\nassert f(2) == 4")  # which may exercise another `f`
        assert candidate.n_own_tests


@pytest.mark.parametrize("program", UNREADABLE_PROGRAMS.values(), ids=UNREADABLE_PROGRAMS)
def test_a_program_that_is_no_python_itself_stays_whole(program):
    candidate = read_candidate(f"```python\n{program}", Reading.STRICT, entry_point="f")
    assert (candidate.program, candidate.n_own_tests) == (program, 0)


@pytest.mark.parametrize("program", LEFT_OUT.values(), ids=LEFT_OUT)
def test_what_only_exercises_the_definitions_is_left_out_and_counted(program):
    entry_point = "S().f" if "class S" in program else "f"
    found = read_candidate(fenced(program), Reading.STRICT, entry_point=entry_point)
    assert found.n_own_tests > 0
    kept = found.program.split("\n")
    assert not [line for line in kept if line.startswith(("assert", "print", "for", "if", "try", "with", "f("))]
    assert kept == [line for line in program.split("\n") if line in kept]


@pytest.mark.parametrize("program", STAYS.values(), ids=STAYS)
def test_what_the_definitions_may_need_stays(program):
    found = read_candidate(fenced(program), Reading.STRICT, entry_point="f")
    assert (found.program, found.n_own_tests) == (program.rstrip("\n"), 0)


def test_tests_of_other_readings_and_of_programs_without_an_entry_point_stay():
    for reading, entry_point in ((Reading.RELEASE, "f"), (Reading.STRICT, "")):
        assert "assert" in read_candidate(fenced(f"{F}assert f(2) == 5"), reading, entry_point=entry_point).program


@pytest.mark.parametrize("name", ["humaneval", "starter"])
def test_right_programs_lose_no_character(name):
    for problem in load_problems(name):
        found = read_candidate(fenced(problem.solution), Reading.STRICT, entry_point=problem.entry_point)
        assert (found.program, found.n_own_tests) == (problem.solution.strip("\n"), 0)


@pytest.mark.parametrize("piece", ["f({})\n", "def g{0}(): g{1}()\ng{0}()\n", "x.append({})\nassert f({})\n"])
def test_the_search_is_paid_for(piece):
    program = "x = []\ndef f(n): return x\n" + "".join(piece.format(n, n + 1) for n in range(2_000))
    assert read_candidate(program, Reading.STRICT, entry_point="f").program.startswith("x = []")
