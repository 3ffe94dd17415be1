"""The judge's version, which says which verdicts may be combined.

`JUDGE_VERSION` is stored with all verdicts: episodes, Mistake Books, bank caches, checkpoints, evaluations, results of
cross-play and of experiments. Operations that would mix two versions raise an error; commands that only show stored
verdicts print their version.
"""

from __future__ import annotations

from codea1_env.errors import UserError

JUDGE_VERSION = 11
"""Every change after which the same replies can get other verdicts increases it."""
UNSTATED_JUDGE = 1
"""The version of files that state none: they are older than the first version number."""


def judge_version_in(stored: object) -> int:
    """Return the judge's version that plain data states under `judge_version`, else `UNSTATED_JUDGE`."""
    version = stored.get("judge_version") if isinstance(stored, dict) else None
    return version if type(version) is int else UNSTATED_JUDGE


def require_this_judge(stored_version: int, place: object, instead: str) -> None:
    """Raise an error unless stored verdicts have this judge's version.

    Args:
        stored_version: version of the stored verdicts.
        place: where they are stored, for the message.
        instead: what the user can do, e.g. `begin a new run`.

    Raises:
        UserError: the versions differ.
    """
    if stored_version != JUDGE_VERSION:
        raise UserError(
            f"{place} was judged by version {stored_version} of the judge, but this is version {JUDGE_VERSION}, whose"
            f" verdicts may differ; {instead}"
        )
