"""Reads wordings, which are TOML files of message templates, and converts an observation to chat messages.

A file has tables named as in `default.toml`; missing tables are taken from `default`. `$name` is a placeholder for a
part of the observation (syntax of `string.Template`). Inserted text is not read as a template again, so dollar signs in
a program stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from math import inf
from pathlib import Path
from string import Template
from typing import Any, Literal, get_args

from codea1_agents.scripted.fences import fenced_reply
from codea1_agents.scripted.literals import call_text
from codea1_agents.scripted.signatures import interface_of
from codea1_agents.scripted.typed_inputs import boundary_calls
from codea1_env.agent import Info, Observation
from codea1_env.errors import BrokenInput, UnknownName, UserError, whole_number
from codea1_env.facts.entry_points import read_entry_point
from codea1_env.facts.problem_kinds import ProblemKind
from codea1_env.records.faults import read_file, read_toml

Speaker = Literal["system", "user", "assistant"]

TURN_OF_USER = "\n### User"
"""The text that a base model writes when it continues with a turn of the user; its reply ends before this text."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat."""

    role: Speaker
    content: str

    def to_dict(self) -> dict[str, str]:
        """Return the message as chat templates and OpenAI-compatible endpoints expect it."""
        return {"role": self.role, "content": self.content}


def merged(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Join consecutive messages of one role by a blank line, since many chat templates require alternating roles."""
    turns: list[Message] = []
    for message in messages:
        if turns and turns[-1].role == message.role:
            message = Message(message.role, f"{turns.pop().content}\n\n{message.content}")  # noqa: PLW2901
        turns.append(message)
    return tuple(turns)


def folded_system(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Prepend the system message to the user's message, for models without a system role."""
    return merged(Message("user", message.content) if message.role == "system" else message for message in messages)


def plain_text(messages: Sequence[Message]) -> str:
    """Return the chat as text that ends where the assistant's reply begins, for models without a chat template."""
    turns = [f"### {each.role.capitalize()}\n{each.content}\n" for each in messages]
    return "\n".join([*turns, "### Assistant\n"])


WORDINGS = ("default", "paper", "simple", "call_only", "tiny")

_TABLES = ("coder", "coder_repair", "tester_white_box", "tester_black_box", "tester_blind", "tester_repair")
_PLACEHOLDERS = (
    *("problem", "entry_point", "examples", "examples_block", "program", "program_block", "feedback", "tests"),
    *("program_form", "unit", "test_form", "test_notes"),
)
_FORMS, _PARTS = ("program_form", "unit", "test_form"), ("entry_point", "name", "method")
_KINDS = tuple(ProblemKind)
_SPEAKERS: tuple[Speaker, ...] = ("system", "assistant", "user")
_TESTS = 8
_WITH_INPUTS = "+inputs"

EXTENSIONS = {_WITH_INPUTS: "Testers also get calls with arguments of suitable types, without their values."}
"""The extensions that may follow the name of a wording, each with a sentence."""

_ABOUT, _FEEDBACK_CHARS = "about", "feedback_chars"
_INPUTS = "Calls whose arguments have suitable types, without their values:"
_MAX_CALLS = 6
_LEFT_OUT = "(...)"
_MOST_FEEDBACK_CHARS = 4000


View = Literal["white_box", "black_box", "blind"]
"""A sentence about the program in the prompt: it shows it, it says that there is a hidden one, or nothing. A blind
tester writes tests from the problem alone, as for choosing among candidates."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """One wording: the message templates of every situation."""

    name: str
    tables: Mapping[str, tuple[Message, ...]]
    """Templates by situation, complete."""
    forms: Mapping[str, Mapping[str, str]]
    """Texts by kind of problem: what a coder writes, and how a test is written."""
    feedback_chars: int = _MOST_FEEDBACK_CHARS
    """Most characters of the feedback on an earlier round. What exceeds them goes line by line, the oldest first; they
    are not tokens, so that a model behind an endpoint gets the same prompt as one that is trained."""
    shows_inputs: bool = False
    """Whether a tester's prompt ends with calls of the entry point with arguments of suitable types, without values."""

    def messages(self, observation: Observation, info: Info) -> tuple[Message, ...]:
        """Return the chat messages for a turn; the last message is the user's.

        Args:
            observation: what `codea1_env.code_a1_v0` shows the agent.
            info: must have `role`; may have `tests_per_suite` (default 8), `kind` (of the problem, default `function`)
                and `tester_view` (a `View`). Without `tester_view`, the view is white-box if the observation has a
                program, else black-box.

        Raises:
            UserError: `role`, `kind` or `tester_view` is missing or unknown.
        """
        feedback = _latest_lines(_encodable(observation["feedback"]), self.feedback_chars)
        facts = _facts(observation, info) | self._forms(observation, info) | {"feedback": feedback}
        filled = _fill(self._templates(observation, info), facts)
        if self.shows_inputs and info["role"] == "tester" and (calls := _example_calls(observation, info)):
            filled.append(Message("user", f"{_INPUTS}\n{fenced_reply(calls)}"))
        return merged(filled)

    def wants_block(self, observation: Observation, info: Info) -> bool:
        """Return whether the wording of a turn mentions a fenced block of Python, so that a reply should be one.

        Raises:
            UserError: as `messages`.
        """
        return any("```python" in template.content for template in self._templates(observation, info))

    def _templates(self, observation: Observation, info: Info) -> tuple[Message, ...]:
        role = info.get("role")
        if role not in ("coder", "tester"):
            raise UserError(f"info['role'] must be 'coder' or 'tester', got {role!r}")
        situation = "coder" if role == "coder" else f"tester_{_view(observation, info)}"
        repair = self.tables[f"{role}_repair"] if observation["feedback"] else ()
        return self.tables[situation] + tuple(template for template in repair if template.content)

    def _forms(self, observation: Observation, info: Info) -> dict[str, str]:
        kind = info.get("kind", ProblemKind.FUNCTION)
        if kind not in self.forms:
            raise UnknownName.of("kind", str(kind), self.forms)
        entry_point = _encodable(observation["entry_point"])
        name, method = read_entry_point(entry_point)
        parts = {"entry_point": entry_point, "name": name, "method": method}
        return {form: Template(text.strip()).substitute(parts) for form, text in self.forms[kind].items()}


def load_prompts(wording: str | Path | Prompts = "default") -> Prompts:
    """Return a wording.

    Args:
        wording: one of `WORDINGS`, or the path of a TOML file; missing tables are taken from `default`. With `+inputs`
            after it, testers get calls with arguments of suitable types, too.

    Raises:
        UnknownName: the wording is neither a known name nor a file.
        BrokenInput: the file cannot be read, or has an unknown table, key or placeholder.
    """
    if isinstance(wording, Prompts):
        return wording
    name = str(wording)
    if name.endswith(_WITH_INPUTS):
        return replace(load_prompts(name.removesuffix(_WITH_INPUTS)), name=name, shows_inputs=True)
    default = _read(_own("default"), "default")
    if name == "default":
        return default
    prompts = _read(*_load_text(name))
    forms = {kind: {**texts, **prompts.forms.get(kind, {})} for kind, texts in default.forms.items()}
    return replace(prompts, tables={**default.tables, **prompts.tables}, forms=forms)


def about(wording: str) -> str:
    """Return the sentence about one of `WORDINGS`."""
    return str(read_toml(wording, _own(wording))[_ABOUT])


def _load_text(name: str) -> tuple[bytes, str]:
    if name in WORDINGS:
        return _own(name), name
    path = Path(name).expanduser()
    if not path.is_file():
        raise UnknownName(f"prompts {name!r}: neither a file nor one of {', '.join(WORDINGS)}")
    try:
        return read_file(path), name
    except OSError as error:
        raise BrokenInput(f"prompts {name}: cannot be read ({error})") from error


def _own(name: str) -> bytes:
    return files("codea1_agents.prompts").joinpath(f"{name}.toml").read_bytes()


def _read(text: bytes, place: str) -> Prompts:
    document = read_toml(f"prompts {place}", text)
    for table in document.keys() - {_ABOUT, _FEEDBACK_CHARS}:
        if table not in (*_TABLES, *_KINDS):
            raise BrokenInput(f"prompts {place}: {UnknownName.of('table', table, (*_TABLES, *_KINDS))}")
    tables = {
        name: _messages(document[name], f"prompts {place}, [{name}]", is_addition=name.endswith("_repair"))
        for name in document
        if name in _TABLES
    }
    forms = {
        name: _texts(document[name], f"prompts {place}, [{name}]", _FORMS, _PARTS)
        for name in document
        if name in _KINDS
    }
    n_chars = document.get(_FEEDBACK_CHARS, _MOST_FEEDBACK_CHARS)
    try:
        return Prompts(place, tables, forms, whole_number(_FEEDBACK_CHARS, n_chars, most=inf))
    except UserError as error:
        raise BrokenInput(f"prompts {place}: {error}") from error


def _latest_lines(feedback: str, n_chars: int) -> str:
    """Return the first line, which says how many tests failed, and as many of the last ones as a budget allows."""
    if len(feedback) <= n_chars:
        return feedback
    first, *lines = feedback.split("\n")
    left = n_chars - len(first) - len(_LEFT_OUT) - 1
    while sum(map(len, lines)) + len(lines) > left and lines:
        lines.pop(0)
    return "\n".join([first, _LEFT_OUT, *lines])[:n_chars]


def _texts(entries: Any, place: str, keys: Sequence[str], placeholders: Sequence[str]) -> dict[str, str]:
    """Return a table of templates.

    Raises:
        BrokenInput: it is not a table, or has an unknown key or placeholder; the message names the place.
    """
    if not isinstance(entries, dict):
        raise BrokenInput(f"{place}: expected a table with {', '.join(keys)}")
    for key, text in entries.items():
        if key not in keys:
            raise BrokenInput(f"{place}: {UnknownName.of('key', key, keys)}")
        if not isinstance(text, str):
            raise BrokenInput(f"{place}.{key}: expected text")
        _require_known(text, f"{place}.{key}", placeholders)
    return entries


def _messages(entries: Any, place: str, *, is_addition: bool) -> tuple[Message, ...]:
    entries = _texts(entries, place, _SPEAKERS, _PLACEHOLDERS)
    says_nothing = is_addition and "user" in entries and not any(text.strip() for text in entries.values())
    if not entries.get("user", "").strip() and not says_nothing:
        raise BrokenInput(f"{place}: user is missing or empty")
    return tuple(Message(speaker, entries[speaker].strip()) for speaker in _SPEAKERS if speaker in entries)


def _require_known(text: str, place: str, placeholders: Sequence[str]) -> None:
    template = Template(text)
    if not template.is_valid():
        raise BrokenInput(f"{place}: write $$ for a dollar sign, got a single $")
    for name in template.get_identifiers():
        if name not in placeholders:
            raise BrokenInput(f"{place}: {UnknownName.of('placeholder', name, placeholders)}")


def _view(observation: Observation, info: Info) -> View:
    view: View = info.get("tester_view") or ("white_box" if observation["program"] else "black_box")
    if view not in get_args(View):
        raise UnknownName.of("tester_view", str(view), get_args(View))
    # Without a program, a white-box tester gets the black-box prompt.
    return "black_box" if view == "white_box" and not observation["program"] else view


def _facts(observation: Observation, info: Info) -> dict[str, str]:
    program, examples = _encodable(observation["program"]), _encodable(observation["examples"])
    return {
        "problem": _encodable(observation["problem"]).strip("\n"),
        "entry_point": _encodable(observation["entry_point"]),
        "examples": examples,
        "examples_block": fenced_reply(examples) if examples.strip() else "",
        "program": program,
        "program_block": fenced_reply(program) if program.strip() else "",
        "tests": str(info.get("tests_per_suite", _TESTS)),
        "test_notes": _encodable(info.get("test_notes", "")),
    }


def _example_calls(observation: Observation, info: Info) -> str:
    """Return calls of the entry point with edge inputs of its types, one per line; empty if the types are unknown."""
    interface = interface_of(observation, info)
    if interface is None:
        return ""
    calls = boundary_calls(interface)[:_MAX_CALLS]
    return _encodable("\n".join(call_text(interface.entry_point, arguments, interface.keywords) for arguments in calls))


def _encodable(text: str) -> str:
    """Replace lone surrogates: a program may contain them, but JSON over HTTP and tokenizers refuse them."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _fill(templates: tuple[Message, ...], facts: Mapping[str, str]) -> list[Message]:
    filled = [Message(template.role, _text(template.content, facts)) for template in templates]
    return [message for message in filled if message.content or message.role == "user"]


def _text(template: str, facts: Mapping[str, str]) -> str:
    paragraphs = re.split(r"\n[ \t]*\n", template)
    kept = [Template(text) for text in paragraphs if all(facts[name] for name in Template(text).get_identifiers())]
    return "\n\n".join(each.substitute(facts) for each in kept).strip()
