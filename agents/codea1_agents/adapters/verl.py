"""verl: rows of a role in Parquet, a reward manager, and a batched `compute_score`.

verl has no mask. A masked reply has the score 0 and `masked` in its extra information, and `without_masked` drops such
rows from a batch. A trainer of verl that does not call it learns from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Unpack

from codea1_agents.adapters.batching import BatchingJudge
from codea1_agents.adapters.messages import GIVEN, ROLES, RowSettings, rows
from codea1_agents.adapters.scoring import named_referee, required, role_scores
from codea1_env.agent import Role
from codea1_env.errors import UserError, extra_needed
from codea1_env.problems import ProblemSource
from codea1_env.rounds.referee import Scored

DATA_SOURCE = "codea1-env"
_ROW = "the column extra_info, which write_parquet makes,"


def write_parquet(
    path: str | Path,
    role: Role,
    problems: ProblemSource,
    **settings: Unpack[RowSettings],
) -> int:
    """Write the data set of one role as verl reads it; return the number of rows.

    Args:
        path: the Parquet file to write.
        role, problems, settings: as in `adapters.messages.rows`.

    Raises:
        MissingExtra: pyarrow is not installed.
        UserError: as `rows`.
    """
    with extra_needed("Parquet", "data"):
        import pyarrow  # noqa: PLC0415
        import pyarrow.parquet  # noqa: PLC0415
    found = [
        {
            "data_source": DATA_SOURCE,
            "prompt": row["prompt"],
            "ability": "code",
            "reward_model": {"style": "rule", "ground_truth": row["problem_id"]},
            "extra_info": {"index": number, "role": role, "given": row[GIVEN[role]]},
        }
        for number, row in enumerate(rows(role, problems, **settings))
    ]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(found), str(path))
    return len(found)


def compute_score(
    data_sources: Sequence[str],
    solution_strs: Sequence[str],
    ground_truths: Sequence[str],
    extra_infos: Sequence[Mapping[str, Any]],
    *,
    problems: str,
    rules: str = "fixed",
    **_: Any,
) -> list[dict[str, Any]]:
    """Return the scores of a batch, in order, for managers of verl that judge batches (`batch`).

    Args:
        data_sources: (B,) ignored.
        solution_strs: (B,) replies.
        ground_truths: (B,) ids of problems.
        extra_infos: (B,) with `role` and `given`, as in the rows of `write_parquet`.
        problems: the source of the problems.
        rules: the name of a ruleset.

    Returns:
        (B,) dictionaries with `score` (0 where masked), `masked` (0 or 1) and `masked_because`.

    Raises:
        UserError: as `role_scores`, or the problems cannot be loaded.
    """
    referee = named_referee(problems, rules)
    found: dict[int, dict[str, Any]] = {}
    for role in ROLES:
        places = [n for n, info in enumerate(extra_infos) if required("role", info, _ROW) == role]
        given = [required("given", extra_infos[n], _ROW) or None for n in places]
        scores = role_scores(
            role, referee, [ground_truths[n] for n in places], [solution_strs[n] for n in places], given
        )
        found |= {n: _result(role, score) for n, score in zip(places, scores, strict=True)}
    return [found[n] for n in range(len(extra_infos))]


def without_masked(batch: Any) -> Any:
    """Return a `DataProto` without the rows whose reward is masked.

    Raises:
        UserError: the batch has not been judged by this module.
    """
    if "masked" not in batch.non_tensor_batch:
        raise UserError(
            "the batch lacks the column 'masked': judge it with the reward manager of codea1_agents.adapters.verl"
        )
    return batch.select_idxs([n for n, masked in enumerate(batch.non_tensor_batch["masked"]) if not masked])


def _result(role: Role, scored: Scored) -> dict[str, Any]:
    """Return the score and its mask; always the same keys, since verl makes columns of them."""
    reward = scored.reward(role)
    return {"score": reward or 0.0, "masked": int(reward is None), "masked_because": scored.masked_because}


@cache
def _manager() -> type:
    with extra_needed("a reward manager of verl", "verl"):
        from verl.experimental.reward_loop.reward_manager.base import RewardManagerBase  # noqa: PLC0415

    class RewardManager(RewardManagerBase):  # type: ignore[misc]
        """Judges replies as they come, in batches; `reward.reward_kwargs.codea1` has `problems` and `rules`."""

        def __init__(self, config: Any, tokenizer: Any, compute_score: Any = None, **_: Any) -> None:
            super().__init__(config, tokenizer, compute_score)
            options = config.reward.get("reward_kwargs", {}).get("codea1") or {}
            problems = required("problems", options, "the setting reward.reward_kwargs.codea1")
            self._referee = named_referee(problems, options.get("rules", "fixed"))
            self._judges: dict[Role, BatchingJudge] = {}

        async def run_single(self, data: Any) -> dict[str, Any]:
            """Return `reward_score` and `reward_extra_info` of the last row of a batch."""
            row = data[-1:][0]
            replies = row.batch["responses"]
            length = int(row.batch["attention_mask"][-replies.shape[-1] :].sum())
            info, problem_id = row.non_tensor_batch["extra_info"], row.non_tensor_batch["reward_model"]["ground_truth"]
            text = self.tokenizer.decode(replies[:length], skip_special_tokens=True)
            role: Role = required("role", info, _ROW)
            given = required("given", info, _ROW) or None
            if role not in self._judges:
                self._judges[role] = BatchingJudge(role, self._referee)
            result = _result(role, await self._judges[role].score(problem_id, text, given))
            return {"reward_score": result.pop("score"), "reward_extra_info": result}

    return RewardManager


def __getattr__(name: str) -> Any:
    """Make `RewardManager` on first use, since it needs verl."""
    if name == "RewardManager":
        return _manager()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
