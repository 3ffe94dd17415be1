"""`NamedAgent`: calls an agent for one reply or for many, and reports its errors in one sentence with its name."""

from __future__ import annotations

import hashlib
import inspect
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeGuard

from codea1_agents.play.own_code import describe_failure, own_line
from codea1_env.agent import Agent, EndedReply, Info
from codea1_env.errors import AgentUnavailable, CodeA1Error, UserError
from codea1_env.rounds.rounds import Turn

Reply: TypeAlias = str | AgentUnavailable
"""The agent's text, or the error that says why there is none."""


@dataclass(frozen=True, slots=True)
class TurnAndReply:
    """A turn with its reply."""

    turn: Turn
    reply: Reply


_SEED_BITS = 53
"""A double holds 53 bits exactly, so every reader of a record gets the exact seed."""


class NamedAgent:
    """An agent with the name that errors call it. Games, evaluations and training call agents only through this."""

    def __init__(
        self, inner: Agent, name: str, *, seed: int | None = 0, seed_of: Callable[[Turn], int] | None = None
    ) -> None:
        """Wrap an agent.

        Args:
            inner: the agent.
            name: how errors call it.
            seed: what an agent with `act_batch` is reset with; None: it keeps its own seed.
            seed_of: returns the seed of one turn, for an agent without `act_batch`; None: the seed follows from `seed`
                and the turn's info.
        """
        self.inner: Any = inner
        self.name = name
        self._seed = seed
        self._seed_of = seed_of or (lambda turn: _seed_of(turn.info, seed or 0))
        self._is_seeded = seed is None
        self.is_closed = False
        self.asked: tuple[str, float] | None = None
        """The subject of its present call, and its begin (`time.monotonic`); None between calls."""
        self.why_missing = ""
        """The error behind the last reply that `replies` lacked; empty if none lacked."""

    def replies(self, turns: Sequence[Turn]) -> list[Reply]:
        """Return one reply per turn, in order. No reply depends on earlier calls.

        An agent with `act_batch` is seeded once and gets all turns of a call together; its draws may depend on seed,
        observation and info only (docs/agents.md). Any other agent is seeded before every turn.

        Raises:
            UserError: the agent failed, or returned something other than text.
        """
        replies, wheres = list[Reply](), [_where(turn.info) for turn in turns]
        if not callable(getattr(self.inner, "act_batch", None)):
            replies = [self._seeded_reply(*each) for each in zip(turns, wheres, strict=True)]
        elif turns:
            self._seed_once()
            replies = self.batch(turns, wheres)
        self._note_missing(replies)
        return replies

    def stream(self, turns: Sequence[Turn], n_at_once: int) -> Iterator[list[TurnAndReply]]:
        """Yield the same replies, in lists of those that have just ended.

        Args:
            turns: what to reply to. An agent with `act_stream` gets all of them together.
            n_at_once: how many turns any other agent gets together.

        Raises:
            UserError: as in `replies`, or the agent did not yield one reply per turn.
        """
        act_stream = getattr(self.inner, "act_stream", None)
        if not callable(act_stream):
            for start in range(0, len(turns), n_at_once):
                some = turns[start : start + n_at_once]
                yield list(map(TurnAndReply, some, self.replies(some)))
            return
        self._seed_once()
        left = dict(enumerate(turns))
        with self.naming_errors("act_stream()"):
            ended = iter(act_stream([turn.observation for turn in turns], [turn.info for turn in turns]))
        with closing(ended) if hasattr(ended, "close") else nullcontext():
            while left:
                where = f"a stream of {len(turns)}, {len(left)} of which are left"
                with self.naming_errors(where):
                    each = next(ended, None)
                if not isinstance(each, EndedReply) or each.position not in left:
                    raise UserError(
                        f"{self.name} yielded {each!r:.80} in {where}, expected the EndedReply of one of these"
                    )
                turn, reply = left.pop(each.position), each.reply
                if not isinstance(reply, AgentUnavailable):
                    self.require_text(reply, _where(turn.info))
                self._note_missing([reply])
                yield [TurnAndReply(turn, reply)]

    def _seed_once(self) -> None:
        if not self._is_seeded:
            self.reset(self._seed or 0, "reset()")
            self._is_seeded = True

    def _note_missing(self, replies: Iterable[Reply]) -> None:
        missing = (str(reply) for reply in replies if isinstance(reply, AgentUnavailable))
        self.why_missing = next(missing, self.why_missing)

    def reset(self, seed: int, where: str) -> None:
        """Reset the agent if it has a `reset`."""
        reset = getattr(self.inner, "reset", None)
        if callable(reset):
            with self.naming_errors(where):
                reset(seed)

    def reply(self, turn: Turn, where: str) -> str:
        """Return the reply to one turn.

        Raises:
            AgentUnavailable: the agent cannot reply.
            UserError: the agent failed, or returned something other than text.
        """
        with self.naming_errors(where):
            text: object = self.inner.act(turn.observation, turn.info)
        return self.require_text(text, where)

    def batch(self, turns: Sequence[Turn], wheres: Sequence[str]) -> list[Reply]:
        """Return the replies of an agent with `act_batch` to at least one turn.

        Raises:
            UserError: the agent failed, or did not return a list of texts and `AgentUnavailable` of the right length.
        """
        where = wheres[0] if len(turns) == 1 else f"a batch of {len(turns)} that begins with {wheres[0]}"
        try:
            with self.naming_errors(where):
                texts = self.inner.act_batch([turn.observation for turn in turns], [turn.info for turn in turns])
        except AgentUnavailable as error:
            return [error] * len(turns)
        if not isinstance(texts, list | tuple):
            raise UserError(f"{self.name} returned {type(texts).__name__} in {where}, expected a list of replies")
        if len(texts) != len(turns):
            raise UserError(f"{self.name} returned {len(texts)} replies to {len(turns)} observations in {where}")
        return [
            each if isinstance(each, AgentUnavailable) else self.require_text(each, where)
            for each, where in zip(texts, wheres, strict=True)
        ]

    def require_text(self, reply: object, where: str) -> str:
        """Return a reply that is text.

        Raises:
            UserError: it is something else.
        """
        if not is_text(reply):
            raise UserError(f"{self.name} returned {no_text(reply)} in {where}, expected text (str)")
        return reply

    def close(self) -> None:
        """Close the agent once, if it has a `close`."""
        close = getattr(self.inner, "close", None)
        if callable(close) and not self.is_closed:
            self.is_closed = True
            with self.naming_errors("close()"):
                close()

    @contextmanager
    def naming_errors(self, where: str) -> Iterator[None]:
        """Turn whatever the agent raises into a `UserError` with its name and `where`; meanwhile `asked` names both.

        The project's own errors and Ctrl-C pass unchanged.
        """
        self.asked = f"{where} ({self.name})", time.monotonic()
        try:
            yield
        except (CodeA1Error, KeyboardInterrupt):
            raise
        except SystemExit as error:  # it must not end this process with the agent's exit code
            raise UserError(f"{self.name} called sys.exit({error.code!r}) in {where}{own_line(error)}") from error
        except BaseException as error:  # agents are anyone's code and may raise anything
            raise UserError(f"{self.name} failed in {where}: {describe_failure(error)}") from error
        finally:
            self.asked = None

    def _seeded_reply(self, turn: Turn, where: str) -> Reply:
        self.reset(self._seed_of(turn), where)
        try:
            return self.reply(turn, where)
        except AgentUnavailable as error:
            return error


def is_text(reply: object) -> TypeGuard[str]:
    """Whether a reply is text; closes a coroutine, or Python would warn that it was never awaited."""
    if inspect.iscoroutine(reply):
        reply.close()
    return isinstance(reply, str)


def no_text(reply: object) -> str:
    """Name the type of a reply that is not text."""
    return "NoneType (is a return missing?)" if reply is None else type(reply).__name__


def _where(info: Info) -> str:
    sample = f", sample {info['sample']}" if "sample" in info else ""
    return f"problem {info['problem_id']}{sample}"


def _seed_of(info: Info, run_seed: int) -> int:
    key = f"{run_seed}/{info['role']}/{info['problem_id']}/{info['sample']}/{info['round']}"
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") >> (64 - _SEED_BITS)
