"""Which part of a coder's reply is the program."""

from itertools import product

import pytest

from codea1_env.facts.submissions import RejectionReason
from codea1_env.rules.replies import MAX_CHARACTERS, read_candidate, read_suite
from codea1_env.rules.ruleset import Reading

F = "def f(x):\n    return x + 1"
OLD = "def f(x):\n    return x"
HEAD = "def f(x):\n    "
G = "def g(x):\n    return x"
USES_G = "def f(x):\n    return g(x) + 1"
BROKEN = "def f(x)\n    return x"


def strict(reply: str, entry_point: str = "f") -> str:
    return read_candidate(reply, Reading.STRICT, entry_point=entry_point).program


def release(reply: str) -> str:
    return read_candidate(reply, Reading.RELEASE, entry_point="f").program


FENCES = {
    "python": f"Here:\n```python\n{F}\n```\nDone.",
    **{
        f"label {label!r}": f"```{label}\n{F}\n```"
        for label in ("py", "Python", "python3", "", " python", "python title='a.py'", "{.python}", "solution")
    },
    "tildes": f"~~~python\n{F}\n~~~",
    "four backticks": f"````python\n{F}\n````",
    "longer closing fence": f"```python\n{F}\n`````",
    "unclosed": f"Sure!\n```python\n{F}",
    "unclosed, label only": f"```python\n{F}\n",
    "closed behind the last line": f"```python\n{F}```\nThat is all.",
    "opened behind prose": f"The program: ```python\n{F}\n```",
    "in a list": "1. So:\n\n   ```python\n   def f(x):\n       return x + 1\n   ```\n",
    "carriage returns": f"Here:\n```python\n{F}\n```\n".replace("\n", "\r\n"),
    "old Mac line ends": f"Here:\n```python\n{F}\n```\n".replace("\n", "\r"),
    "byte order mark": f"\ufeff```python\n{F}\n```",
    "only the closing fence": f"{F}\n```\n",
    "bare": F,
    "bare between prose": f"Here is the answer:\n\n{F}\n\nNote: it adds one.\nEnjoy",
    "bare, indented": "Answer below.\n\n    def f(x):\n        return x + 1\n",
}


@pytest.mark.parametrize("reply", FENCES.values(), ids=FENCES)
def test_strict_finds_the_program_in_any_fence(reply):
    assert strict(reply) == F


SEVERAL = {
    "the last that defines the entry point": (f"```python\n{OLD}\n```\nBetter:\n```python\n{F}\n```", F),
    "not one that only uses it": (f"```python\n{F}\n```\nUse:\n```python\ny = f(1)\n```", F),
    "not an unlabelled output": (f"```python\n{F}\n```\nOutput:\n```\n2\n```", F),
    "not another language": (f"```bash\nf=1\n```\n```json\n{{}}\n```\n```python\n{F}\n```\n```text\ndef f\n```", F),
    "also if it is broken": (f"```python\ny = 1\n```\n```python\n{BROKEN}\n```", BROKEN),
    "without an entry point the last that defines": (
        f"```python\n{OLD}\n```\n```python\ng = 2\n```\n```\n7\n```",
        "g = 2",
    ),
    "else the first": ("```python\na b\n```\n```python\nc d\n```", "a b"),
    "a labelled fence ends an unclosed block": (f"```\nfirst try\n```python\n{F}\n```", F),
    "inner fences of a longer one are text": (
        f"````python\n{F}\nDOC = '''\n```\nx\n```\n'''\n````",
        f"{F}\nDOC = '''\n```\nx\n```\n'''",
    ),
    "bare code beside a block of prose": (f"{F}\n```\nthis adds one\n```", F),
    "a broken bare program, for its syntax error": (f"Here is it:\n{BROKEN}", BROKEN),
    "the longest run of code if none defines it": ("a = 1\n\nsome prose here\n\nb = 2\nc = 3\n", "b = 2\nc = 3"),
    "one line": ("```python f = lambda x: x + 1```", "f = lambda x: x + 1"),
    **{
        f"not a later stub: {body!r}": (f"```python\n{F}\n```\nTogether:\n```python\n{HEAD}{body}\n```", F)
        for body in (
            "'Adds.'",
            "...",
            "pass",
            "raise NotImplementedError('you')",
            "'D.'\n    pass",
            "return ...",
            "# as above",
        )
    },
    "not a stub before bare code": (f"```python\n{HEAD}pass\n```\n{F}\n", F),
    "a stub if there is nothing else": (f"```python\n{HEAD}pass\n```", f"{HEAD}pass"),
    "a part before it": (f"```python\n{G}\n```\nSo\n```python\n{USES_G}\n```", f"{G}\n\n{USES_G}"),
    "a part behind it": (f"```python\n{USES_G}\n```\nwith\n```python\n{G}\n```", f"{USES_G}\n\n{G}"),
    "parts of parts": (
        f"```python\nimport math\n```\n```python\nx = 1\n```\n```python\ndef g(x):\n    return math.floor(x)\n```"
        f"\n```python\n{USES_G}\n```",
        f"import math\n\ndef g(x):\n    return math.floor(x)\n\n{USES_G}",
    ),
    "no part that nothing needs": (f"```python\n{G}\n```\n```python\n{F}\n```", F),
    "the last version of a part": (
        f"```python\ndef g(x):\n    return 0\n```\n```python\n{G}\n```\n```python\n{USES_G}\n```",
        f"{G}\n\n{USES_G}",
    ),
}


@pytest.mark.parametrize(("reply", "program"), SEVERAL.values(), ids=SEVERAL)
def test_strict_chooses_among_several_blocks(reply, program):
    assert strict(reply, "" if program == "g = 2" else "f") == program


@pytest.mark.parametrize(
    "program",
    [
        "import math\n\nLIMIT: int = 3\n\n\nf = lambda x: math.floor(x)",
        "class f:\n    def __new__(cls, x):\n        return x",
        "from functools import lru_cache\n\n@lru_cache\ndef f(x):\n    return x",
        "async def f(x):\n    return x",
        "try:\n    from math import f\nexcept ImportError:\n    def f(x):\n        return x",
        "try:\n    import numpy\nexcept ImportError: pass\nclass A:\n    import math\ndef f(x):\n    return x",
        # white space stays, too
        'def f(x):\n    """\n  \n    Doc.\t\n    """\n   \n    return x  ',
    ],
)
def test_strict_keeps_every_way_to_define_the_entry_point(program):
    helper = "```python\ndef g():\n    pass\n```\n"
    assert strict(f"{helper}```python\n{program}\n```\n{helper}") == program
    assert strict(f"Some words first.\n\n{program}\n\nAnd last words.") == program


def test_strict_keeps_a_broken_bare_program_without_an_entry_point():
    assert strict("def g(x)\n  return", entry_point="") == "def g(x)\n  return"


@pytest.mark.parametrize(
    "reply",
    [
        *("I cannot do this.", "Sorry", "Note: nothing", "42", "x < y"),
        *(f"```{code}\n```" for code in ("python\n", "json\n{}", "bash\nls")),
    ],
)
def test_strict_says_that_there_is_no_code(reply):
    candidate = read_candidate(reply, Reading.STRICT, entry_point="f")
    assert (candidate.program, candidate.rejection.reason) == ("", RejectionReason.NO_CODE)


@pytest.mark.parametrize("reading", Reading)
@pytest.mark.parametrize("reply", ["", " \n\t\r\n ", "\n" * 1000])
def test_a_blank_reply_is_an_empty_reply_and_an_empty_suite_d20(reply, reading):
    candidate, suite = (read(reply, reading, entry_point="f") for read in (read_candidate, read_suite))
    assert (candidate.program, candidate.rejection.reason) == ("", RejectionReason.EMPTY_REPLY)
    assert (suite.cases, [each.reason for each in suite.rejections]) == ((), [RejectionReason.EMPTY_REPLY])


@pytest.mark.parametrize("reading", Reading)
def test_a_reply_that_is_too_long_is_not_read(reading):
    candidate = read_candidate("x" * (MAX_CHARACTERS + 1), reading)
    assert candidate.rejection.reason is RejectionReason.TOO_LONG
    assert len(candidate.rejection.source) == 200
    assert f"{MAX_CHARACTERS + 1:,} characters" in candidate.rejection.detail
    assert read_candidate("f = 1", reading, max_program_bytes=5).rejection is None
    assert read_candidate("f = 1", reading, max_program_bytes=4).rejection.reason is RejectionReason.TOO_LONG


RELEASED = [
    (f"Text\n```python\n{OLD}\n```\nBetter\n```python\n{F}\n```", OLD),  # the first labelled block only
    # Other fences, an unclosed block and bare code are returned whole.
    *((f"{fence}\n{F}\n```\n", f"{fence}\n{F}\n```") for fence in ("```", "```py", "```Python")),
    (f"```python\n{F}", f"```python\n{F}"),
    (f"\n\n{F}\n", F),
    ("```python\n  x = '```'\n```", "  x = '"),  # cut at any later fence, with its spaces
    ("<think>```python\n0\n```\n</think>```python\n1\n```", "0"),  # thoughts are read as well
]


@pytest.mark.parametrize(("reply", "program"), RELEASED)
def test_release_reads_as_the_release_does_d20(reply, program):
    assert release(reply) == program


def test_release_reports_an_empty_block_as_no_code():
    assert read_candidate("```python\n\n```", Reading.RELEASE).rejection.reason is RejectionReason.NO_CODE


DRAFT = "<think>Maybe\n```python\ndef f(x):\n    return 0\n```\n"


@pytest.mark.parametrize("start", [DRAFT, DRAFT.removeprefix("<think>"), DRAFT.replace("<think>", "\n<Thinking>\n")])
def test_a_program_that_was_only_thought_of_is_not_the_answer(start):
    reply = f"{start}No.\n</think>\n\n```python\ndef f(x):\n    return 1\n```"
    assert strict(reply) == "def f(x):\n    return 1"
    assert strict(f"{start}No.</think>\nI give up.") == ""


def test_a_reply_that_never_stops_thinking_holds_neither_a_program_nor_tests():
    reply = f"{DRAFT}```python\nassert f(1) == 1\n```\nassert f(2) == 2"
    candidate, suite = (read(reply, Reading.STRICT, entry_point="f") for read in (read_candidate, read_suite))
    assert (candidate.program, suite.cases, len(suite.rejections)) == ("", (), 1)
    for rejection in (candidate.rejection, *suite.rejections):
        assert rejection.reason is RejectionReason.NO_CODE
        assert "thinking" in rejection.detail


def test_tags_within_a_program_are_no_thoughts():
    program = "def f(x):\n    return x.split('</think>')[-1].removeprefix('<think>')"
    for reply in (program, f"```python\n{program}\n```", f"<think>a</think>\n```\n{program}\n```"):
        assert strict(reply) == program


def documented(fence: str, margin: str = "    ", label: str = "") -> str:
    """A program whose docstring holds a fenced example."""
    example = f"{margin}{fence}{label}\n{margin}>>> f(1)\n{margin}{fence}\n"
    return f'def f(x):\n    """Add one.\n\n{example}    """\n    return x + 1'


@pytest.mark.parametrize("fence", ["```", "~~~", "````"])
@pytest.mark.parametrize("outer", ["```python", "```", "```py"])
def test_a_fence_in_a_docstring_cuts_no_program(outer, fence):
    for margin, label in product(("", "  ", "    ", "        "), ("", "python", "text")):
        program = documented(fence, margin, label)
        reply = f"Here:\n{outer}\n{program}\n```\nIt prints\n```\n2\n```\nand `x`."
        assert strict(reply) == program


def test_a_fence_in_a_docstring_cuts_no_program_that_is_indented_or_unclosed():
    program = documented("```")
    indented = "1. So:\n\n" + f"```python\n{program}\n```".replace("\n", "\n     ").replace(
        "```python", "     ```python", 1
    )
    for reply in (indented, f"```python\n{program}"):
        assert strict(reply) == program


@pytest.mark.parametrize(
    ("reply", "program"),
    [
        # No longer block is Python: the first fence ends it.
        ("```python\ndef f(x):\n    '''Broken\n```\nThat is\n```\n2\n```", "def f(x):\n    '''Broken"),
        ("```python\nx = '''\n```\ny = '''\n```python\ndef f(x): pass\n```", "def f(x): pass"),
        # A quote that closes elsewhere does not join two blocks.
        ("```python\ndef f(x):\n    return 1\n```\nNot '''this\n```\nthat'''\n```", "def f(x):\n    return 1"),
        # A fence far to the right is none, unless nothing else ends the block.
        ("```python\ndef f(x):\n    return 1\n        ```\nDone.", "def f(x):\n    return 1"),
    ],
)
def test_where_a_block_ends_otherwise(reply, program):
    assert strict(reply) == program


def test_tests_are_read_beyond_a_fence_in_quotes():
    reply = '```python\nexpected = """\n```\nx\n```\n"""\nassert f("a") == expected\n```'
    (case,) = read_suite(reply, Reading.STRICT, entry_point="f").cases
    assert case.prediction == repr("\n```\nx\n```\n")
