"""The few names of pytest that test functions use, for harnesses, since pytest is not installed in the sandbox.

A harness that imports pytest gets this module instead; it needs the standard library only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from numbers import Complex
from typing import Any, NoReturn


class ExceptionInfo:
    """The exception that `raises` caught."""

    def __init__(self) -> None:
        self.value: BaseException | None = None
        self.type: type[BaseException] | None = None

    def match(self, pattern: str) -> bool:
        """Assert that the message matches."""
        assert re.search(pattern, str(self.value)), f"{self.value} does not match {pattern!r}"
        return True


def raises(
    expected: type[BaseException] | tuple[type[BaseException], ...], *call: Any, match: str | None = None, **kwargs: Any
) -> Any:
    """Return a context manager that asserts an exception, or assert it of a function and its arguments."""
    if call:
        function, *args = call
        with _raising(expected, match) as info:
            function(*args, **kwargs)
        return info
    return _raising(expected, match)


@contextmanager
def _raising(
    expected: type[BaseException] | tuple[type[BaseException], ...], match: str | None
) -> Iterator[ExceptionInfo]:
    info = ExceptionInfo()
    try:
        yield info
    except expected as error:
        info.value, info.type = error, type(error)
        if match is not None:
            info.match(match)
    else:
        raise AssertionError(f"did not raise {expected}")


def fail(reason: str = "") -> NoReturn:
    """Fail the test."""
    raise AssertionError(reason)


class approx:  # noqa: N801  pytest's name
    """Equal to what lies within a tolerance of `expected`: a number, or a list, tuple or dict of numbers."""

    def __init__(
        self,
        expected: Any,
        rel: float | None = None,
        abs: float | None = None,  # noqa: A002  ditto
        nan_ok: bool = False,
    ) -> None:
        self.expected, self.nan_ok = expected, nan_ok
        # An absolute tolerance alone switches the relative one off, as in pytest.
        self.rel_tol = (1e-6 if abs is None else 0.0) if rel is None else rel
        self.abs_tol = 1e-12 if abs is None else abs

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, found: object) -> bool:
        return self._near(self.expected, found)

    def _near(self, expected: Any, found: Any) -> bool:
        if isinstance(expected, Mapping):
            return (
                isinstance(found, Mapping)
                and expected.keys() == found.keys()
                and all(self._near(value, found[key]) for key, value in expected.items())
            )
        if isinstance(expected, list | tuple):
            return (
                isinstance(found, list | tuple)
                and len(expected) == len(found)
                and all(self._near(a, b) for a, b in zip(expected, found, strict=True))
            )
        if expected == found:
            return True
        if not all(isinstance(each, Complex) for each in (expected, found)):
            return False
        if expected != expected:
            return self.nan_ok and found != found
        is_finite = math.inf not in (abs(expected), abs(found))
        return is_finite and abs(expected - found) <= max(self.rel_tol * abs(expected), self.abs_tol)
