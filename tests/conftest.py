"""Small problems and the shared sandbox, for tests that play."""

from __future__ import annotations

import faulthandler
import gc
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from hypothesis import settings

from codea1_env.facts.verdicts import Outcome, OutcomeKind
from codea1_env.problems import ProblemSet
from codea1_env.sandbox import Guarantee, Job, JobReport, Sandbox, load_sandbox
from tests.support import ALL_TESTS, ROOT
from tests.support.toys import ADD, LAST

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # a look-up without a network takes half a minute
os.environ.setdefault("RAY_worker_niceness", "0")  # by default other tests starve Ray's workers, and their run waits

# A loaded machine must not turn a slow example into a failure.
settings.register_profile("untimed", deadline=None)
settings.register_profile("fast", deadline=None, max_examples=12, stateful_step_count=20)

MARKS = {"cluster": "ray", "browser": "browser", "engine": "engine"} | dict.fromkeys(
    ["base_folder", "model_folder", "phrase_folders", "tiny_folder", "tiny_model", "tiny_base_model"], "models"
)
MARKS |= dict.fromkeys(["started", "serving"], "slow")  # processes of commands
"""What a test is marked as that uses a fixture."""

NEEDS_TORCH = re.compile(r'^(?:\w+ = )?pytest\.importorskip\("(?:ray|torch|transformers|vllm)"', re.MULTILINE)
"""Stands in a module whose tests are all marked `models`."""


SKIPPED = "codea1/skipped"
"""Where pytest's cache keeps what the last run skipped, for a run with more packages and programs."""


PICKED = pytest.StashKey[set[str]]()
"""With `--skipped`, the tests and modules to run."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--skipped", action="store_true", help="run only what the last run without this option skipped")


class SkippedTests:
    """Keeps the tests that a run skips, and the modules that it skips as a whole."""

    def __init__(self, config: pytest.Config) -> None:
        self.cache = config.cache
        self.names: set[str] = set()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.pytest_runtest_logreport(report)

    def pytest_runtest_logreport(self, report: pytest.CollectReport | pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self.names.add(re.sub(r"@[\w -]+$", "", report.nodeid))  # without the group that pytest-xdist appends

    def pytest_sessionfinish(self) -> None:
        self.cache.set(SKIPPED, sorted(self.names))


def skipped_before(config: pytest.Config) -> set[str]:
    """Return the names of the tests and modules that the last run skipped."""
    names = config.cache.get(SKIPPED, None)
    if not names:
        raise pytest.UsageError(
            "--skipped: the last run skipped nothing, or there was none; run the tests without it first"
        )
    return set(names)


def pytest_configure(config: pytest.Config) -> None:
    """Load a profile of hypothesis, and take interrupts in the background (`nohup`), too, since tests send some."""
    if config.option.skipped:
        config.stash[PICKED] = skipped_before(config)
    elif not hasattr(config, "workerinput") and hasattr(config, "cache"):  # the process that hears of all tests
        config.pluginmanager.register(SkippedTests(config))
    settings.load_profile("fast" if "not slow" in config.option.markexpr else "untimed")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


HANG_S = 45
"""So much later than its own limit, a test that no signal reaches ends its process, with the stacks of all threads."""


def limit_hang(config: pytest.Config, seconds: float | None) -> None:
    """End this process if it has not come on in so many seconds; None: it may wait, as a worker does for a test.

    pytest's own limit covers neither collection nor the end of a session, and lapses once a test has failed.
    """
    faulthandler.cancel_dump_traceback_later()
    if seconds is not None:
        stderr = config.stash[fault_handler_stderr_fd_key]  # what pytest captures would be lost with the process
        faulthandler.dump_traceback_later(seconds, exit=True, file=stderr)


def pytest_sessionstart(session: pytest.Session) -> None:
    collects = hasattr(session.config, "workerinput") or not getattr(session.config.option, "numprocesses", None)
    limit_hang(session.config, limit_of(session.config) if collects else None)  # who only has workers waits for them


def limit_of(config: pytest.Config, item: pytest.Item | None = None) -> float:
    marker = item and item.get_closest_marker("timeout")
    return float(marker.args[0] if marker else config.getini("timeout")) + HANG_S


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    limit_hang(item.config, limit_of(item.config, item))
    try:
        return (yield)
    finally:
        limit_hang(item.config, None)


@pytest.hookimpl(trylast=True)
def pytest_exception_interact(node: pytest.Item | pytest.Collector) -> None:
    """Set the limit again, which pytest lifts for a debugger: a fixture can still hang after its test has failed."""
    if isinstance(node, pytest.Item) and not node.config.option.usepdb:
        limit_hang(node.config, limit_of(node.config, node))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    limit_hang(session.config, limit_of(session.config))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    if not ALL_TESTS:
        long = [item for item in items if item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]
    if picked := config.stash.get(PICKED, None):
        items[:] = [item for item in items if {item.nodeid, item.nodeid.partition("::")[0]} & picked]
    for item in items:
        for fixture in MARKS.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(MARKS[fixture])
        if NEEDS_TORCH.search(source_of(item.path)):
            item.add_marker("models")
        if item.get_closest_marker("ray"):
            item.add_marker(pytest.mark.xdist_group("ray"))
        elif item.get_closest_marker("engine") and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group("engine"))  # a sandbox that starts cleans what another test left


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave what has been imported and collected out of garbage collections: it stays to the end."""
    limit_hang(session.config, None)
    gc.collect()
    gc.freeze()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Tests that are not wanted are not even imported, which takes ten seconds and more for those of models."""
    if collection_path.suffix != ".py" or not collection_path.name.startswith("test_"):
        return None
    picked = config.stash.get(PICKED, None)
    if picked and collection_path.relative_to(ROOT).as_posix() not in {name.partition("::")[0] for name in picked}:
        return True
    is_wanted = "not models" not in config.option.markexpr or not NEEDS_TORCH.search(source_of(collection_path))
    return None if is_wanted else True


@cache
def source_of(path: Path) -> str:
    return path.read_text()


@pytest.fixture(autouse=True)
def _signals_stay() -> Iterator[None]:
    """A test leaves interrupts as they were, since other tests send some, and signals that are not blocked."""
    before = _handling()
    yield
    assert _handling() == before


def _handling() -> object:
    return signal.getsignal(signal.SIGINT), signal.pthread_sigmask(signal.SIG_BLOCK, ())


@pytest.fixture(scope="session")
def toys() -> ProblemSet:
    return ProblemSet("toys", (ADD, LAST))


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """The pool that environments of this process share."""
    shared = load_sandbox("local")
    yield shared
    shared.close()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """An empty folder that every user of this machine may enter."""
    with tempfile.TemporaryDirectory(prefix="codea1-test-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


class Broken:
    """A sandbox that is never there: every outcome is its own failure."""

    name = "broken"
    guarantee = Guarantee.TRUSTED_ONLY

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        lost = Outcome(OutcomeKind.INTERNAL_ERROR)
        return [JobReport(lost, (lost,) * len(job.calls)) for job in jobs]

    def close(self) -> None:
        """Nothing to end."""


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of `codea1 pretrain` after two steps."""
    pytest.importorskip("transformers", reason="transformers is not installed")
    folder = tmp_path_factory.mktemp("tiny") / "model"
    command = "from codea1_agents.cli import main; main()"
    subprocess.run([sys.executable, "-c", command, "pretrain", "-o", folder, "--steps", "2", "--quiet"], check=True)
    return folder


broken = Broken()
"""The same, as a name for `--sandbox`."""


@pytest.fixture
def broken_sandbox() -> Broken:
    return broken


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of third-party benchmark rows, which are never part of this repository."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the third-party rows (shared/data beside the repository) are not here")
    return folder
