"""NeMo Gym: what a resources server answers to `/verify`, by its public interface.

NeMo Gym's own package is on no index, so nothing here imports it: `verify` takes and returns the JSON of its protocol,
and `app` serves it. A masked reply has `mask_sample`, by which NeMo Gym's trainers leave it out of the loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from codea1_agents.adapters.batching import BatchingJudge
from codea1_agents.adapters.messages import GIVEN, RowSettings, rows
from codea1_agents.adapters.scoring import required
from codea1_env.agent import Role
from codea1_env.errors import UserError, extra_needed
from codea1_env.problems import ProblemSource
from codea1_env.rounds.referee import Referee, reply_text


def dataset(role: Role, problems: ProblemSource, **settings: Unpack[RowSettings]) -> list[dict[str, Any]]:
    """Return the rows of one role as NeMo Gym reads them; the arguments and errors are those of `messages.rows`."""
    return [
        {
            "responses_create_params": {"input": row["prompt"]},
            "problem_id": row["problem_id"],
            "given": row[GIVEN[role]],
        }
        for row in rows(role, problems, **settings)
    ]


async def verify(judge: BatchingJudge, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a `/verify` request with its reward, `mask_sample` and `reward_components`.

    Args:
        judge: judges the role that is trained.
        body: `response`, as the Responses interface defines it, and the fields of the row.

    Raises:
        UserError: the body lacks a field, or `role_scores` refuses a value.
    """
    response, problem_id = (required(name, body, "the request") for name in ("response", "problem_id"))
    scored = await judge.score(problem_id, reply_of(response), body.get("given") or None)
    reward = scored.reward(judge.role)
    return {
        **body,
        "reward": reward or 0.0,
        "mask_sample": reward is None,
        "masked_because": scored.masked_because,
        "reward_components": dict(scored.parts[judge.role]),
    }


def reply_of(response: Mapping[str, Any]) -> str:
    """Return the text of the last message in a response's output; empty without a message."""
    messages = [each for each in response.get("output", ()) if each.get("type") == "message"]
    return str(reply_text(messages)) if messages else ""


def app(role: Role, referee: Referee) -> Any:
    """Return a FastAPI application with `/verify` and `/seed_session`.

    Raises:
        MissingExtra: fastapi is not installed.
        UserError: the rules never pay the role.
    """
    with extra_needed("a resources server", "nemo-gym"):
        from fastapi import FastAPI, HTTPException  # noqa: PLC0415
    server, judge = FastAPI(title=f"codea1-env: {role}"), BatchingJudge(role, referee)

    async def post_verify(body: dict[str, Any]) -> dict[str, Any]:
        try:
            return await verify(judge, body)
        except UserError as error:
            raise HTTPException(422, str(error)) from error

    async def post_seed_session(body: dict[str, Any]) -> dict[str, Any]:
        return {}

    server.post("/verify")(post_verify)
    server.post("/seed_session")(post_seed_session)
    return server
