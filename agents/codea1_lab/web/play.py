"""Play: a person against an agent that the command line has named."""

from __future__ import annotations

from codea1_env.errors import extra_needed
from codea1_lab.web.app import Part

with extra_needed("the server of `codea1 web`", "serve"):
    from fastapi import APIRouter


def play_part() -> Part:
    """Return the part."""
    return Part("play", ("play.js",), APIRouter(prefix="/play"))
