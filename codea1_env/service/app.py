"""The routes of `codea1 serve`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

from codea1_env.errors import DISTRIBUTION, SandboxError, UserError, extra_needed
from codea1_env.facts.judge_version import JUDGE_VERSION
from codea1_env.service.admission import WAYS_TO_WAIT, Admission, Refused
from codea1_env.service.bodies import JudgeAnswer, JudgeRequest
from codea1_env.service.judging import ServedJudge

with extra_needed("the server of codea1 serve", "serve"):
    from fastapi import Depends, FastAPI, Request
    from starlette.exceptions import HTTPException
    from starlette.responses import JSONResponse, Response, StreamingResponse


_JSON = "application/json"
_PIECE_BYTES = _LARGE_BYTES = 1 << 18
_REF = "#/components/schemas/{model}"


def new_app(judge: ServedJudge, admission: Admission) -> FastAPI:
    """Return the application; `service.guard` goes around it.

    Args:
        judge: does the work.
        admission: says when.
    """
    app = _App(
        title=DISTRIBUTION,
        version=version(DISTRIBUTION),
        docs_url=None,  # these pages would load scripts from another host, with the rights of this one
        redoc_url=None,
        dependencies=[Depends(_require_no_query)],
        exception_handlers=refusals(),
    )
    routes = _Routes(judge, admission)
    app.get("/v1/ping")(routes.ping)
    app.get("/")(routes.about)
    app.get("/problems")(routes.problems)
    app.post("/judge", response_model=JudgeAnswer, openapi_extra=_body_of({"$ref": _REF.format(model="JudgeRequest")}))(
        routes.judge
    )
    app.post("/jobs", openapi_extra=_body_of({"type": "array"}))(routes.jobs)
    return app


async def _require_no_query(request: Request) -> None:
    if request.url.query:
        raise UserError("expected no query behind the address: the fields of a request are in its body")


def _body_of(schema: dict[str, str]) -> dict[str, Any]:
    return {"requestBody": {"content": {_JSON: {"schema": schema}}}}


class _App(FastAPI):  # type: ignore[misc]  # fastapi is not read
    """States the schema of requests, which are read in the threads of `Admission`: reading must not block clients."""

    def openapi(self) -> dict[str, Any]:
        """Return the document."""
        document: dict[str, Any] = super().openapi()
        request = JudgeRequest.model_json_schema(ref_template=_REF)
        document["components"]["schemas"] |= request.pop("$defs") | {"JudgeRequest": request}
        return document


class _Routes:
    """The functions of the routes; the docstrings are those of the OpenAPI document."""

    def __init__(self, judge: ServedJudge, admission: Admission) -> None:
        self._judge, self._admission = judge, admission

    async def ping(self) -> str:
        """Answer `pong`; needs no token."""
        return "pong"

    async def about(self, request: Request) -> dict[str, Any]:
        """Return the routes, the sandbox and its promise, the version of the judge."""
        guarantee = await self._admission.run(lambda: self._judge.sandbox.guarantee)
        return {
            **{name: f"{request.base_url}{name}" for name in ("judge", "jobs", "problems", "openapi.json")},
            "sandbox": {"name": self._judge.sandbox.name, "guarantee": guarantee},
            "judge_version": JUDGE_VERSION,
            "rules": self._judge.rules.name,
        }

    async def problems(self) -> list[str]:
        """Return the ids of the server's problems."""
        return [problem.id for problem in self._judge.problems]

    async def judge(self, request: Request) -> Response:
        """Judge programs and suites."""
        return await self._run(request, self._judge.judge)

    async def jobs(self, request: Request) -> Response:
        """Run jobs of the sandbox; `docs/serve.md` says what for."""
        return await self._run(request, self._judge.run_jobs)

    async def _run(self, request: Request, work: Callable[[bytes], list[bytes]]) -> Response:
        """Answer with what some work makes of the body; give it up when the client closes its connection."""
        body = await request.body()
        run = self._admission.run(partial(work, body), is_large=len(body) > _LARGE_BYTES)
        del body
        task = asyncio.ensure_future(run)
        gone = asyncio.ensure_future(_wait_for_disconnect(request))
        try:
            await asyncio.wait([task, gone], return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise Refused(HTTPStatus.REQUEST_TIMEOUT, "the client closed its connection")  # nobody reads it
            parts = task.result()
            length = {"Content-Length": str(sum(map(len, parts)))}
            return StreamingResponse(_pieces(parts), media_type=_JSON, headers=length)
        finally:
            task.cancel()
            gone.cancel()
            del task  # a traceback would hold it, and so the request, until garbage is collected


async def _pieces(parts: list[bytes]) -> AsyncIterator[bytes]:
    """Yield some bytes in pieces that are neither short nor long, and forget them."""
    parts.reverse()
    while parts:
        piece = parts.pop()
        while parts and len(piece) < _PIECE_BYTES:
            piece += parts.pop()
        for start in range(0, len(piece), _PIECE_BYTES):
            yield piece[start : start + _PIECE_BYTES]


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def refusals() -> dict[Any, Any]:
    """Return the handlers that answer each kind of error with its status and one sentence."""
    return dict.fromkeys((HTTPException, Refused, *_STATUS), _refusal)


_STATUS = {UserError: HTTPStatus.UNPROCESSABLE_ENTITY, SandboxError: HTTPStatus.SERVICE_UNAVAILABLE}


async def _refusal(_: Request, error: Any) -> JSONResponse:
    """Answer an error with its status and one sentence."""
    status = next((status for kind, status in _STATUS.items() if isinstance(error, kind)), None) or error.status_code
    headers = {"Retry-After": "1"} if status in WAYS_TO_WAIT else None
    return JSONResponse({"detail": str(error.detail if isinstance(error, HTTPException) else error)}, status, headers)
