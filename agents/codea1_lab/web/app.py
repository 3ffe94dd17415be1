"""The application of `codea1 web`: one page whose tabs are `Part`s, each with its own script and routes.

The page is a shell: a section per part, the report's style and scripts, and the scripts of the parts, which fill their
sections with what they `fetch`. Texts reach the page as JSON only, and `el` and `visible` of `text.js` make text nodes
of them.

A part is a module with a router, whose routes begin with the part's name, and a script that fills the section of that
name: `watch.py` and `assets/watch.js` are short ones. `cli/web.py` lists the parts. Scripts come from `web/assets/` and
`report/assets/`, in the order in which parts name them, each once. What visitors want judged waits in
`visitors.Visitors`; routes that only read files are plain functions, which run in threads. The `Door` has checked
sender, size and origin of every request before a route sees it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from fastapi import APIRouter, FastAPI
from starlette.responses import HTMLResponse, Response

from codea1_env.errors import UserError
from codea1_env.sandbox.remote import TOKEN_VARIABLE
from codea1_env.service.admission import Admission
from codea1_env.service.app import refusals
from codea1_env.service.bounds import ServiceBounds
from codea1_env.service.server import HttpServer
from codea1_lab.report.page import frame, style
from codea1_lab.report.palette import asset
from codea1_lab.web.visitors import Door

BOUNDS = ServiceBounds(max_body_bytes=128 << 10, max_held_bytes=32 << 20)

SHARED_SCRIPTS = ("text.js", "charts.js", "difference.js", "detail.js")
"""Scripts of the report that every part can use."""


@dataclass(frozen=True)
class Part:
    """One tab of the page."""

    name: str
    """Id of its section, and its word in the menu in lower case: `play`."""
    scripts: tuple[str, ...]
    """Names of its scripts, after those that all parts share."""
    router: APIRouter


class WebServer(HttpServer):
    """Serves the page from its construction until `close`.

    Args:
        parts: the tabs, in order; the first is shown at the address without a fragment.
        admission: runs what the parts do.
        host: address to listen on.
        port: 0 for any free port.
        token: that browsers must bring once; None: there is none.
        is_public: whether anybody may come without a token.

    Raises:
        UserError: other machines could reach it without a token, or the address is not available.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        admission: Admission,
        host: str = "127.0.0.1",
        port: int = 8088,
        *,
        token: str | None = None,
        is_public: bool = False,
    ) -> None:
        if token is not None and is_public:
            raise UserError(f"--public lets anybody play without a token: unset {TOKEN_VARIABLE}")
        door = Door(_new_app(parts), BOUNDS, token, is_public=is_public)
        super().__init__(door, admission, BOUNDS, host, port)


def _new_app(parts: Sequence[Part]) -> FastAPI:
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, exception_handlers=refusals())
    names = tuple(dict.fromkeys((*SHARED_SCRIPTS, "web.js", *(name for part in parts for name in part.scripts))))
    texts = {name: (_asset(name), "text/javascript") for name in names}
    texts["web.css"] = (style() + _asset("web.css"), "text/css")
    page = _shell(parts, names)

    async def shell() -> HTMLResponse:
        return HTMLResponse(page)

    async def static(name: str) -> Response:
        text, kind = texts.get(name, ("", ""))
        return Response(text, media_type=kind) if kind else Response(status_code=404)

    app.get("/")(shell)
    app.get("/assets/{name}")(static)
    for part in parts:
        app.include_router(part.router)
    return app


def _asset(name: str) -> str:
    own = files("codea1_lab.web").joinpath("assets", name)
    return own.read_text(encoding="utf-8") if own.is_file() else asset(name)


def _shell(parts: Sequence[Part], scripts: Sequence[str]) -> str:
    sections = "".join(
        f'<section id="{part.name}" aria-label="{part.name.capitalize()}"{" hidden" if n else ""}></section>'
        for n, part in enumerate(parts)
    )
    links = [(f"#{part.name}", part.name.capitalize()) for part in parts]
    end = "".join(f'<script src="assets/{name}"></script>' for name in scripts)
    head = '<link rel="stylesheet" href="assets/web.css">'
    return frame("codea1", head, links, sections, end, tab="codea1", back="", footer="")
