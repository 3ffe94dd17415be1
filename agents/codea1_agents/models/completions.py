"""Sampling settings, completions, usage totals and seeds of language models. Pure."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from codea1_env.agent import Info, Observation
from codea1_env.errors import UserError

Finish = Literal["stop", "length", "other"]
FINISHES: dict[str, Finish] = {"stop": "stop", "length": "length"}
"""By the finish reasons of OpenAI's protocol; all others mean `other`."""


@dataclass(frozen=True, slots=True)
class Completion:
    """One reply of a model with its token counts and reasoning, which the game does not see."""

    text: str
    finish: Finish = "stop"
    """`length`: cut at the token limit; the text still counts as a reply."""
    reasoning: str = ""
    """The model's reasoning, if the server returns it separately; not part of the reply."""
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def cut(self) -> bool:
        """True iff the token limit ended it."""
        return self.finish == "length"


@dataclass(frozen=True, slots=True)
class Usage:
    """Totals of one agent."""

    completions: int = 0
    cut: int = 0
    """Completions that the token limit ended."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    retries: int = 0
    """Requests that failed and were sent again."""
    unanswered: int = 0
    """Observations without a reply."""

    def with_completions(self, completions: Iterable[Completion]) -> Usage:
        """Return the totals including these completions."""
        total = self
        for each in completions:
            total = replace(
                total,
                completions=total.completions + 1,
                cut=total.cut + each.cut,
                prompt_tokens=total.prompt_tokens + each.prompt_tokens,
                completion_tokens=total.completion_tokens + each.completion_tokens,
            )
        return total


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is chosen."""

    temperature: float = 1.0
    """0: always the likeliest token."""
    top_p: float = 1.0
    """Tokens are sampled from the likeliest ones that together have this probability, in (0, 1]."""
    max_tokens: int = 4096
    """Longest reply, in tokens."""

    def __post_init__(self) -> None:
        _require(_is_number(self.temperature) and self.temperature >= 0, "temperature", "at least 0", self.temperature)
        _require(_is_number(self.top_p) and 0 < self.top_p <= 1, "top_p", "within (0, 1]", self.top_p)
        _require(type(self.max_tokens) is int and self.max_tokens > 0, "max_tokens", "at least 1", self.max_tokens)

    @property
    def greedy(self) -> bool:
        """True iff the likeliest token is always chosen."""
        return self.temperature == 0


def observation_digest(observation: Observation) -> str:
    """Return the SHA-256 of an observation, 64 hexadecimal digits; numpy's integers count as Python's."""
    return digest(dict(observation))


def draw_seed(seed: int, observation: Observation, info: Info) -> int:
    """Return the seed of one reply's draws, within [0, 2**31).

    It depends on nothing else, so a reply is the same in a single call and in any batch, in any order. Replies to one
    observation differ only if their infos differ (`episode_id`, or any other key): n samples need n different infos.
    """
    return int(digest([int(seed), dict(observation), dict(info)])[:8], 16) >> 1


def digest(data: Any) -> str:
    """Return the SHA-256 of plain data; the order of keys does not matter."""
    text = json.dumps(data, sort_keys=True, ensure_ascii=True, default=_plain, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _plain(value: Any) -> Any:
    """Convert numpy's scalars and arrays, without importing numpy; any other object to its text."""
    tolist = getattr(value, "tolist", None)
    if callable(tolist):
        return tolist()
    return sorted(map(str, value)) if isinstance(value, set | frozenset) else str(value)


def _require(holds: bool, name: str, what: str, found: object) -> None:
    if not holds:
        raise UserError(f"{name} must be {what}, not {found!r}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
