"""What models' replies are made with and made of: sampling settings, completions, totals, and seeds. Pure."""

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
"""By the words of OpenAI's protocol; all others mean `other`."""


@dataclass(frozen=True, slots=True)
class Completion:
    """One reply of a model, with what the game does not see of it."""

    text: str
    finish: Finish = "stop"
    """`length`: cut at the token limit; it is a reply all the same."""
    reasoning: str = ""
    """What the model thought, where the server tells it apart; no part of the reply."""
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
    """Observations that got no reply at all."""

    def with_completions(self, completions: Iterable[Completion]) -> Usage:
        """Return the totals after these, too."""
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
    """Smallest share of the probability that is drawn from, in (0, 1]."""
    max_tokens: int = 4096
    """Longest reply, in tokens."""

    def __post_init__(self) -> None:
        _require(_is_number(self.temperature) and self.temperature >= 0, "temperature", "at least 0", self.temperature)
        _require(_is_number(self.top_p) and 0 < self.top_p <= 1, "top_p", "within (0, 1]", self.top_p)
        _require(type(self.max_tokens) is int and self.max_tokens > 0, "max_tokens", "at least 1", self.max_tokens)

    @property
    def greedy(self) -> bool:
        """True iff nothing is drawn."""
        return self.temperature == 0


def observation_digest(observation: Observation) -> str:
    """Return 64 hexadecimal digits that name an observation; numpy's integers count as Python's."""
    return digest(dict(observation))


def draw_seed(seed: int, observation: Observation, info: Info) -> int:
    """Return the seed of one reply's draws, within [0, 2**31).

    It depends on nothing else, so a reply is the same alone and in any batch, in any order. Replies to one observation
    differ only if their infos do (`episode_id`, or any other key): who wants n samples must tell them apart there.
    """
    return int(digest([int(seed), dict(observation), dict(info)])[:8], 16) >> 1


def digest(data: Any) -> str:
    """Return the SHA-256 of plain data; the order of keys does not count."""
    text = json.dumps(data, sort_keys=True, ensure_ascii=True, default=_plain, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _plain(value: Any) -> Any:
    """Numpy's scalars and arrays, without importing numpy; anything else by its text."""
    tolist = getattr(value, "tolist", None)
    if callable(tolist):
        return tolist()
    return sorted(map(str, value)) if isinstance(value, set | frozenset) else str(value)


def _require(holds: bool, name: str, what: str, found: object) -> None:
    if not holds:
        raise UserError(f"{name} must be {what}, not {found!r}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
