"""Where the sides of a test stand in the reply: cut out of it, they are what the tester wrote there."""

import random
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_env.facts.submissions import Span, TestCase
from codea1_env.rules.replies import read_suite
from codea1_env.rules.ruleset import Reading
from tests.codea1_env.rules.test_replies_any_text import SNIPPETS
from tests.support.replies import bare
from tests.support.toys import fenced


def cut(reply: str, spans: tuple[Span, ...]) -> str:
    return " ~ ".join(reply[start:end] for start, end in spans)


def sides(reply: str) -> list[str]:
    """Return `input | answer` of each case, as cut out of the reply."""
    found = [case.written for case in bare(reply).cases]
    assert None not in found
    return [f"{cut(reply, each.input)} | {cut(reply, each.answer)}" for each in found]


CLASS = (
    "import unittest\nclass T(unittest.TestCase):\n    def setUp(self):\n        self.x = [1]\n    def test(self):\n"
)
BROKEN = "assert f(x oops\ndef test():\n    assert f(x) == 3\n    broken (\n    assert 4 == f(x)"
FORMS = [
    ("assert f(1) == 2; assert 3 == f(2)", ["f(1) | 2", "f(2) | 3"]),
    ("assert (f(1)) == (\n    2 +\n    3)", ["f(1) | 2 +\n    3"]),
    ("assert f('é') == 'ü'; assert f('ä') == {'ö': 1}", ["f('é') | 'ü'", "f('ä') | {'ö': 1}"]),
    ("assert not f(1) != 2", ["f(1) | 2"]),
    ("assert bool(2 == f(+1)) is True", ["f(+1) | 2"]),
    ("assert f(1) is None", ["f(1) | None"]),
    ("assert f(1) in [2]", ["f(1) | [2]"]),
    ("assert f(3) > 2", ["f(3) > 2 | "]),
    ("assert f(1) == f(2)", ["f(1) == f(2) | "]),
    ("import pytest\nassert f(1) == pytest.approx(2.5)", ["f(1) == pytest.approx(2.5) | "]),
    ("import pytest\nwith pytest.raises(ValueError):\n    f(1)", ["ValueError ~ f(1) | "]),
    ("x = [1]\npytest.raises(KeyError, lambda: f(x))", ["[1] ~ pytest.raises(KeyError, lambda: f(x)) | "]),
    ("try:\n    f(1)\n    assert False\nexcept ValueError:\n    pass", ["f(1) ~ ValueError | "]),
    ("x = [1, 2]\nassert f(x) == 3", ["[1, 2] ~ f(x) | 3"]),
    ("x = [1, 2]\nassert f(x) == x", ["f(x) | x"]),
    ("x = 1; y = [x]; want = 2\nassert f(y) == want", ["1 ~ [x] ~ f(y) | 2 ~ want"]),
    ("got = f(1)\nassert got == 2", ["f(1) ~ got | 2"]),
    ("ok = f(1) == 2\nassert ok is True", ["f(1) | 2"]),
    ("x = [1]\nf(x)\nassert x == [2]", ["[1] ~ f(x) ~ x | [2]"]),
    ("x = 1\nassert f(f'{x}') == '1'", ["1 ~ f(f'{x}') | '1'"]),
    (f"{CLASS}        self.assertEqual(2, f(self.x))", ["[1] ~ f(self.x) | 2"]),
    (f"{CLASS}        y = f(1)\n        self.assertEqual(y, 2)", ["f(1) ~ y | 2"]),
    (f"{CLASS}        self.assertIn(2, f(self.x))", ["[1] ~ self.assertIn(2, f(self.x)) | "]),
    (f"{CLASS}        self.assertCountEqual(f(1), [2])", ["self.assertCountEqual(f(1), [2]) | "]),
    (f"{CLASS}        self.assertSequenceEqual(f(1), [2])", ["f(1) | [2]"]),
    (f"{CLASS}        self.assertIsNone(f(1))", ["f(1) | "]),
    (f"{CLASS}        self.assertRaises(ValueError, f, 1)", ["self.assertRaises(ValueError, f, 1) | "]),
    ("def check(candidate):\n    assert candidate(1) == 2", ["candidate(1) | 2"]),
    ("def t(a, b=[4]):\n    assert f(a) == b\nt(1, 2)\nt(3)", ["f(a) ~ 1 | b ~ 2", "f(a) ~ 3 | [4] ~ b"]),
    ("for a in [{'in': 1, 'out': 2}]:\n    assert f(a['in']) == a['out']", ["1 ~ f(a['in']) | 2 ~ a['out']"]),
    (f"x = 1\n{BROKEN}", ["1 ~ f(x) | 3", "1 ~ f(x) | 4"]),
    ("x = 1\nassert f(x oops\ny = 2\nassert f(y) == 3", ["2 ~ f(y) | 3"]),
]  # fmt: skip


AROUND = (
    *(str, fenced),
    "Text\n\n```py\n{}".format,
    "<think>\nassert f(0) == 0\n</think>\n{}".format,
    lambda text: "\n" * 9_000 + fenced(text),
)


@pytest.mark.parametrize("wrap", AROUND)
@pytest.mark.parametrize(("text", "expected"), FORMS)
def test_the_sides_of_a_form(text: str, expected: list[str], wrap: Callable[[str], str]):
    assert sides(wrap(text)) == expected


@pytest.mark.parametrize(
    "reply",
    [
        *("Here: ```python\nassert f(1) == 2```", "```assert f(1) == 2```", "   ```py\n   assert f(1) == 2\n   ```"),
        *("1. **assert f(1) == 2:** assert f(1) == 2", "- `assert f(1) == 2` holds, assert f(1) == 2"),
        *("<answer>assert f(1) == 2</answer>", "\ufeffassert f(1) == 2<|im_end|>"),
        *("```python\r\nassert f(1) == 2\r\n```", "assert\xa0f(1) == \u200b2"),
        "\xa0".join(["```python\nassert", "f(1)", "==", "2\n```"]),
    ],
)
def test_the_statement_is_cut_out_of_any_wrapping(reply: str):
    (case,) = bare(reply).cases
    written = case.written
    assert cut(reply, (written.statement,)).translate({0xA0: " ", 0x200B: ""}) == "assert f(1) == 2"
    assert sides(reply) == ["f(1) | 2"]
    assert written.statement.start == (reply.rindex("assert") if "**" in reply else reply.index("assert"))


def test_messages_count_the_lines_of_a_piece_wherever_it_stands():
    broken = fenced("assert f(\n  1] == 2")
    (one,), (other,) = (bare(text).rejections for text in (broken, f"\n\n\n{broken}"))
    assert one.detail == other.detail
    assert other.line == one.line + 3


def test_who_wrote_no_reply_has_no_place():
    assert TestCase("f(1)", "2").written is None
    assert read_suite("assert f(1) == 2", Reading.RELEASE, entry_point="f").cases[0].written is None
    assert TestCase("f(1)", "2", line=1, direct=True) == bare("assert f(1) == 2").cases[0]


METHOD = "    def test_{n}(self): self.assertEqual(f({0}, {1}), {2})"
DECORATOR, BODY = "@pytest.mark.parametrize('a, b, c'", "assert f(a, b) == c"
Item = tuple[str, str, str]


def _item(rng: random.Random, n: int) -> Item:
    word, gap = rng.choice(["a", "é", "😀", "#", "x == y"]), rng.choice(["", " ", "\n        "])
    arg = rng.choice([f"{n}1", f"[{n}1,{gap}2]", f"'{word}{n}'", f"{{'{word}{n}': [{gap}{n}]}}", f"-{n}1.5"])
    answer = rng.choice([f"{n}3", f"'{n}{word}'", f"({n}3,{gap}'{word}')", "None", f"[{gap}'{word}', {n}3]"])
    return arg, f"{n}2", answer


def _rows(items: list[Item]) -> str:
    return ",\n    ".join(f"({', '.join(item)})" for item in items)


def _each(line: str, join: str = "\n") -> Callable[[list[Item]], str]:
    return lambda items: join.join(line.format(*item, n=n) for n, item in enumerate(items))


DIRECT, PARAMETERS = ("f({0}, {1})", "{2}"), ("{0} ~ {1} ~ f(a, b)", "{2} ~ c")
TEMPLATES: dict[str, tuple[Callable[[list[Item]], str], tuple[str, str]]] = {
    "asserts": (_each("assert f({0}, {1}) == {2}"), DIRECT),
    "turned": (_each("assert {2} == f({0}, {1})"), DIRECT),
    "on one line": (_each("assert f({0}, {1}) == {2}", "; "), DIRECT),
    "functions": (_each("def test_{n}():\n    assert f({0}, {1}) == {2}, 'message'"), DIRECT),
    "names": (_each("a = {0}; b = {1}\nc = {2}\nassert f(a, b) == c"), PARAMETERS),
    "unittest": (
        lambda items: f"class T(unittest.TestCase):\n{_each(METHOD)(items)}",
        DIRECT,
    ),
    "parametrize": (lambda items: f"{DECORATOR}, [{_rows(items)}])\ndef test(a, b, c):\n    {BODY}", PARAMETERS),
    "loop": (lambda items: f"for a, b, c in [{_rows(items)}]:\n    assert f(a, b) == c", PARAMETERS),
    "table": (lambda items: f"rows = [{_rows(items)}]\nfor a, b, c in rows:\n    assert f(a, b) == c", PARAMETERS),
    "helper": (
        lambda items: f"def check(a, b, c):\n    assert f(a, b) == c\n{_each('check({0}, c={2}, b={1})')(items)}",
        PARAMETERS,
    ),
    "fixtures": (
        _each("@pytest.fixture\ndef a{n}():\n    return {0}\ndef test_{n}(a{n}):\n    assert f(a{n}, {1}) == {2}"),
        ("{0} ~ f(a{n}, {1})", "{2}"),
    ),
    "properties": (_each("assert f({0}, {1}) != {2}"), ("f({0}, {1}) != {2}", "")),
    "listed": (_each("{n}. `assert f({0}, {1}) == {2}`"), DIRECT),
}  # fmt: skip
WRAPPINGS: tuple[Callable[[str], str], ...] = (
    *(str, fenced),
    "Ümlaut 😀:\n\n~~~\n{}\n~~~\nassert nothing".format,
    lambda text: "\n".join(f"   {line}" for line in fenced(text).split("\n")),
    "<think>\nassert f(0) == 1 é\n</think>\n{}".format,
    "<|im_start|>assistant\n{}<|im_end|>\n".format,
    lambda text: f"Text\n\n{fenced(text)}".replace("\n", "\r\n"),
    "\ufeffé <answer>\n```py\n{}```</answer>".format,
)


@pytest.mark.parametrize("seed", range(300))
def test_replies_made_of_templates(seed: int):
    rng = random.Random(seed)
    name = list(TEMPLATES)[seed % len(TEMPLATES)]
    write, expected = TEMPLATES[name]
    items = [_item(rng, n) for n in range(1, rng.randint(2, 5))]
    if name == "listed":
        items = [tuple(part.replace("\n", "") for part in item) for item in items]
    reply = (str if name == "listed" else rng.choice(WRAPPINGS))(write(items))
    cases = bare(reply).cases
    assert len(cases) == len(items)
    for n, (case, item) in enumerate(zip(cases, items, strict=True)):
        given, answer = cut(reply, case.written.input), cut(reply, case.written.answer)
        wanted = sorted(side.format(*item, n=n) for side in expected)
        found = [_plain(given), _plain(answer)]
        assert sorted(sorted(side.split(" ~ ")) for side in found) == sorted(
            sorted(_plain(side).split(" ~ ")) for side in wanted
        )
        assert case.written.statement.start < case.written.statement.end
        if expected is DIRECT:
            again = bare(f"assert ({given}) == ({answer})").cases
            assert again[0].to_assert() == case.to_assert()


def _plain(text: str) -> str:
    """Return an expression without the indentation of its lines, which wrappings change."""
    return "".join(line.strip() for line in text.replace("\r", "").split("\n"))


def check_spans(reply: str) -> None:
    for case in bare(reply).cases:
        written = case.written
        assert written.input
        assert reply[slice(*written.statement)].strip()
        for side in (written.input, written.answer):
            ends = [0, *(offset for span in side for offset in span), len(reply)]
            assert ends == sorted(ends)
            assert all(start < end for start, end in side)
        both = sorted((*written.input, *written.answer))
        assert all(one.end <= other.start for one, other in pairwise(both))


@given(
    st.lists(st.one_of(st.sampled_from([*SNIPPETS, "assert f(x) == [1, 'é']\n", "x = f(2)\n"]), st.text(max_size=4)))
)
def test_spans_of_any_text(parts: list[str]):
    check_spans("".join(parts))


LINES = [
    *("x = [1, 'é']", "y = [x, x]", "x = y", "assert f(x) == y", "f(x)", "assert x == 2", "(", "  ", "```", "</s>"),
    "\r",
]


@given(st.lists(st.sampled_from(LINES)))
def test_spans_of_shared_values(lines: list[str]):
    check_spans("\n".join(lines))


def test_values_that_double_have_few_spans():
    doubling = "\n".join(f"x{n + 1} = [x{n}, x{n}]" for n in range(7))
    (case,) = bare(f"x0 = 1\n{doubling}\nassert f(x7) == 0").cases
    assert len(case.written.input) == 9
