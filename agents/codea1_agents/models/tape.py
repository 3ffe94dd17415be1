"""The agent `tape`: records another agent's replies, and replays them later without that agent, character by character.

A tape is a JSON-lines file with one reply per line. A reply is found by role, problem, a digest of the observation, the
episode, and the number of earlier requests for the same. A replay with other seeds has other episodes; then the replies
to the same observation come in the order in which they were recorded.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from codea1_agents.models.completions import digest
from codea1_env.agent import Agent, AgentContext, Info, Observation, agent_name, load_agent
from codea1_env.errors import AgentUnavailable, BrokenInput, UserError
from codea1_env.records.file_errors import file_errors
from codea1_env.records.journal import cut_half_written

_SCHEMA = 1


class TapeMiss(UserError):
    """The tape lacks a reply to this observation."""


@dataclass(frozen=True, slots=True)
class ReplyKey:
    """The turn that a reply belongs to: role, problem and observation."""

    role: str
    problem_id: str
    observation: str
    """Digest of the observation."""

    @classmethod
    def of(cls, observation: Observation, info: Info) -> ReplyKey:
        """Return the key of a turn."""
        return cls(str(info.get("role", "")), str(info.get("problem_id", "")), digest(dict(observation)))


@dataclass(frozen=True, slots=True)
class TapedReply:
    """One line of a tape."""

    schema_version: int
    role: str
    problem_id: str
    observation: str
    """Digest of the observation."""
    episode_id: str
    occurrence: int
    """Number of earlier requests for the same key in this episode."""
    reply: str

    @property
    def key(self) -> ReplyKey:
        """The turn that the reply belongs to."""
        return ReplyKey(self.role, self.problem_id, self.observation)


class TapeAgent:
    """Replays a recorded agent. Where the tape lacks a reply, it calls `agent`, if given, and records the new one.

    So a recording that was killed continues with the replies that it has. Without `agent`, a missing reply is an error.
    """

    def __init__(self, context: AgentContext | None = None, *, path: str | Path = "", agent: str | Agent = "") -> None:
        """Open a tape.

        Args:
            context: for the agent that is recorded.
            path: the file; it may be missing if `agent` is given.
            agent: the agent to record, or its specification with `;` in place of `,`, as in
                `tape,path=run.jsonl,agent=mutant;strength=0.3`. Empty: replay.

        Raises:
            BrokenInput: the tape does not exist, or a line of it cannot be read.
            UserError: the path is missing, or the agent cannot be made.
        """
        if not str(path):
            raise UserError("agent 'tape' needs path=, a file of recorded replies")
        self._path = Path(path).expanduser()
        self._lock = threading.Lock()
        self._n_requests: Counter[tuple[ReplyKey, str]] = Counter()
        self._inner = _recorded(agent, context)
        if self._inner is not None:
            if self._path.is_file():
                cut_half_written(self._path)
            self._copy_capabilities(self._inner)
        self._of_episode: dict[tuple[ReplyKey, str], dict[int, str]] = {}
        self._of_key: dict[ReplyKey, list[str]] = {}
        for taped in _lines(self._path, may_be_missing=self._inner is not None):
            self._remember(taped)

    def reset(self, seed: int) -> None:
        """Reset the recorded agent, if there is one. The position on the tape does not change."""
        _call(self._inner, "reset", seed)

    def act(self, observation: Observation, info: Info) -> str:
        """Return the recorded reply, or record one.

        Raises:
            TapeMiss: the tape lacks the reply, and no agent is recorded.
        """
        slot = self._slot(observation, info)
        found = self._found(slot)
        if found is not None:
            return found
        return self._record(slot, self._recorded_agent(slot).act(observation, info))

    def close(self) -> None:
        """Close the recorded agent, if there is one. The tape is complete after each reply."""
        _call(self._inner, "close")

    def __repr__(self) -> str:
        return f"tape({self._path})" if self._inner is None else f"tape({self._path} of {agent_name('', self._inner)})"

    def _copy_capabilities(self, inner: Agent) -> None:
        """Give this agent exactly the optional methods of the recorded one, since callers choose by their presence."""
        for name, method in (("act_batch", self._act_batch), ("aact", self._aact)):
            if callable(getattr(inner, name, None)):
                setattr(self, name, method)
        for name in ("plays", "stateless", "interactive"):
            if hasattr(inner, name):
                setattr(self, name, getattr(inner, name))

    def _act_batch(self, observations: Sequence[Observation], infos: Sequence[Info]) -> list[str | AgentUnavailable]:
        pairs = list(zip(observations, infos, strict=True))
        slots = [self._slot(*pair) for pair in pairs]
        replies: list[Any] = [self._found(slot) for slot in slots]
        missing = [at for at, reply in enumerate(replies) if reply is None]
        if missing:
            inner: Any = self._inner
            answers = inner.act_batch([pairs[at][0] for at in missing], [pairs[at][1] for at in missing])
            for at, answer in zip(missing, answers, strict=True):
                replies[at] = self._record(slots[at], answer) if isinstance(answer, str) else answer
        return replies

    async def _aact(self, observation: Observation, info: Info) -> str:
        slot = self._slot(observation, info)
        found = self._found(slot)
        inner: Any = self._inner
        return found if found is not None else self._record(slot, await inner.aact(observation, info))

    def _slot(self, observation: Observation, info: Info) -> TapedReply:
        """Return the place on the tape of the next reply to this observation; each call returns the next place."""
        key, episode = ReplyKey.of(observation, info), str(info.get("episode_id", ""))
        with self._lock:
            known = self._inner is not None or (key, episode) in self._of_episode
            counted = (key, episode if known else "")
            occurrence = self._n_requests[counted]
            self._n_requests[counted] += 1
        return TapedReply(_SCHEMA, key.role, key.problem_id, key.observation, episode, occurrence, "")

    def _found(self, slot: TapedReply) -> str | None:
        own = self._of_episode.get((slot.key, slot.episode_id))
        if own is not None or self._inner is not None:
            reply = (own or {}).get(slot.occurrence)
        else:
            others = self._of_key.get(slot.key, [])
            reply = others[slot.occurrence] if slot.occurrence < len(others) else None
        if reply is None and self._inner is None:
            raise TapeMiss(
                f"tape {self._path} lacks reply number {slot.occurrence + 1} of the {slot.role} to this observation "
                f"of problem {slot.problem_id!r} (digest {slot.observation[:12]}): it was recorded from another game"
            )
        return reply

    def _recorded_agent(self, slot: TapedReply) -> Agent:
        if self._inner is None:
            raise TapeMiss(f"tape {self._path} ends before problem {slot.problem_id!r}")
        return self._inner

    def _record(self, slot: TapedReply, reply: str) -> str:
        if not isinstance(reply, str):
            raise UserError(f"{self!r}: the recorded agent returned {type(reply).__name__}, expected text (str)")
        taped = replace(slot, reply=reply)
        with self._lock:
            self._remember(taped)
            with file_errors(self._path), self._path.open("a", encoding="ascii") as tape:
                tape.write(json.dumps(asdict(taped)) + "\n")
        return reply

    def _remember(self, taped: TapedReply) -> None:
        self._of_episode.setdefault((taped.key, taped.episode_id), {})[taped.occurrence] = taped.reply
        self._of_key.setdefault(taped.key, []).append(taped.reply)


def _recorded(agent: str | Agent, context: AgentContext | None) -> Agent | None:
    if not isinstance(agent, str):
        return agent
    if not agent:
        return None
    if context is None:
        raise UserError("agent 'tape': an agent to record by name needs a context; pass the agent itself")
    return load_agent(agent.replace(";", ","), context)


def _call(inner: Agent | None, name: str, *arguments: object) -> None:
    method: Callable[..., object] | None = getattr(inner, name, None)
    if callable(method):
        method(*arguments)


def _lines(path: Path, *, may_be_missing: bool) -> Iterator[TapedReply]:
    if may_be_missing and not path.exists():
        return
    try:
        lines = path.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BrokenInput(f"tape {path}: cannot be read ({getattr(error, 'strerror', None) or error})") from error
    for number, line in enumerate(lines[:-1], start=1):  # text after the last line feed is an unfinished line
        yield _taped(line, f"tape {path}, line {number}")


def _taped(line: str, place: str) -> TapedReply:
    try:
        taped = TapedReply(**json.loads(line))
    except (ValueError, TypeError) as error:
        raise BrokenInput(f"{place}: not a taped reply ({error})") from error
    for each in fields(TapedReply):
        wanted = int if each.name in ("schema_version", "occurrence") else str
        if type(getattr(taped, each.name)) is not wanted:
            raise BrokenInput(f"{place}: {each.name} must be {'a number' if wanted is int else 'text'}")
    if taped.schema_version != _SCHEMA:
        raise BrokenInput(f"{place}: expected schema version {_SCHEMA}, got {taped.schema_version}")
    return taped
