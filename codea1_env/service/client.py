"""A referee on another server: the Python client of `POST /judge`.

referee = RemoteReferee("http://localhost:8080")
scored = referee.rewards(["starter/count_carries"], ["def count_carries..."], ["assert count_carries(5, 5) == 1"])
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import isfinite
from typing import Any

from pydantic import ValidationError

from codea1_env.errors import AgentUnavailable, SandboxError, as_lists
from codea1_env.facts.judge_version import JUDGE_VERSION
from codea1_env.facts.verdicts import CaseReport, ValidCase, Verdict
from codea1_env.problems.own_rows import problem_to_row
from codea1_env.problems.problem import ProblemSet
from codea1_env.problems.sources import ProblemSource, load_problems
from codea1_env.records.faults import first_fault
from codea1_env.rounds.referee import Reply, Scored, reply_text
from codea1_env.rules.ruleset import Ruleset
from codea1_env.runs.records import CaseRecord
from codea1_env.sandbox.interface import Limits
from codea1_env.sandbox.remote import Service
from codea1_env.service.bodies import JudgeAnswer

PROGRAMS_PER_REQUEST = 256
"""More are sent in several requests."""


class RemoteReferee:
    """Judges replies on a server; `rewards` is that of `Referee`. Thread-safe."""

    def __init__(
        self,
        url: str,
        rules: str | Ruleset | None = None,
        *,
        problems: ProblemSource | None = None,
        limits: Limits | None = None,
        golden: bool | None = None,
        **settings: Any,
    ) -> None:
        """Make a client; it connects with the first request.

        Args:
            url: the server's address.
            rules: a preset's name or a ruleset; None: those of the server.
            problems: a source that `load_problems` takes, whose problems are sent whole; None: the server has them.
            limits: bounds per call of a program.
            golden: as `Referee` takes it.
            settings: options of the connection: `token_env`, `timeout_s`, `patience_s` of `sandbox.remote.Service`.

        Raises:
            UserError: the address is none, or the problems cannot be loaded.
        """
        self._service = Service(url, **settings)
        self._problems: ProblemSet | None = None if problems is None else load_problems(problems)
        self._settings = {
            "rules": asdict(rules) if isinstance(rules, Ruleset) else rules,
            "limits": None if limits is None else asdict(limits),
            "golden": golden,
        }

    def rewards(
        self,
        problem_ids: Sequence[str],
        programs: Sequence[Reply],
        suites: Sequence[Reply | None] | None = None,
        *,
        replayed: Mapping[str, Sequence[ValidCase]] | None = None,
    ) -> list[Scored]:
        """Return the rewards of programs and their suites; arguments and result are those of `Referee.rewards`.

        Where the server does not answer, or stays full, rewards are masked.

        Raises:
            UserError: the server refuses the request, or as `Referee.rewards`.
        """
        given = {"problem_ids": problem_ids, "programs": programs} | ({} if suites is None else {"suites": suites})
        ids = as_lists(**given)[0]
        if len(ids) > PROGRAMS_PER_REQUEST:
            parts = [slice(start, start + PROGRAMS_PER_REQUEST) for start in range(0, len(ids), PROGRAMS_PER_REQUEST)]
            tests = [None if suites is None else suites[part] for part in parts]
            answers = [
                self.rewards(ids[part], programs[part], suite, replayed=replayed)
                for part, suite in zip(parts, tests, strict=True)
            ]
            return [each for answer in answers for each in answer]
        if not ids:
            return []
        whole = [] if self._problems is None else [self._problems.by_id(name) for name in dict.fromkeys(ids)]
        body = self._settings | {
            "problem_ids": ids,
            "programs": [*map(_plain, programs)],
            "suites": None if suites is None else [*map(_plain, suites)],
            "problems": [*map(problem_to_row, whole)],
            "replayed": {name: [*map(_case, cases)] for name, cases in (replayed or {}).items() if name in ids},
        }
        try:
            found = JudgeAnswer.model_validate_json(self._service.send("POST", "/judge", json.dumps(body).encode()))
            return _checked(found, ids)
        except ValidationError as error:
            return [
                Scored(name, None, None, f"the server sends no rewards: {first_fault(error)}"[:300]) for name in ids
            ]
        except SandboxError as error:
            return [Scored(name, None, None, f"{type(error).__name__}: {error}"[:300]) for name in ids]


def _checked(answer: JudgeAnswer, ids: Sequence[str]) -> list[Scored]:
    """Return the results of an answer.

    Raises:
        SandboxError: it is of another judge, about other problems, or a reward is not a number.
    """
    if answer.judge_version != JUDGE_VERSION:
        raise SandboxError(f"the server must have version {JUDGE_VERSION} of the judge, got {answer.judge_version}")
    found = [item.to_scored() for item in answer.items]
    if [each.problem_id for each in found] != list(ids):
        raise SandboxError("the server answered about problems that were not in the request")
    if not all(isfinite(reward) for each in found for reward in (each.coder, each.tester) if reward is not None):
        raise SandboxError("the server sent a reward that is not a finite number")
    return found


def _plain(reply: Reply | None) -> str | dict[str, str] | None:
    text = None if reply is None else reply_text(reply)
    return {"unavailable": str(text)} if isinstance(text, AgentUnavailable) else text


def _case(case: ValidCase) -> dict[str, Any]:
    return CaseRecord.of(CaseReport(case, Verdict.NOT_RUN)).model_dump(mode="json")
