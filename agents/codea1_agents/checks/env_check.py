"""Runs the conformance tests of PettingZoo and Gymnasium on our environments; warnings count as errors."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import gymnasium
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import api_test, max_cycles_test, parallel_api_test, parallel_seed_test, seed_test
from pettingzoo.test.performance_benchmark import performance_benchmark
from pettingzoo.test.render_test import render_test

from codea1_env import code_a1_v0
from codea1_env.problems import ProblemSet


@dataclass(frozen=True, slots=True)
class EnvFinding:
    """One conformance test."""

    name: str
    fault: str
    """Why the test failed; empty if it passed."""


def check_environment(problems: ProblemSet) -> tuple[EnvFinding, ...]:
    """Return one finding per conformance test.

    Args:
        problems: the tests play these, with random text as replies.
    """

    def aec(**options: Any) -> object:
        return code_a1_v0.env(problems=problems, **options)

    # Random text is no program, so the tester would have no turn, but this test counts the turns of both agents.
    simultaneous = SimpleNamespace(
        env=partial(code_a1_v0.env, problems=problems, skip_invalid=False),
        parallel_env=partial(code_a1_v0.blind_parallel_env, problems=problems),
    )

    def parallel() -> object:
        return code_a1_v0.parallel_env(problems=problems)

    def group() -> object:
        return code_a1_v0.group_env(problems=problems, n_candidates=2, n_suites=2)

    def gymnasium_view(name: str) -> None:
        with contextlib.closing(gymnasium.make(name, problems=problems)) as view:
            check_env(view.unwrapped)

    tests: dict[str, Callable[[], object]] = {
        "PettingZoo api_test": lambda: api_test(aec(), num_cycles=50),
        "PettingZoo seed_test": lambda: seed_test(aec, num_cycles=20),
        "PettingZoo parallel_api_test": lambda: parallel_api_test(parallel(), num_cycles=50),
        "PettingZoo parallel_seed_test": lambda: parallel_seed_test(parallel, num_cycles=20),
        "PettingZoo parallel_api_test, group": lambda: parallel_api_test(group(), num_cycles=50),
        "PettingZoo parallel_seed_test, group": lambda: parallel_seed_test(group, num_cycles=20),
        "PettingZoo max_cycles_test": lambda: max_cycles_test(simultaneous),
        "PettingZoo render_test": lambda: render_test(aec),
        "PettingZoo performance_benchmark": lambda: performance_benchmark(aec()),
        "Gymnasium check_env, codea1/Coder-v0": lambda: gymnasium_view("codea1/Coder-v0"),
        "Gymnasium check_env, codea1/Tester-v0": lambda: gymnasium_view("codea1/Tester-v0"),
    }
    return tuple(EnvFinding(name, _fault(test)) for name, test in tests.items())


# PettingZoo warns about every environment whose spaces are not Box or Discrete. Ours are Text; no other warning is
# allowed.
_WARNINGS_ABOUT_TEXT_SPACES = (
    "Observation space for each agent probably should be",
    "Action space for each agent probably should be",
    "Observation is not a NumPy array",
)


def _fault(test: Callable[[], object]) -> str:
    try:
        with _quiet(), warnings.catch_warnings():
            warnings.simplefilter("error")
            for message in _WARNINGS_ABOUT_TEXT_SPACES:
                warnings.filterwarnings("ignore", message, UserWarning)
            test()
    except (AssertionError, Warning, LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress what the tests print, and the log lines of options that the tests try."""
    logging.disable(logging.WARNING)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.disable(logging.NOTSET)
