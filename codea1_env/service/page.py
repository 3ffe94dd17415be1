"""The page `/docs`: the routes and schemas of an OpenAPI document, without any script."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from typing import Any

_HEAD = (
    '<!doctype html><meta charset="utf-8"><title>{0}</title><h1>{0}</h1><p>As JSON: <a href="openapi.json">here</a>.'
)


def page_of(document: Mapping[str, Any]) -> str:
    """Return an HTML page with all routes, then all schemas."""
    info = document["info"]
    parts = [_HEAD.format(escape(f"{info['title']} {info['version']}"))]
    for path, methods in document["paths"].items():
        for method, route in methods.items():
            parts.append(_details(f"{method.upper()} {path}", route.get("description", ""), route))
    schemas = document.get("components", {}).get("schemas", {})
    parts += [_details(name, schema.get("description", ""), schema) for name, schema in schemas.items()]
    return "\n".join(parts)


def _details(name: str, about: str, content: object) -> str:
    shown = escape(json.dumps(content, indent=2))
    return f"<details><summary><b>{escape(name)}</b> {escape(about)}</summary><pre>{shown}</pre></details>"
