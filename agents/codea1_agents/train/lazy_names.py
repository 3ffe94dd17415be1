"""Public names of packages that are slow to import. Each name is imported when it is used first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import Any

from codea1_env.errors import MissingExtra


def lazy_names(
    package: str, places: Mapping[str, str], *, needs: Collection[str], what: str, extra: str
) -> Callable[[str], Any]:
    """Return a package's `__getattr__`.

    Args:
        package: its `__name__`.
        places: by name, the module of the package that defines it.
        needs: packages that may not be installed.
        what: what needs these packages, for the error.
        extra: the extra that installs them.
    """

    def find(name: str) -> Any:
        """Import a name.

        Raises:
            AttributeError: the package has no such name.
            MissingExtra: its module needs a package that is not installed.
        """
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            return getattr(import_module(f"{package}.{places[name]}"), name)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in needs:
                raise
            raise MissingExtra.of(what, extra) from error

    return find
