"""The answer in a reply: what wraps it goes, what is quoted stays, and every place leads back to the reply."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_env.python_text import TextBudget
from codea1_env.rules.reading.answers import read_answer
from codea1_env.rules.replies import read_candidate, read_suite
from codea1_env.rules.ruleset import Reading
from tests.support.toys import fenced

PROGRAM = "def f(n):\n    return n"
TOKENS = [
    *("<|im_end|>", "</s>", "<|endoftext|>", "<|eot_id|>", "<end_of_turn>", "<\uff5cend\u2581of\u2581sentence\uff5c>"),
    *("<eos>", "[|endofturn|]", "<turn|>", "[e~[", "<seed:eos>", "<|END_RESPONSE|>", "<jupyter_text>"),
]
WRAPPED = {
    **{f"a fence, {token}": f"{fenced(PROGRAM)}{token}" for token in [*TOKENS, "</answer>", "</answer><|im_end|>"]},
    **{f"a line, {token}": PROGRAM + token for token in TOKENS},
    "tags on lines of their own": f"<answer>\n{fenced(PROGRAM)}\n</answer>\n<|im_end|>",
    "tags around bare code": f"<answer>{PROGRAM}</answer>",
    "a tag before a fence": f"Sure.\n<solution>{fenced(PROGRAM)}</solution>",
    "a whole turn": f"<|im_start|>assistant\n{PROGRAM}<|im_end|>\n",
    "another turn": f"<|start_header_id|>assistant<|end_header_id|>\n\n{fenced(PROGRAM)}<|eot_id|>",
    "text after the turn": f"{PROGRAM}<|endoftext|>Human: thanks",
    "line ends": fenced(PROGRAM).replace("\n", "\r\n"),
    "a byte order mark": "\ufeff" + PROGRAM,
    "spaces that do not break": PROGRAM.replace("    ", "\xa0\xa0\xa0\xa0"),
    "channels": f"<|channel|>analysis<|message|>{fenced('def f(): 0')} don't<|end|><|start|>assistant"
    f"<|channel|>final<|message|>{fenced(PROGRAM)}<|return|>",
    "channels after the prompt's": f"no<|end|><|start|>assistant<|channel|>final<|message|>{PROGRAM}",
    "channels without tokens": f"analysisWe need f. def f(): 0assistantfinal{fenced(PROGRAM)}",
    "reasoning in other tags": f"<reasoning>\n{fenced('def f(): 0')}\n</reasoning>\n{fenced(PROGRAM)}",
    "reasoning begun in the prompt": f'Use """.\n{fenced("def f(): 0")}\n</think>\n{fenced(PROGRAM)}',
}

DRAFT = fenced("def f(n): return 0")
TURNS = [
    *("<|start_of_role|>assistant<|end_of_role|>", "<|header_start|>assistant<|header_end|>\n\n", "[|assistant|]"),
    *("<|turn>model\n", "]~b]ai\n", "<seed:bos>assistant\n", "<|START_RESPONSE|>"),
]
THOUGHTS = [
    *(
        ("<seed:think>", "</seed:think>"),
        ("<|START_THINKING|>", "<|END_THINKING|>"),
        ("<|channel>thought", "<channel|>"),
    ),
    *(("<longcat_think>", "</longcat_think>"), ("<|inner_prefix|>", "<|inner_suffix|>")),
]
NOTEBOOK = [
    "!pip install x",
    "%matplotlib inline",
    "%%time",
    "pip install x",
    "python -m pip install x",
    "! ls",
    "$ pip3 install x",
    "conda install x",
]
TRANSCRIPT = "In [1]: " + PROGRAM.replace("\n", "\n   ...: ") + "\n   ...: \n\nIn [2]: f(1)\nOut[2]: <a b>\n  <c d>\n"
WRAPPED |= {
    **{f"turn {start}": start + fenced(PROGRAM) for start in TURNS},
    **{f"reasoning {start}": f"{start}\n{DRAFT}{end}\n{PROGRAM}" for start, end in THOUGHTS},
    **{f"a line {line}": fenced(f"{line}\n{PROGRAM}") for line in NOTEBOOK},
    **{f"indented {line}": fenced(f"{PROGRAM}\nif f:  # first\n    # it\n    {line}\n    {line}") for line in NOTEBOOK},
    **{f"{name} in a notebook": wrap(TRANSCRIPT) for name, wrap in (("a fence", fenced), ("a bare reply", str))},
    "headers of cells": fenced(f"In [1]:\n{PROGRAM}\n\nIn [ ]:\nf(1)\n\nOut[2]:\n<a b>\n<c d>\n"),
    "a number sign in reasoning": f"{DRAFT}\nas in C# 7, issue #3</think>\n{PROGRAM}",
    "a line in a bare reply": f"!pip install numpy\n{PROGRAM}",
    "marks of few-shot prompts": f"[BEGIN]\n{PROGRAM}\n[DONE]\n",
    "other marks of few-shot prompts": f"[PYTHON]\n{PROGRAM}\n[/PYTHON]",
    "an answer before other fences": f"<answer>\n{fenced(PROGRAM)}</answer>\nA variant:\n{DRAFT}",
    "an answer behind a draft, unclosed": f"{DRAFT}\n<answer>{PROGRAM}",
    "an answer that holds no code": f"{fenced(PROGRAM)}\nSo <answer>42</answer>",
    "tags that are only named": f"I write <answer> and </answer>.\n{fenced(PROGRAM)}",
}


@pytest.mark.parametrize("reply", WRAPPED.values(), ids=WRAPPED)
def test_what_wraps_a_program_is_no_part_of_it(reply):
    assert read_candidate(reply, Reading.STRICT, entry_point="f").program.rstrip() == PROGRAM


@pytest.mark.parametrize("token", [*TOKENS, "</answer>", "\n```</answer>", "\n<|im_end|>"])
def test_what_ends_a_suite_is_no_part_of_its_last_assert(token):
    suite = read_suite(f"assert f(1) == 2{token}", Reading.STRICT, entry_point="f")
    assert [case.to_assert() for case in suite.cases] == ["assert f(1) == 2"]


@pytest.mark.parametrize(
    ("quoted", "meant"),
    [("f(\u201ca\u201d) == \u2018b\u2019", "f('a') == 'b'"), ("f(\u201cit's\u201d) == 1", 'f("it\'s") == 1')],
)
def test_typographic_quotes_around_a_text_are_quotes(quoted, meant):
    suite = read_suite(fenced(f"assert {quoted}"), Reading.STRICT, entry_point="f")
    assert [case.to_assert() for case in suite.cases] == [f"assert {meant}"]


INSIDE = [
    *TOKENS,
    *("</answer>", "<answer>", "<think>", "</think>", "\u201cquoted\u201d, it\u2019s", "\xa0", "\ufeff"),
    "<|channel|>final<|message|>",
    ">>> assert f(1) == 1",
]


@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize("quotes", ["'", '"', "'''", '"""'])
def test_nothing_within_a_literal_changes(inside, quotes):
    multi = f"\n{inside}\n    {inside}\n" if len(quotes) == 3 else inside
    program = f"def f():\n    return {quotes}{multi}{quotes}\nx = 1"
    assert read_candidate(fenced(program), Reading.STRICT, entry_point="f").program == program


OPEN = ['Use """ for docs.', "It's '''quoted.", '```text\n"""\n```']


@pytest.mark.parametrize("inside", [*INSIDE, "<answer>x = 1</answer>", "<|x|>", "!pip", "[DONE]"])
@pytest.mark.parametrize("wrap", [str, fenced, lambda text: f"Here it's:\n\n{text}\n\nThat's all."])
def test_nothing_within_a_comment_is_a_tag(inside, wrap):
    program = f"def f(s):\n    # before {inside}\n    return s  # behind {inside}"
    found = read_candidate(wrap(program), Reading.STRICT, entry_point="f").program
    assert [line.partition("#")[0] for line in found.split("\n")] == ["def f(s):", "    ", "    return s  "]
    suite = read_suite(wrap(f"assert f(1) == 1\n# {inside}\nassert f(2) == 2"), Reading.STRICT, entry_point="f")
    assert len(suite.cases) == 2


def test_lines_that_look_like_those_of_a_notebook_stay_in_python():
    program = "def f(time, n):\n    return (n\n    %time\n%n)"
    assert read_candidate(fenced(program), Reading.STRICT, entry_point="f").program == program


@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize("prose", OPEN)
def test_what_prose_leaves_open_turns_no_literal_of_a_program_inside_out(prose, inside):
    program = f"def f():\n    return '{inside}' + '''{inside}\n{inside}''' + \"\"\"{inside}\n{inside}\"\"\""
    reply = f"{prose}\n{fenced(program)}<|im_end|>\n{prose}\u201c\n"
    assert read_candidate(reply, Reading.STRICT, entry_point="f").program == program


@pytest.mark.parametrize("code", ["x = [BOS] + [EOS]", "if a <s> b:\n    pass", "x = a <b> c", "x = [INST]"])
def test_python_that_looks_like_a_token_stays(code):
    assert read_answer(code, TextBudget()).text == code


PIECES = [
    *("a", "\n", "\r\n", "\r", "<|im_end|>", "</answer>", "<think>", "</think>", "'", '"""', "#", " ", "\u201c"),
    *("\ufeff", "```", "\xa0"),
]


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
def test_every_character_of_an_answer_leads_back_to_the_reply(reply):
    answer = read_answer(reply, TextBudget())
    offsets = [answer.offset(position) for position in range(len(answer.text))]
    assert offsets == sorted(offsets)
    for character, offset in zip(answer.text, offsets, strict=True):
        assert character == reply[offset] or reply[offset] in "\r\u201c\xa0" or character == "\n"
    assert answer.text.count("\n") == reply.replace("\r\n", "\n").replace("\r", "\n").count("\n")


WHOLE = {
    "a fence in a docstring": "def f(n):\n    '''\n    ```python\n    f(2)\n    ```\n    '''\n    return n",
    "a fence in comments": "def f(n):\n    # ```python\n    # f(2)\n    # ```\n    return n",
    "tildes in an f-string": "def f(n):\n    return f'''{n}\n~~~\n'''",
    "commands in a literal": "def f(n):\n    return '''\n!ls\n%timeit x\n$ pip install x\nIn [1]: x\n```\n'''",
    "a tag between operands": "def f(a, answer, c):\n    return a <answer> c",
    "a tag on a line of an expression": "def f(a, code, c):\n    return (a\n<code>\nc)",
    "tags in a pattern": "def f(s):\n    return re.findall(r'<answer>(.*?)</answer>', s)",
    "tokens in literals": "def f(s):\n    return s.replace('<|im_end|>', '').split('</think>')",
    "a token in a comment": "def f(s):\n    return s  # drops </s>",
}


@pytest.mark.parametrize("code", WHOLE.values(), ids=WHOLE)
@pytest.mark.parametrize(
    "reply", ["{}", "Here:\n```python\n{}\n```\nDone.", "```python\n{}", "````\n{}\n````<|im_end|>"]
)
def test_no_character_of_a_program_is_lost(code, reply):
    assert read_candidate(reply.format(code), Reading.STRICT, entry_point="f").program == code


def test_reasoning_that_the_prompt_began_ends_with_tokens_in_capitals():
    reply = "Hm.\n```python\ndef f(n):\n    return 0\n```\n<|END_THINKING|>\n```python\ndef f(n):\n    return n\n```"
    assert read_candidate(reply, Reading.STRICT, entry_point="f").program == "def f(n):\n    return n"
