"""Which optional packages an entry point lacks here."""

from __future__ import annotations

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution, entry_points
from importlib.util import find_spec

_REQUIREMENT = re.compile(r"""(?P<name>[\w.-]+).*;.*\bextra\s*==\s*["'](?P<extra>[\w.-]+)["']""")


def missing_extra(group: str, name: str) -> str:
    """Return what pip would have to install, as in `codea1-env[openai]`; empty: nothing.

    An entry point needs the extra of its distribution that bears its name, if there is one. Imports nothing.
    """
    for point in entry_points(group=group, name=name):
        if point.dist is not None and not all(map(_is_there, _required(point.dist, name))):
            return f"{point.dist.name}[{name}]"
    return ""


def _required(dist: Distribution, extra: str) -> list[str]:
    found = [_REQUIREMENT.fullmatch(each) for each in dist.requires or ()]
    return [each["name"] for each in found if each and each["extra"] == extra]


def _is_there(name: str) -> bool:
    if find_spec(name.replace("-", "_").replace(".", "_")) is not None:
        return True
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True
