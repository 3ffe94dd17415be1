"""Which verdicts may be put together.

`JUDGE_VERSION` stands wherever verdicts are kept: episodes, Mistake Books, bank caches, checkpoints, evaluations,
results of cross-play and of experiments. What would mix two versions is refused; what only shows them says so.
"""

from __future__ import annotations

from codea1_env.errors import UserError

JUDGE_VERSION = 3
"""Raised by every change after which the same replies can get other verdicts."""
UNSTATED_JUDGE = 1
"""Of files that do not say: they are older than the first that did."""


def judge_version_in(stored: object) -> int:
    """Return the judge's version that plain data states under `judge_version`."""
    found = stored.get("judge_version") if isinstance(stored, dict) else None
    return found if type(found) is int else UNSTATED_JUDGE


def require_this_judge(found: int, place: object, instead: str) -> None:
    """Do nothing if verdicts are of this version of the judge.

    Args:
        found: version of the verdicts that are kept.
        place: where they are kept.
        instead: what to do now, e.g. `begin a new run`.

    Raises:
        UserError: they are of another one.
    """
    if found != JUDGE_VERSION:
        raise UserError(
            f"{place} holds verdicts of version {found} of the judge, and this is version {JUDGE_VERSION}:"
            f" the two do not mix; {instead}"
        )
