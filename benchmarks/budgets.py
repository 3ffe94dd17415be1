"""Measures the cost of untrusted bytes and texts in the trusted process, and compares equality of values with Python's.

    python benchmarks/budgets.py [--cases N] [--pairs N] [--search N] [--seed N]

Four parts:

- *pairs*: Python's `==` and `values.equal` (on encodings) compare all pairs of values of mixed types, many of them
  almost equal. The known differences (`values.comparison`) are not drawn.
- *inputs*: frames, encoded values and replies, half of them with changed bytes, and the largest ones that candidates,
  golden tests and agents may send. Readers may raise only the documented errors.
- *search*: texts of many parts, for each reader of texts. Those that cost most for their length are kept and changed;
  the worst are grown to the longest that is read.
- *costs*: processor seconds and MB (`tracemalloc`, in a second run) of the most expensive inputs.

The exit status is 1 if a comparison is wrong, or if an input takes more than 1 s or 200 MB.
"""

from __future__ import annotations

import contextlib
import datetime
import random
import sys
import time
import tracemalloc
from collections import deque
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any, NamedTuple

from measuring import option_parser

from codea1_env.errors import UserError
from codea1_env.facts.call_forms import CallForms
from codea1_env.judging.golden import GOLDEN_LIMITS
from codea1_env.rules.replies import MAX_CHARACTERS, read_candidate, read_suite
from codea1_env.rules.ruleset import Reading
from codea1_env.sandbox.interface import Limits
from codea1_env.sandbox.local.process import as_outcome
from codea1_env.sandbox.local.reach import may_see_calls
from codea1_env.sandbox.wire import Frame, Tag, WireError
from codea1_env.service.judging import posted_problems
from codea1_env.values import Malformed, decode, describe, encode, equal, to_source, validate
from codea1_env.values.tree import MAX_BYTES

MAX_SECONDS, MAX_MB = 1.0, 200.0
CANDIDATE_BYTES, GOLDEN_BYTES = Limits().value_bytes, GOLDEN_LIMITS.value_bytes
TAGS = (Tag.LOADED, Tag.VALUE, Tag.VALUE, Tag.OPAQUE, Tag.TOO_LARGE, Tag.MEMORY, Tag.ERROR, Tag.APPLY, b"?")
_GROUP_SIZE = 400  # values of which all pairs are compared

# -- values of mixed types --

_NUMBERS = (0, 1, 2, 11, 2816, -1, 2**53, 2**53 + 1, 10**18, 10**22, 2**1023, 2**1024, 2**1024 - 1, 10**400)
_RATIOS = ((1, 2), (1, 3), (1, 10), (-7, 4), (1, 2**1074), (3, 2**1074), (2**60 + 1, 2**60))
_TEXTS = ("", "0", "1", "11", "b", "b00", "x", "~", "#1", "[]", '"', ",", ":", "\x00", "\u20ac", "\ud800", "inf", "nan")
_NAMES = ("a", "b")


def _number(rng: random.Random) -> Any:
    """Return one of a few numbers or an adjacent one, in one of its types."""
    n, d = rng.choice([(rng.choice(_NUMBERS), 1), rng.choice(_RATIOS)])
    exact = Fraction(n + rng.choice((0, 0, 0, 1, -1)), d)
    made: list[Any] = [exact]
    if exact.denominator == 1:
        made += [int(exact), Decimal(int(exact)), Decimal(int(exact)).scaleb(2).scaleb(-2) if n < 100 else int(exact)]
        made += [bool(exact)] if exact in (0, 1) else []
    with contextlib.suppress(OverflowError):
        near = float(exact)
        made += [near, -near if near == 0 else near, Decimal(near), complex(near, 0.0), complex(near, 1.0)]
    return rng.choice(made)


def _moment(rng: random.Random) -> Any:
    hour = rng.choice((0, 1, 23))
    zone = rng.choice((None, datetime.UTC, datetime.timezone(datetime.timedelta(hours=rng.choice((0, 1, -1))))))
    return rng.choice(
        (
            datetime.date(2020, 1, rng.choice((1, 2))),
            datetime.time(hour, tzinfo=zone),
            datetime.datetime(2020, 1, rng.choice((1, 2)), hour, tzinfo=zone),
            datetime.timedelta(hours=hour),
            datetime.timedelta(microseconds=rng.choice((0, 1, 11))),
        )
    )


def _leaf(rng: random.Random) -> Any:
    text = rng.choice(_TEXTS)
    data = bytes.fromhex(rng.choice(("", "00", "01", "0b", "11", "0b00", "78")))
    return rng.choice(
        (
            lambda: _number(rng),
            lambda: _number(rng),
            lambda: text,
            lambda: data,
            lambda: bytearray(data),
            lambda: None,
            lambda: _moment(rng),
            lambda: range(rng.choice((0, 1)), rng.choice((0, 1, 3, 4)), rng.choice((1, 2, 3))),
            lambda: rng.choice((float("inf"), float("-inf"), Decimal("Infinity"), Decimal("1E+5000"), Decimal("-0"))),
        )
    )()


def _hashable(rng: random.Random) -> Any:
    while True:
        found = _leaf(rng) if rng.random() < 0.8 else tuple(_leaf(rng) for _ in range(2))
        with contextlib.suppress(TypeError):
            hash(found)
            return found


def mixed_value(rng: random.Random, levels: int = 3) -> Any:
    """Return a value of any type that can be encoded, except those with documented differences."""
    if levels == 0 or rng.random() < 0.5:
        return _leaf(rng)
    inner = [mixed_value(rng, levels - 1) for _ in range(rng.choice((0, 1, 1, 2)))]
    keys = [_hashable(rng) for _ in inner]
    return rng.choice(
        (inner, tuple(inner), deque(inner), set(keys), frozenset(keys), dict(zip(keys, inner, strict=True)))
    )


def compare_pairs(n_pairs: int, seed: int) -> tuple[int, list[tuple[Any, Any]]]:
    """Return the number of equal pairs, and the pairs for which Python's `==` and ours differ."""
    rng = random.Random(seed)
    n_equal, wrong = 0, list[tuple[Any, Any]]()
    while n_pairs > 0:
        group = [mixed_value(rng) for _ in range(_GROUP_SIZE)]
        encoded = [encode(value) for value in group]
        pairs = [(i, j) for i in range(len(group)) for j in range(i)][:n_pairs]
        n_pairs -= len(pairs)
        for i, j in pairs:
            ours = equal(encoded[i], encoded[j])
            n_equal += ours
            if ours != (group[i] == group[j]) or ours != equal(encoded[j], encoded[i]):
                wrong.append((group[i], group[j]))
    return n_equal, wrong


# -- inputs --


class Input(NamedTuple):
    """An untrusted input, and the function that reads it."""

    name: str
    read: Callable[[], object]


def read_values(one: bytes, other: bytes) -> None:
    """Apply all operations of the trusted process to two untrusted values."""
    for work in _WORK.values():
        work_on_values(work, one, other)


def work_on_values(work: Callable[[bytes, bytes], object], one: bytes, other: bytes) -> None:
    """Apply one operation, which may reject the values."""
    with contextlib.suppress(Malformed):
        work(one, other)


_WORK: dict[str, Callable[[bytes, bytes], object]] = {
    "checked": lambda one, other: validate(one),
    "compared": equal,
    "compared with tolerance": lambda one, other: equal(other, one, rel_tol=1e-9, abs_tol=1e-9, nan_equal=True),
    "compared strictly": lambda one, other: equal(one, other, rel_tol=1e-9, mutual=True, strict_types=True),
    "compared with itself": lambda one, other: equal(one, one, rel_tol=1e-9),
    "described": lambda one, other: describe(one),
    "written": lambda one, other: to_source(other),
}


def read_frame(frame: Frame) -> None:
    """Read one frame about a call."""
    with contextlib.suppress(WireError):
        as_outcome(frame)


def read_reply(reply: str) -> None:
    """Read a reply with all rules of reading."""
    for reading in Reading:
        read_candidate(reply, reading, entry_point="f")
        read_suite(reply, reading, entry_point="f", tests_per_suite=5)


def changed(rng: random.Random, data: bytes) -> bytes:
    """Return `data` with some bytes replaced, removed or inserted."""
    made = bytearray(data)
    for _ in range(rng.choice((0, 0, 1, 2, 5))):
        place = rng.randrange(len(made) + 1)
        made[place : place + rng.choice((0, 1, 1))] = rng.choice(_BITS)
    return bytes(made)


_BITS = (b"", b"0", b"9" * 20, b"[", b"]", b"{", b"}", b'"', b",", b"-", b"e", b"E+", b"\\", b"\xff", b'{"t":[', b"nan")
_LINES = (
    "assert f(1) == 2",
    "assert f([1, 2.5], k='a') == {'b': (1,)}",
    'assert f(f"{1}{2!r:>{3}}") == f"{{}}"',
    "x = [1, 2]",
    "assert sorted(f(x)) == [",
    "def f(a):",
    '    """Doc',
    "    return a",
    "```python",
    "```",
    "   ~~~",
    "'''",
    "<think>",
    "class T:",
    "  def test_a(self):",
    "assert all(f(i) for i in range(3))",
    "assert f(0x1F, 1e5, 3j, b'\\x00') is None",
    "\tif f(1):",
    "Some prose, it's \u00e9.",
)


def random_input(rng: random.Random) -> Input:
    """Return a small value, frame or reply, which may be invalid."""
    kind = rng.randrange(4)
    if kind == 0:
        reply = "\n".join(rng.choices(_LINES, k=rng.randrange(1, 12)))
        return Input("reply", lambda: read_reply(changed(rng, reply.encode()).decode("utf-8", "replace")))
    data = encode(mixed_value(rng))
    if kind == 1:
        frame = Frame(rng.choice(TAGS), rng.randrange(9), rng.randrange(9), changed(rng, data))
        return Input("frame", lambda: read_frame(frame))
    one, other = changed(rng, data), changed(rng, data)
    return Input("value", lambda: (read_values(one, other), _decoded(one))[0])


def _decoded(data: bytes) -> None:
    with contextlib.suppress(Malformed):
        decode(data)


def _filled(begin: str, item: str, end: str, size: int, separator: str = ",") -> str:
    n_items = max(1, (size - len(begin) - len(end)) // (len(item) + len(separator)))
    return begin + separator.join([item] * n_items) + end


def _tag(tag: str, payload: str, *, text: bool = False) -> str:
    return f'{{"{tag}":"{payload}"}}' if text else f'{{"{tag}":[{payload}]}}'


_REPEATED = (
    *("1", "1.0", "5e-324", "2e307", "[]", '""', "null", _tag("t", ""), _tag("t", "1.5"), _tag("s", "1.5")),
    *(_tag("d", "[1,1.5]"), _tag("r", "1,3"), _tag("g", "0,9,2"), _tag("c", "0.1,0.2"), "1" * 308, "1" * 4300),
    *(_tag("D", text, text=True) for text in ("1E+999", "1E+1999", "3E-998", "1E-300", "7" * 990)),
    *(_tag("T", text) for text in ('"date","2020-01-01"', '"datetime","2020-01-01T00:00:00+01:00"')),
    *(_tag("k", '"A",[["a",1.5]]'), _tag("n", '"<f8",[1],[0.5]')),
    *(_tag("f", "inf", text=True), _tag("f", "nan", text=True), _tag("r", f"{2**1000 + 1},{2**1001 - 3}")),
)


def large_values(size: int) -> Iterator[tuple[str, str]]:
    """Yield names and values of at most `size` bytes, each expensive for some operation."""
    for item in _REPEATED:
        yield item[:20], _filled("[", item, "]", size)
        yield f"tuple {item[:20]}", _filled('{"t":[', item, "]}", size)
    digits = "7" * (size - 40)

    def integer(digit: str, share: int) -> str:
        return _tag("i", digit * (size // share - 20), text=True)

    yield "Decimal", _tag("D", digits, text=True)
    yield "Decimal with decimals", _tag("D", f"0.{digits}", text=True)
    yield "int", _tag("i", digits, text=True)
    yield "Fraction", _tag("r", f"{integer('7', 2)},{integer('b', 2)}")
    yield "range", _tag("g", f"{integer('f', 3)},{integer('e', 3)},{integer('3', 6)}")
    yield "float", f"0.{digits}"
    yield "int in decimal", digits
    yield "bytes", _tag("b", "ab" * (size // 2 - 9), text=True)
    yield "surrogates", _tag("u", "61" * (size // 2 - 9) + "eda080", text=True)
    yield "text", f'"{digits}"'
    yield "wide text", f'"\U0001f600{digits}"'
    yield "commas", '"' + "," * (size - 2) + '"'
    yield "quotes", '"' + '\\"' * (size // 2 - 1) + '"'
    yield "brackets", "[" * size
    n = size // 9
    yield "set of integers", _tag("s", ",".join(map(str, range(10**6, 10**6 + n))))
    yield "set of floats", _tag("s", ",".join(f"{i}.5" for i in range(10**5, 10**5 + n)))
    yield "dict of colliding keys", _tag("d", ",".join(f"[{i * (2**61 - 1)},1.5]" for i in range(1, size // 32)))
    rows = (_tag("t", ",".join([f"{i}.5"] * (size // 64 // 6))) for i in range(64))
    yield "set of 64 tuples", _tag("s", ",".join(rows))
    inner = ",".join(_tag("z", ",".join(f"{i * 40 + j}.5" for j in range(40))) for i in range(13))
    yield "set of sets", _tag("s", ",".join(_tag("z", inner.replace(".5", f".{k + 1}5")) for k in range(13)))


_REPLIES = (
    "f(1)\n",
    "assert f(1) == 2\n",
    "assert\n",
    "assert f(1,\n",
    "assert f() != f()\n",
    "x = 1\n",
    "x",
    "a,",
    "a.b",
    "1+",
    "not ",
    "-",
    "(",
    "[",
    "{1:",
    "lambda:",
    "f(",
    "x if y else ",
    "'a' ",
    '"\\d" ',
    "'",
    '"""\n',
    "'''\n```\n",
    "```\n",
    "```python\n",
    "```python\n'''\n",
    "    ```\n",
    "```python\nassert f(1) == 2\n```\n",
    "```python\ndef f(x): return x\n```\n",
    "`",
    "~~~\n",
    "<think>",
    "</think>\n",
    "def f(x):\n  return x\n",
    "def f(x): pass\n",
    "if x:\n",
    "class A:\n def g(self):\n  assert f(1) == 2\n",
    "@a\n",
    "\\\n",
    "\t",
    "#\n",
    ";",
    "\ufdfa",
    "\ufdfa ",
    "0x1 ",
    "1" * 4000 + " ",
    "import math\n",
    "x = x + x\n",
    "x = [x, x]\nassert f(x) == x\n",
    "assert f(*x) == (yield)\n",
    "assert f(a := 1)\n",
    "assert all(f(i) for i in range(9))\n",
    "assert f(1) == 2; ",
    "{a}",
)


def large_replies(size: int) -> Iterator[tuple[str, str]]:
    """Yield names and replies of at most `size` characters."""
    for part in _REPLIES:
        yield repr(part[:24]), part * (size // len(part))
        yield f"block of {part[:24]!r}", "```python\n" + part * ((size - 14) // len(part)) + "\n```"
    n = size - 60
    for quote in ("f'", "rf'''", 'F"'):
        end = quote.lstrip("rfF")
        yield f"{quote} fields", f"assert f({quote}{'{a}' * (n // 3)}{end}) == 1"
        yield f"{quote} nested fields", f"assert f({quote}{'{a:{b}}' * (n // 7)}{end}) == 1"
        yield f"{quote} braces", f"```python\nassert f({quote}{'{{' * (n // 2)}{end}) == 1\n```"
    yield "many f-strings", "assert f(f'{a}') == 1\n" * (size // 22)
    yield "sum", "assert f(" + "1+" * (n // 2) + "1) == 1"
    yield "list", "assert f([" + "1," * (n // 2) + "]) == 1"
    yield "names", "assert f(" + "a," * (n // 2) + ") == 1"
    yield "dict", "assert f({" + "1:2," * (n // 4) + "}) == 1"
    yield "comparison", "assert f(1) " + "== 1 " * (n // 5)
    yield "texts", "assert f(" + "'a' " * (n // 4) + ") == 1"
    yield "program", "```python\ndef f(x):\n" + "    x += 1\n" * (n // 11) + "```"
    yield "docstring", "```python\ndef f(x):\n    '''\n" + "    ```\n" * (n // 8) + "    '''\n```"


def inputs(
    n_random: int, seed: int, *, sizes: tuple[int, ...] = (), characters: tuple[int, ...] = ()
) -> Iterator[Input]:
    """Yield small inputs, then large values by size (bytes) and replies by length (characters)."""
    rng = random.Random(seed)
    for _ in range(n_random):
        yield random_input(rng)
    for size in sizes:
        for name, text in large_values(size):
            one = text.encode()
            other = one.replace(b"1", b"2").replace(b"7", b"8") if b"1" in one or b"7" in one else one[:-2] + b"0]"
            for what, work in _WORK.items():
                yield Input(f"{size:,} bytes of {name} {what}", partial(work_on_values, work, one, other))
            yield Input(f"{size:,} bytes of {name} in a frame", partial(read_frame, Frame(Tag.ERROR, 0, 0, one)))
    for length in characters:
        for name, text in large_replies(length):
            for read, reading in product((read_suite, read_candidate), Reading):
                what = f"{length:,} characters of {name}, {read.__name__}, {reading}"
                yield Input(what, partial(read, text, reading, entry_point="f"))


# -- search --

_SHORT, _KEPT = 2048, 16  # characters of the texts that are tried; texts that are changed further, one for each part
_PARTS = (
    *(part.replace("{", "{{").replace("}", "}}") for part in _REPLIES),
    *("x{n} = [x{m}, x{m}]\n", "x{n} = x{m} + x{m}\n", "f(x{n})\n", "assert x{n} == 1\n", "assert f(x{n}) == x{m}\n"),
    *("x{n}, x{m} = x{m}, x{n}\n", "x{n} = x{m}[:]\n", "x{n}.append(x{m})\n", "x{n},", "f(x{n}, x{m})\n", "f'''"),
    *(
        "assert f'{{x{n}}}' == f(x{n})\n",
        "f'{{x}}' ",
        "{{x:{{y}}}}",
        "import math as x{n}\n",
        "def x{n}():\n",
        "class x:\n",
    ),
    *("  assert f({n}) == {m}\n", "assert all(f(i) == x{n} for i in x{m})\n", "except: ", ")", "]", "}}", "\n"),
    # tables, loops, helpers, classes, exceptions, tokens of templates
    *("@pytest.mark.parametrize('x{n}', x{m})\n", "@pytest.mark.parametrize('a, b', [({n}, {m})] + x{m})\n"),
    *(
        "for x{n} in x{m}:\n",
        "for x{n} in range(999):\n",
        "for a, b in zip(x{n}, x{m}):\n",
        "cases = [({n}, x{m}), *x{n}]\n",
    ),
    *(
        "def g{n}(a, b):\n",
        "  g{m}(a, b)\n",
        "  g{m}(b, [a, b])\n",
        "g{n}(x{n}, f)\n",
        "def check(candidate):\n",
        "  x{m}({n})\n",
    ),
    *(
        " def setUp(self):\n",
        "  self.x{n} = [self.x{m}, x{m}]\n",
        "  self.assertEqual(f(self.x{n}), {m})\n",
        " def test(self):\n",
    ),
    *(
        "@pytest.fixture\n",
        "def x{n}(x{m}):\n  return x{m}\n",
        "with pytest.raises(ValueError):\n  f(x{n})\n",
        "try:\n",
    ),
    *(
        "assert x{n} == x{m}\n",
        "  assert f(*x{n}) == x{m}[0]\n",
        "<think>\n",
        "</think>\n",
        "<|im_end|>",
        "</answer>",
        "\u201c",
    ),
    *("<|end|><|start|>assistant<|channel|>final<|message|>", "\r", "- `assert f({n}) == {m}`\n"),
    *("assert f({n}) == {m} and f({m}) == {n}\n", "assert not not not f({n}) == 1\n", "x{n} = {{{m}: x{m}}}\n"),
)

Recipe = list[tuple[str, int]]
"""Parts of a text, each with how often it is repeated."""


def text_of(recipe: Recipe, length: int) -> str:
    """Return the text of a recipe, its repetitions scaled to a length in characters."""
    unit = max(1, sum(len(part) * n for part, n in recipe))
    numbered = (
        part.replace("{n}", str(i + 1)).replace("{m}", str(i))
        for part, n in recipe
        for i in range(max(1, n * length // unit))
    )
    return "".join(numbered).replace("{{", "{").replace("}}", "}")[:length]


def changed_recipe(rng: random.Random, recipe: Recipe) -> Recipe:
    """Return a recipe with one part added, removed, moved or repeated more often."""
    made = list(recipe)
    place = rng.randrange(len(made) + 1)
    match rng.randrange(4):
        case 0 if len(made) > 1:
            made.pop(place - 1)
        case 1 if made:
            part, n = made[place - 1]
            made[place - 1] = part, max(1, n * rng.choice((1, 2, 8)) // rng.choice((1, 4)))
        case 2 if len(made) > 1:
            made.insert(rng.randrange(len(made)), made.pop(place - 1))
        case _:
            made.insert(place, (rng.choice(_PARTS), rng.choice((1, 1, 4, 64))))
    return made[:8]


def _read_posted(text: str) -> None:
    row = {"id": "x", "statement": text, "solution": f"def f(x):\n    return x\n{text}", "entry_point": "f"}
    for each in (row, row | {"golden": [{"expression": f"f({text})", "expected": text}]}, row | {"tests": [text]}):
        with contextlib.suppress(UserError):
            posted_problems([each])


_FORMS: dict[str, Callable[[str], object]] = {
    "suite": partial(read_suite, reading=Reading.STRICT, entry_point="f", tests_per_suite=8),
    "suite of a problem in place": partial(
        read_suite, reading=Reading.STRICT, entry_point="f", tests_per_suite=8, forms=CallForms(in_place=True)
    ),
    "suite, as the release reads it": partial(read_suite, reading=Reading.RELEASE, entry_point="f"),
    "program": partial(read_candidate, reading=Reading.STRICT, entry_point="f"),
    "program that may see its calls": may_see_calls,
    "problem of a request": _read_posted,
}


def search(n_texts: int, seed: int) -> Iterator[Input]:
    """Yield the worst texts of each form at full length, after a search over `n_texts` short ones."""
    for name, read in _FORMS.items():
        rng, worst = random.Random(f"{seed} {name}"), dict[str, tuple[float, Recipe]]()
        for _ in range(n_texts):
            parents = sorted(worst.values(), key=lambda pair: pair[0])[-_KEPT:]
            recipe = changed_recipe(rng, rng.choice(parents)[1] if parents and rng.random() < 0.8 else [])
            text = text_of(recipe, _SHORT)
            cost = seconds(Input(name, partial(read, text))) / max(256, len(text))
            most_of_it = max(recipe, key=lambda pair: len(pair[0]) * pair[1])[0]
            worst[most_of_it] = max(worst.get(most_of_it, (0.0, recipe)), (cost, recipe), key=lambda pair: pair[0])
        for _, recipe in sorted(worst.values(), key=lambda pair: pair[0])[-_KEPT:]:
            for length in (MAX_CHARACTERS // 4, MAX_CHARACTERS):
                for text in (text_of(recipe, length), f"```python\n{text_of(recipe, length - 14)}\n```"):
                    yield Input(f"{len(text):,} characters, {name}: {recipe!r:.120}", partial(read, text))


def seconds(each: Input) -> float:
    """Return the processor time of reading an input."""
    started = time.process_time()
    each.read()
    return time.process_time() - started


def megabytes(each: Input) -> float:
    """Return the peak memory of reading an input, in MB; `tracemalloc` must be on."""
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    each.read()
    return (tracemalloc.get_traced_memory()[1] - before) / 1e6


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--cases", type=int, default=10_000, help="small inputs; default 10,000")
    parser.add_argument("--pairs", type=int, default=100_000, help="default 100,000")
    parser.add_argument("--search", type=int, default=5_000, help="texts of each form; default 5,000")
    parser.add_argument("--seed", type=int, default=0, help="default 0")
    options = parser.parse_args()
    n_equal, wrong = compare_pairs(options.pairs, options.seed)
    print(f"{options.pairs:,} pairs, {n_equal:,} equal, {len(wrong)} compared wrongly", *wrong[:5], sep="\n")
    sizes = (CANDIDATE_BYTES, 1 << 20, 3 << 20, MAX_BYTES, GOLDEN_BYTES)
    lengths = (MAX_CHARACTERS,)
    costs = [
        (seconds(each), each.name) for each in inputs(options.cases, options.seed, sizes=sizes, characters=lengths)
    ]
    print(
        f"{len(costs):,} inputs; processor seconds:",
        *(f"  {s:.2f} {name}" for s, name in _most_expensive(costs)),
        sep="\n",
    )
    found = list(search(options.search, options.seed))
    costs_found = [(seconds(each), each.name) for each in found]
    print(f"search, {options.search:,} texts of each of {len(_FORMS)} forms:", sep="\n")
    for name in _FORMS:
        of_form = [cost for cost in costs_found if f" {name}:" in cost[1]]
        print(*(f"  {s:.2f} {what}" for s, what in _most_expensive(of_form)[:3]), sep="\n")
    costs += costs_found
    tracemalloc.start()
    measured = (*inputs(0, 0, sizes=sizes, characters=lengths), *found)
    sizes_mb = [(megabytes(each), each.name) for each in measured]
    print("MB:", *(f"  {mb:.0f} {name}" for mb, name in _most_expensive(sizes_mb)), sep="\n")
    sys.exit(bool(wrong) or max(costs)[0] > MAX_SECONDS or max(sizes_mb)[0] > MAX_MB)


def _most_expensive(costs: list[tuple[float, str]]) -> list[tuple[float, str]]:
    return sorted(costs, reverse=True)[:12]


if __name__ == "__main__":
    main()
