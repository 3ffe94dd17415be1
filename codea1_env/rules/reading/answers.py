"""The answer in a reply: what is left of the text as written once everything that only wraps it is gone.

Both readers get it, so neither knows what chat templates write. In order:

- Line ends become line feeds.
- Reasoning is not part of the answer. A section begins with `<think>` (or a tag of the table) at the start of a line
  and ends with a closing tag. Chat templates often write the opening tag into the prompt, so a reply may begin in the
  middle of a section: then everything up to a closing tag at the end of a line is reasoning, too. A section without a
  closing tag extends to the end of the reply. Of several channels (`<|channel|>analysis<|message|>...`) only `final` is
  the answer.
- Tokens that begin and end turns, and tags around an answer. A turn's token within a line ends what the line says.
- Characters that word processors write for Python's: typographic quotes, spaces that do not break.

Nothing within a string literal changes. Literals are sought in each fence and in each text between fences by itself, so
that quotes which prose leaves open do not turn those of a program inside out. Every step keeps the number of lines, and
`Answer.offset` leads back to the reply as written.

**Fences.** A fence is three or more backticks or tildes with any indentation and info string. The closing fence has at
least as many of the same characters, no info string, and at most three more columns of indentation. The end of the
reply also closes a block. Four forms go beyond CommonMark: a fence labelled Python may follow prose on its line, a
closing fence may follow the last line of code, a whole block may stand on one line, and a labelled fence ends an
unclosed block.

A fence within a triple-quoted string is part of the program. The block then continues to the first fence outside such a
string, provided that its text is Python. Otherwise it ends at the first fence.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from operator import itemgetter
from textwrap import dedent
from typing import NamedTuple

from codea1_env.python_text import TextBudget, UnreadableError, parse
from codea1_env.rules.reading.logical_lines import has_open_quotes, literals

_PYTHON = frozenset({"py", "py3", "python", "python3"})
_OTHER_LANGUAGES = """
    bash bat c c# c++ cmd cmake console cpp cs csharp css csv diff docker dockerfile go haskell html http ini java
    javascript js json json5 jsonl jsx kotlin latex log lua make makefile markdown math matlab md mermaid out output
    perl php plain plaintext powershell ps1 r ruby rust scala sh shell shell-session sql stderr
    stdout swift terminal tex text toml traceback ts tsx txt typescript xml yaml yml zsh
"""
_NOT_PYTHON = frozenset(_OTHER_LANGUAGES.split())
_OPENING = re.compile(r"(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^`]*)$")
_OPENING_BEHIND_PROSE = re.compile(r"(?P<fence>(?<!`)`{3,})(?P<info>[ \t]*(?:python3?|py))[ \t]*$", re.IGNORECASE)
_ONE_LINE = re.compile(r"(?P<fence>`{3,})(?:(?P<info>python3?|py)\b)?[ \t]*(?P<code>[^`]+)(?P=fence)$", re.IGNORECASE)
_MAX_INDENT = 3  # columns of a closing fence, beyond those of its opening one
_LABEL = re.compile(r"[{.\s]*([\w#+-]*)")


@dataclass(frozen=True, slots=True)
class Block:
    """The text between two fences, dedented if all of it is indented."""

    label: str
    """First word of the info string in lower case; may be empty."""
    text: str
    first_line: int
    """Line of the reply that `text` begins on, from 1."""

    @property
    def is_labelled_python(self) -> bool:
        """True iff the label says Python."""
        return self.label in _PYTHON

    @property
    def may_be_python(self) -> bool:
        """True unless the label names another language, or the block is empty."""
        return self.label not in _NOT_PYTHON and bool(self.text.strip())


@dataclass(frozen=True, slots=True)
class Fenced:
    """The blocks of a reply and the text around them."""

    blocks: tuple[Block, ...]
    outside: str
    """The text around the blocks. Lines of blocks and fences are blank, so line numbers stay valid."""


@dataclass(slots=True)
class _Open:
    fence: str
    label: str
    first: int  # index of the first line of code
    indent: int = 0


def read_fences(text: str, budget: TextBudget) -> Fenced:
    """Split `text` (lines end in line feeds) into fenced blocks and the rest; accepts any text.

    Where the budget does not suffice to tell whether a fence stands in quotes, it does not.
    """
    lines = text.split("\n")
    outside = list(lines)
    blocks: list[Block] = []
    opened: _Open | None = None
    quotes = _Quotes(lines, budget)
    skipped = 0  # lines before it are part of a block
    for index, line in enumerate(lines):
        if index < skipped:
            continue
        closes = opened is not None and _closes(line, opened)
        new = None if closes else _opening(line, index, inside=opened)
        if opened is not None and (closes or new is not None):
            end = quotes.end_of_block(opened, index)
            if closes or end > index:
                blocks.append(_block(lines, opened, end))
                _blank(outside, opened.first - 1, end + 1)
                opened, skipped = None, end + 1
            else:
                blocks.append(_unclosed(lines, outside, opened, index, quotes))
                opened = new
        elif new is not None:
            if not blocks and quotes.are_open(index) and _is_python(text, budget):
                return Fenced((), text)  # a program whose literals and comments hold fences
            opened = new
        elif opened is None and (whole := _ONE_LINE.match(line.strip())) is not None:
            blocks.append(Block((whole["info"] or "").lower(), whole["code"].strip(), index + 1))
            outside[index] = ""
    if opened is not None:
        blocks.append(_unclosed(lines, outside, opened, len(lines), quotes))
    return Fenced(tuple(blocks), "\n".join(outside))


@dataclass(slots=True)
class _Quotes:
    """Finds the fences that stand in quotes and are therefore part of a program."""

    lines: Sequence[str]
    budget: TextBudget
    _ends: list[int] = field(init=False)
    """How many characters come before each line."""

    def __post_init__(self) -> None:
        self._ends = list(accumulate((len(line) + 1 for line in self.lines), initial=0))

    def are_open(self, index: int) -> bool:
        """Whether a line outside of blocks stands in triple quotes, or is a comment."""
        return self.lines[index].lstrip().startswith("#") or self._is_quoted(_Open("", "", 0), index)

    def end_of_block(self, opened: _Open, first: int) -> int:
        """Return the line that ends a block: line `first`, its first fence, or a later one if `first` is quoted."""
        if opened.label in _NOT_PYTHON or not self._is_quoted(opened, first):
            return first
        try:
            self.budget.take_steps(len(self.lines) - first)
        except UnreadableError:
            return first
        for end in range(first + 1, len(self.lines) + 1):
            is_end = end == len(self.lines) or _closes(self.lines[end], opened)
            if is_end and not self._is_quoted(opened, end):
                return end if _is_python(self._code(opened, end), self.budget) else first
        return first

    def _is_quoted(self, opened: _Open, index: int) -> bool:
        try:
            self.budget.take_characters(self._ends[index] - self._ends[opened.first])
        except UnreadableError:
            return False
        code = self._code(opened, index)
        return ('"""' in code or "'''" in code) and has_open_quotes(code)

    def _code(self, opened: _Open, end: int) -> str:
        return "\n".join(self.lines[opened.first : end])


def _is_python(code: str, budget: TextBudget) -> bool:
    try:
        return bool(parse(without_margin(code), budget).body)
    except UnreadableError:
        return False


def without_margin(text: str) -> str:
    """Return `text` without the white space that all of its lines begin with; as it is if the first line has none."""
    has_margin = text.lstrip("\n").startswith((" ", "\t"))
    return dedent(text) if has_margin else text  # dedent would also empty lines of white space, within strings too


def _closes(line: str, opened: _Open) -> bool:
    body = line.strip()
    is_fence = body.startswith(opened.fence) and not body.strip(opened.fence[0])
    return is_fence and _indent(line) <= opened.indent + _MAX_INDENT


def _indent(line: str) -> int:
    return len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())


def _opening(line: str, index: int, *, inside: _Open | None) -> _Open | None:
    if "```" not in line and "~~~" not in line:
        return None
    body = line.strip()
    match = _OPENING.match(body) or (None if inside else _OPENING_BEHIND_PROSE.search(body))
    if match is None:
        return None
    label = _LABEL.match(match["info"])
    opened = _Open(match["fence"], label.group(1).lower() if label else "", index + 1, _indent(line))
    # Within a block, only a labelled fence of the same kind can open another block.
    if inside is not None and not (opened.label in _PYTHON and opened.fence.startswith(inside.fence)):
        return None
    return opened


def _unclosed(lines: Sequence[str], outside: list[str], opened: _Open, end: int, quotes: _Quotes) -> Block:
    """End a block without a closing line at the first fence that follows code on its line, else at `end`."""
    for index in range(opened.first, end):
        body = lines[index].rstrip()
        is_comment = body.lstrip().startswith("#")
        if body.endswith(opened.fence) and not is_comment and quotes.end_of_block(opened, index) == index:
            code = [*lines[opened.first : index], body.rstrip(opened.fence[0]).rstrip()]
            _blank(outside, opened.first - 1, index + 1)
            return _block(code, _Open(opened.fence, opened.label, 0), len(code), first_line=opened.first + 1)
    _blank(outside, opened.first - 1, end)
    return _block(lines, opened, end)


def _block(lines: Sequence[str], opened: _Open, end: int, *, first_line: int | None = None) -> Block:
    text = without_margin("\n".join(lines[opened.first : end]))
    return Block(opened.label, text, opened.first + 1 if first_line is None else first_line)


def _blank(outside: list[str], first: int, end: int) -> None:
    outside[first:end] = [""] * (end - first)


_REASONING = "think thinking thought thoughts reasoning reason reflection scratchpad thinking_process inner_monologue"
_TAG = rf"(?:(?!end_)[a-z]{{1,12}}[:_])?(?:{'|'.join(_REASONING.split())})"
_BEGINS = (
    rf"(?:<{_TAG}>|<\|(?:begin_of_|start_of_|begin_|start_)?{_TAG}\|>|\[THINK\]|◁think▷|<\|inner_prefix\|>"
    r"|<\|channel>[ \t]*(?:thought|analysis|thinking)\b)"
)
_ENDS = rf"(?:</{_TAG}>|<\|(?:end_of_|end_|/){_TAG}\|>|\[/THINK\]|◁/think▷|<\|inner_suffix\|>|<channel\|>)"
_SECTION_TAG = re.compile(f"{_BEGINS}|{_ENDS}", re.IGNORECASE)
_SECTION = re.compile(rf"^[ \t]*{_BEGINS}", re.IGNORECASE | re.MULTILINE)
_OPENING_AT_ONCE = re.compile(rf"[ \t]*{_BEGINS}", re.IGNORECASE)
_CLOSING = re.compile(_ENDS, re.IGNORECASE)
_CLOSING_A_LINE = re.compile(rf"{_ENDS}[ \t]*$", re.IGNORECASE | re.MULTILINE)
_MAX_CHECKED = 32  # sections whose beginning may turn out to be quoted; each look costs one pass

_CHANNEL = r"<\|channel\|>[ \t]*{}[^<\n]*<\|message\|>"
_FIRST_CHANNEL = re.compile(r"\s*(?:<\|start\|>assistant)?" + _CHANNEL.format(r"\w+"))
_FINAL_CHANNEL = re.compile(_CHANNEL.format("final"))
_LATER_FINAL_CHANNEL = re.compile(r"<\|end\|><\|start\|>assistant" + _CHANNEL.format("final"))
# What is left of the tokens of channels where a tokenizer has dropped them.
_BARE_CHANNELS = re.compile(r"\s*analysis(?=[A-Z])(?:(?!assistantfinal).)*+assistantfinal", re.DOTALL)

_TURN = (
    r"(?:<[|\uff5c][^\s<>|\uff5c]{1,40}[|\uff5c]?>|<(?:/s|[a-z_]{1,40}\|)>|\[/INST\]|\[\|[a-z_]{1,40}\|\]|\[e~\[|\]~!?b[\[\]]"
    r"|<start_of_turn>)(?:[ \t]*(?:assistant\b|(?:model|ai)(?=[ \t]*(?:[\n<]|\Z))))?"
)
"""A token that begins or ends a turn, in the templates of known models, with the role; none of them is Python."""
_TAGS = "answer code completion final final_answer output python response solution test tests"
_ENDS_OF_TEXT = r"""
    s bos eos eod eot pad unk sep end stop (?:start|begin|beginning|end)_of_(?:turn|text|sentence|utterance) endoftext
    seed:[be]os fim_\w+ jupyter_\w+ issue_\w+ commit_\w+ file_sep filename reponame repo_name gh_stars empty_output
"""
_AROUND = f"</?(?:{'|'.join((_TAGS + _ENDS_OF_TEXT).split())})>"
"""A tag that prompts ask to put around an answer, or a token that could be an operator's part within a line."""
_FEW_SHOT = r"(?-i:\[/?(?:BEGIN|DONE|END|PYTHON|ANSWER|CODE|TESTS?|SOLUTION|INST)\])(?=[ \t]*$)"
"""A mark around an answer in prompts with examples: a list in Python, so it stands on a line of its own."""
_TURN_TOKEN = re.compile(_TURN)
_REST_OF_TURN = re.compile(_TURN + r"[^\n]*")
_BEFORE_LINE = re.compile(
    rf"^(?:[ \t]*(?:(?:{_TURN}|{_AROUND})[ \t]*){{1,8}}|{_FEW_SHOT})", re.MULTILINE | re.IGNORECASE
)
_AFTER_LINE = re.compile(rf"{_AROUND}(?:[ \t]*{_AROUND}){{0,7}}[ \t]*(?=$|{_TURN})", re.MULTILINE | re.IGNORECASE)
_NEVER_PYTHON = re.compile(r"[ \t]*(?:<[|/\uff5c]|\[[/|])")
_OPENS_INERT = frozenset("'\"#")
_LIKE_A_TAG = re.compile(r"<[/|a-zA-Z]")
_LIKE_A_MARK = (
    *("\r", "[/", "[|", "~[", "]~", "[THINK]", "[BEGIN]", "[DONE]", "[END]", " install ", "In ["),
    *("\n!", "\n%", "  !", "  %", "\t!", "\t%", "\n>>> ", ">>> assert"),
)
_ANSWER = re.compile(r"<answer>(?P<held>(?:(?!<answer>).)*?)(?:</answer>|(?=<answer>)|\Z)", re.DOTALL | re.IGNORECASE)
_HOLDS_CODE = re.compile(
    r"^[ \t]*(?:```|~~~|@|(?:async|def|class|import|from|assert|for|while|if|print)\b|\w+[ \t]*=)", re.MULTILINE
)
_NOTEBOOK_LINE = re.compile(
    r"^(?P<indent>[ \t]*)(?:(?:![ \t]*[a-zA-Z]|%{1,2}[a-zA-Z]\w*(?=[ \t]|$)"
    r"|(?:\$[ \t]+)?(?:python3?[ \t]+-m[ \t]+)?(?:pip3?|conda)[ \t]+install[ \t])[^\n]*"
    r"|(?P<prompt>(?:In \[[\d* ]*\]:|\.{3,}:) ?|(?:>>>|(?P<goes_on>\.\.\.))(?: |$))"
    r"|Out\[\d+\]:(?:[ \t]*\S[^\n]*(?:\n[ \t]+\S[^\n]*)*|(?:\n(?!In \[)[^\n]+)*))",
    re.MULTILINE,
)
"""A command, a prompt, or an output with the lines that belong to it."""
_OPENS_BODY = re.compile(r":[ \t]*(?:#[^\n]*)?\n(?:[ \t]*(?:#[^\n]*)?\n)*\Z")
_COMMENTED = re.compile(r"(?:^[ \t]*|[ \t]{2})#[ \t][^\n]*\Z", re.MULTILINE)
_NEAR = 500  # characters before a line or a tag that are looked at

_CHARACTERS = str.maketrans(
    {**dict.fromkeys("\u201c\u201d\u201e\u201f", '"'), **dict.fromkeys("\u2018\u2019\u201a\u201b", "'")}
    | {**dict.fromkeys("\xa0\u2007\u202f", " "), **dict.fromkeys("\u200b\u2060\ufeff", "")}
)
_ODD = re.compile(f"[{''.join(map(chr, _CHARACTERS))}]")
_LINE_ENDS = re.compile(r"\A\ufeff|\r\n?")


class _Edit(NamedTuple):
    """A part [start, end) of a text, and what replaces it."""

    start: int
    end: int
    text: str = ""


class _Pass(NamedTuple):
    """Edits of one text, by where their replacements start and end in the new text."""

    starts: Sequence[int]
    ends: Sequence[int]
    moved: Sequence[int]
    """How far the text before each edit, and after the last one, has moved."""

    @classmethod
    def of(cls, edits: Sequence[_Edit]) -> _Pass:
        moved = list(accumulate((len(edit.text) - (edit.end - edit.start) for edit in edits), initial=0))
        starts = [edit.start + by for edit, by in zip(edits, moved, strict=False)]
        return cls(starts, [start + len(edit.text) for start, edit in zip(starts, edits, strict=True)], moved)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer in a reply."""

    text: str
    """With as many lines as the reply; lines that are not part of the answer are empty."""
    unfinished: bool = False
    """Whether the reply ends before its answer begins: in the middle of its reasoning."""
    _passes: tuple[_Pass, ...] = ()

    def offset(self, position: int) -> int:
        """Return where a character of `text` stands in the reply as written."""
        for starts, ends, moved in reversed(self._passes):
            index = bisect_right(ends, position)
            if index < len(starts):
                position = min(position, starts[index])
            position -= moved[index]
        return position


def read_answer(reply: str, budget: TextBudget) -> Answer:
    """Return the answer in a reply; accepts any text. Finding fences in wrapped text is paid from the budget."""
    if not _may_be_wrapped(reply):  # most replies
        return Answer(reply)
    text, passes, unfinished = reply, [], False
    for step in _STEPS:
        edits = tuple(step(text, budget))
        if edits:
            passes.append(_Pass.of(edits))
            unfinished = unfinished or (step is _reasoning and edits[-1].end == len(text))
            text = _edited(text, edits)
    return Answer(text, unfinished, tuple(passes))


def _may_be_wrapped(reply: str) -> bool:
    if (
        not reply.isascii()
        or reply.startswith(("analysis", "!", "%", ">>> "))
        or any(map(reply.__contains__, _LIKE_A_MARK))
    ):
        return True
    return "<" in reply and _LIKE_A_TAG.search(reply) is not None


def _edited(text: str, edits: Iterable[_Edit]) -> str:
    parts, end = [], 0
    for edit in edits:
        parts += [text[end : edit.start], edit.text]
        end = edit.end
    return "".join([*parts, text[end:]])


def _line_ends(text: str, _: TextBudget) -> Iterator[_Edit]:
    if "\r" in text or text[:1] == "\ufeff":
        for found in _LINE_ENDS.finditer(text):
            yield _Edit(*found.span(), "\n" if found[0][0] == "\r" else "")


def _blanked(text: str, start: int, end: int) -> _Edit:
    return _Edit(start, end, "\n" * text.count("\n", start, end))


# -- reasoning -------------------------------------------------------------------------------------


def _reasoning(text: str, budget: TextBudget) -> Iterator[_Edit]:
    start = 0
    if "<|channel|>" in text or text.startswith("analysis"):
        start = _end_of_other_channels(text, budget)
        if start:
            yield _blanked(text, 0, start)
    if _SECTION_TAG.search(text, start) is not None:
        yield from _sections(text, start, _Parts(text, budget))


def _end_of_other_channels(text: str, budget: TextBudget) -> int:
    if _FIRST_CHANNEL.match(text) is not None:
        final = _FINAL_CHANNEL.search(text)
        return len(text) if final is None else final.end()
    bare = _BARE_CHANNELS.match(text)
    if bare is not None:
        return bare.end()
    later = _LATER_FINAL_CHANNEL.search(text)
    is_quoted = later is not None and _within(later.start(), _spans(text, budget))
    return 0 if later is None or is_quoted else later.end()


@dataclass(slots=True)
class _Parts:
    """The texts in fences and those around them."""

    text: str
    budget: TextBudget
    _cuts: Sequence[int] = field(init=False)
    _is_python: dict[int, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._cuts = _cuts(self.text, self.budget)

    def is_quoted(self, start: int, position: int) -> bool:
        """Whether a position stands in triple quotes that close: those of reasoning often do not."""
        part = bisect_right(self._cuts, position)
        before = self.text[max(start, self._cuts[part - 1]) : position]
        after = self.text[position : self._cuts[part]]
        return ('"""' in before or "'''" in before) and has_open_quotes(before) and has_open_quotes(after)

    def is_code(self, position: int) -> bool:
        """Whether a position stands in Python, outside of literals over several lines.

        A tag can only be part of a literal or of a comment there, and most of them are no operators.
        """
        line = self.text[self.text.rfind("\n", 0, position) + 1 : position]
        if _NEVER_PYTHON.match(self.text, position) and _OPENS_INERT.isdisjoint(line):
            return False
        part = bisect_right(self._cuts, position)
        if part not in self._is_python:
            self._is_python[part] = _is_python(self.text[self._cuts[part - 1] : self._cuts[part]], self.budget)
        return self._is_python[part]


def _sections(text: str, position: int, parts: _Parts) -> Iterator[_Edit]:
    begun = _end_of_a_section_begun_in_the_prompt(text, position, parts)
    if begun:
        yield _blanked(text, position, begun)
        position = begun
    kept = position  # where the last section has ended
    n_checked = 0
    while True:
        opening = _OPENING_AT_ONCE.match(text, position) if position == kept > 0 else None
        opening = opening or _SECTION.search(text, position)
        if opening is None:
            return
        n_checked += 1
        if n_checked <= _MAX_CHECKED and parts.is_quoted(kept, opening.end()):
            position = opening.end()
            continue
        closing = _CLOSING.search(text, opening.end())
        position = kept = len(text) if closing is None else closing.end()
        yield _blanked(text, opening.start(), kept)


def _end_of_a_section_begun_in_the_prompt(text: str, position: int, parts: _Parts) -> int:
    opening = _SECTION.search(text, position)
    for closing in _CLOSING_A_LINE.finditer(text, position, len(text) if opening is None else opening.start()):
        if parts.is_quoted(position, closing.start()):
            return 0
        is_comment = _COMMENTED.search(text, max(0, closing.start() - _NEAR), closing.start())
        if not (is_comment or parts.is_code(closing.start())):
            return closing.end()
    return 0


# -- tokens, tags, marks and characters -------------------------------------------------------------------


def _tokens(text: str, budget: TextBudget) -> Iterator[_Edit]:
    found = [(match.start(), 0, match.end()) for match in _BEFORE_LINE.finditer(text)]
    found += [(match.start(), 1, match.end()) for match in _AFTER_LINE.finditer(text)]
    for match in _TURN_TOKEN.finditer(text):
        line_end = text.find("\n", match.end())
        found.append((match.start(), 1, len(text) if line_end < 0 else line_end))
    spans, parts = (_spans(text, budget), _Parts(text, budget)) if found else ((), None)
    done = 0
    for start, _, end in sorted(found):
        is_list = text[start] == "["  # a mark on a line of its own is Python, too
        if parts and start >= done and not (_within(start, spans) or (not is_list and parts.is_code(start))):
            yield _Edit(start, end)
            done = end


def _before_and_behind_answer(text: str, budget: TextBudget) -> Iterator[_Edit]:
    """Yield what stands around the last `<answer>` that holds code: the others in the reply are drafts and examples."""
    if "<answer>" not in text:
        return
    spans, parts = _spans(text, budget), _Parts(text, budget)
    found = (m for m in _ANSWER.finditer(text) if not (_within(m.start(), spans) or parts.is_code(m.start())))
    for match in reversed([match for match in found if _HOLDS_CODE.search(match["held"])]):
        yield _blanked(text, 0, match.start("held"))
        yield _blanked(text, match.end("held"), len(text))
        return


def _notebook_lines(text: str, budget: TextBudget) -> Iterator[_Edit]:
    if _NOTEBOOK_LINE.search(text) is None:
        return
    spans, parts, next_line = _spans(text, budget), _Parts(text, budget), -1
    for match in _NOTEBOOK_LINE.finditer(text):
        if match["prompt"] and (match["goes_on"] is None or match.start() == next_line):
            next_line = text.find("\n", match.end()) + 1
        elif match["goes_on"]:
            continue
        if not (_within(match.start(), spans) or parts.is_code(match.start())):
            is_body = match["prompt"] is None and _OPENS_BODY.search(text, max(0, match.start() - _NEAR), match.start())
            yield _Edit(*match.span(), f"{match['indent']}pass") if is_body else _blanked(text, *match.span())


def _characters(text: str, budget: TextBudget) -> Iterator[_Edit]:
    if text.isascii():
        return
    spans = _spans(text, budget)
    for match in _ODD.finditer(text):
        if not _within(match.start(), spans):
            yield _Edit(*match.span(), match[0].translate(_CHARACTERS))


_Span = tuple[int, int]


def _spans(text: str, budget: TextBudget) -> Sequence[_Span]:
    """Return the places of the string literals and of the comments of a text."""
    return [
        (begin + start, begin + end)
        for begin, stop in pairwise(_cuts(text, budget))
        for start, end in literals(text[begin:stop])
    ]


def _cuts(text: str, budget: TextBudget) -> Sequence[int]:
    """Return where the texts in fences and those around them begin, and a number after the end of the last one."""
    begins = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    found = {0, len(begins) - 1}
    if "```" in text or "~~~" in text:
        without_tokens = _REST_OF_TURN.sub("", _BEFORE_LINE.sub("", _AFTER_LINE.sub("", text)))
        for block in read_fences(without_tokens, budget).blocks:
            found |= {block.first_line - 1, block.first_line + block.text.count("\n")}
    return [begins[line] for line in sorted(found) if line < len(begins)]


def _within(position: int, spans: Sequence[_Span]) -> bool:
    index = bisect_right(spans, position, key=itemgetter(0)) - 1
    return index >= 0 and position < spans[index][1]


_STEPS: tuple[Callable[[str, TextBudget], Iterator[_Edit]], ...] = (
    _line_ends,
    _reasoning,
    _before_and_behind_answer,
    _tokens,
    _notebook_lines,
    _characters,
)
