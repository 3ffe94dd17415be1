"""Play: a person as the tester or the coder, against the opponents and on the problems that the command line named.

A request names a role, and an opponent and a problem of the lists in `GET /play/game`; nothing else of it chooses what
runs here. What a visitor has typed goes to the judge, which runs it in the sandbox, and into no state but their game.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from http import HTTPStatus
from itertools import count
from typing import Any, TypeVar
from zlib import crc32

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.responses import JSONResponse

from codea1_agents.play.named_agent import NamedAgent
from codea1_agents.play.person import (
    DOUBT,
    DUEL_TASK,
    MOST_POINTS,
    PersonGame,
    describe_finding,
    ending,
    explain_tests,
    missed_tests,
    remarks,
    sentence,
)
from codea1_agents.scripted.duels import N_DUELS, TOPICS, duel
from codea1_agents.scripted.fences import fenced_reply
from codea1_env.agent import AgentContext, AgentSpec, agent_name, load_agent
from codea1_env.errors import AgentUnavailable, UserError
from codea1_env.facts.submissions import Role
from codea1_env.judging.judged_round import JudgedRound
from codea1_env.observations import test_notes
from codea1_env.problems.problem import ProblemSet
from codea1_env.records.faults import first_fault
from codea1_env.rounds.rounds import Turn
from codea1_env.sandbox import Limits, Sandbox
from codea1_env.service.admission import Admission, Refused
from codea1_lab.report.page import comparable_programs
from codea1_lab.web.app import Part
from codea1_lab.web.visitors import Visitors, cookie_name, new_cookie

_Model = TypeVar("_Model", bound=BaseModel)

MOST_VISITORS = 1000  # what their games remember of the solution may take 240 KiB each
LIMITS = Limits(cpu_s=0.5, wall_s=1.0, memory_mb=256, value_bytes=4096, max_restarts=0, job_factor=4)
"""Of a visitor's programs: somebody else waits."""
_MOST_LISTED = 1000  # problems that the page offers by name
_TASKS: dict[Role, str] = {
    "tester": "The program may be wrong. Write a test, an input with its right answer: you win if it gives another.",
    "coder": "Write the program. At each try the tester reads it and writes tests; you win when it passes all of them.",
}


class Opponent:
    """An agent that visitors can choose, one turn at a time."""

    def __init__(self, spec: AgentSpec, role: Role, context: AgentContext, note: Callable[[str], None]) -> None:
        """Load the agent.

        Args:
            spec: what the command line names; visitors see it without its options.
            role: that it plays.
            context: what it may know.
            note: gets the reasons why it could not reply, which may name its endpoint: visitors do not see them.

        Raises:
            UserError: it does not exist, cannot be made, plays the other role, or is a person at the terminal.
        """
        agent = load_agent(spec, context, role=role)
        self.name = agent_name(spec, agent).partition(",")[0]
        if getattr(agent, "interactive", False) is True:
            raise UserError(f"{self.name} plays at the terminal; on the page, the visitor is the person")
        self._agent = NamedAgent(agent, f"{role} {self.name}", seed_of=lambda turn: crc32(repr(turn.seed).encode()))
        self._lock, self._note = threading.Lock(), note

    def reply(self, turn: Turn) -> str:
        """Return the reply to a turn.

        Raises:
            Refused: there is none.
        """
        try:
            with self._lock:
                reply = self._agent.replies([turn])[0]
        except UserError as error:
            reply = AgentUnavailable(str(error))
        if isinstance(reply, AgentUnavailable):
            self._note(f"{self.name}: {reply}")
            raise Refused(
                HTTPStatus.SERVICE_UNAVAILABLE, f"{self.name} cannot reply now: try again, or choose another opponent"
            )
        return reply


class _Start(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    role: Role
    opponent: int = Field(0, ge=0)
    """Place in the list of the other role."""
    problem: str = ""
    """Its id; empty: any."""
    duel: int = Field(0, ge=0, le=N_DUELS)
    """Its number; 0: none, but a game against an opponent."""


class _Try(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    text: str


@dataclass(slots=True)
class Table:
    """The state of a visitor that the server keeps."""

    game: PersonGame | None = None
    about: dict[str, Any] = field(default_factory=dict)
    """Title, task, and the number of the duel."""
    total: int = 0
    """Points of all games that are over."""
    won: set[int] = field(default_factory=set)
    """Numbers of duels."""

    def to_document(self) -> dict[str, Any] | None:
        """Return what the visitor sees of the game; None without one."""
        if (game := self.game) is None:
            return None
        of_game = {name: getattr(game, name) for name in ("role", "program", "points", "is_over")}
        of_problem = {name: getattr(game.problem, name) for name in ("statement", "examples", "imports")}
        notes = {"notes": test_notes(game.problem), "draft": game.draft(), "most": MOST_POINTS}
        return self.about | of_game | of_problem | notes | {"total": self.total, "won": sorted(self.won)}


@dataclass
class Play:
    """The games of all visitors."""

    problems: ProblemSet
    coders: Sequence[Opponent]
    testers: Sequence[Opponent]
    sandbox: Sandbox
    admission: Admission
    n_running: int
    """Tries that are judged at the same time."""
    _visitors: Visitors[Table] = field(init=False)
    _numbers: Iterator[int] = field(default_factory=count, init=False)

    def __post_init__(self) -> None:
        self._visitors = Visitors(self.admission, Table, MOST_VISITORS, self.n_running)

    def part(self) -> Part:
        """Return the part of the page."""
        router = APIRouter(prefix="/play")
        router.get("/game")(self._current)
        router.post("/game")(self._begin)
        router.post("/try")(self._try)
        return Part("play", ("play.js",), router)

    async def _current(self, request: Request) -> JSONResponse:
        visitor = self._visitors.find(request.cookies.get(_cookie(request), ""))
        choices = {
            "duels": TOPICS,
            "coders": [coder.name for coder in self.coders],
            "testers": [tester.name for tester in self.testers],
            "problems": [problem.id for problem in self.problems[:_MOST_LISTED]],
        }
        return JSONResponse({"choices": choices, "game": visitor and visitor.state.to_document()})

    async def _begin(self, request: Request) -> JSONResponse:
        start = _read(_Start, await request.body())
        visitor, key = self._visitors.enter(request.cookies.get(_cookie(request), ""))

        def begin() -> dict[str, Any] | None:
            game, about = self._new_game(start)
            game.turn()
            if start.role == "tester" and game.killer is None:
                about["task"] += f" {DOUBT}"
            visitor.state = replace(visitor.state, game=game, about=about)
            return visitor.state.to_document()

        headers = {"set-cookie": new_cookie(_cookie(request), key)} if key else None
        return JSONResponse({"game": await self._visitors.run(visitor, begin)}, headers=headers)

    async def _try(self, request: Request) -> JSONResponse:
        tried = _read(_Try, await request.body())
        visitor = self._visitors.find(request.cookies.get(_cookie(request), ""))
        if visitor is None or (game := visitor.state.game) is None:
            raise Refused(HTTPStatus.CONFLICT, "you have no game here: begin one")
        text, table = fenced_reply(tried.text) if game.role == "coder" else tried.text, visitor.state

        def judge_try() -> dict[str, Any]:
            description = describe_try(game, game.submit(text))
            table.total += game.points if game.is_over else 0
            table.won |= {table.about["duel"]} - {0} if game.has_won else set()
            return {"game": table.to_document(), "try": description}

        return JSONResponse(await self._visitors.run(visitor, judge_try))

    def _new_game(self, start: _Start) -> tuple[PersonGame, dict[str, Any]]:
        settings: dict[str, Any] = {"sandbox": self.sandbox, "limits": LIMITS}
        if start.duel:
            chosen = duel(start.duel)
            program = fenced_reply(chosen.program)
            game = PersonGame(chosen.problem, "tester", lambda _: program, hints=chosen.hints, **settings)
            return game, {"title": f"Duel {start.duel}: {chosen.problem.id}", "task": DUEL_TASK, "duel": start.duel}
        others, number = self.testers if start.role == "coder" else self.coders, next(self._numbers)
        if start.opponent >= len(others):
            raise UserError(f"there are {len(others)} opponents, and none has the number {start.opponent}")
        problem = self.problems.by_id(start.problem) if start.problem else self.problems[number % len(self.problems)]
        other = others[start.opponent]
        game = PersonGame(problem, start.role, other.reply, seed=number, **settings)
        return game, {"title": f"{problem.id}, against {other.name}", "task": _TASKS[start.role], "duel": 0}


def describe_try(game: PersonGame, judged: JudgedRound) -> dict[str, Any]:
    """Return what a try has shown, in sentences."""
    (report,) = judged.report.candidates
    program, solution = comparable_programs(game.problem, report.candidate.program, game.problem.solution)
    return {
        "has_won": game.has_won,
        "summary": ending(game, judged) if game.is_over else sentence(describe_finding(game, judged)),
        "lines": remarks(game, judged),
        "tests": [asdict(test) for test in explain_tests(game, judged)],
        "hint": game.hint() if game.role == "tester" and not game.is_over else "",
        "missed": [asdict(test) for test in missed_tests(game)],
        "solution": solution if game.is_over else "",
        "program": program,
    }


def _cookie(request: Request) -> str:
    return cookie_name("visitor", request.headers.get("host", ""))


def _read(kind: type[_Model], body: bytes) -> _Model:
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        raise UserError(f"the request cannot be read: {first_fault(error)}") from None
