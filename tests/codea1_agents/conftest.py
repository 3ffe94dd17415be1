"""What tests of several packages share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from codea1_env.problems import dump_jsonl
from codea1_env.problems.problem import GoldenCase, Problem
from tests.support.forks import forked_workers
from tests.support.language_models import PHRASES, byte_tokenizer, phrase_folder, saved, tiny_model


@pytest.fixture(scope="session")
def cluster_of_session() -> Iterator[None]:
    """End Ray at the end, whoever has started it."""
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def cluster(cluster_of_session: None) -> None:
    """Ray in this process and on this machine only. It goes on after a module, since it takes seconds to start."""
    import ray

    torch = pytest.importorskip("torch", reason="torch is not installed")
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    torch.set_num_threads(1)
    if not ray.is_initialized():
        with forked_workers():
            ray.init("local", num_cpus=8, include_dashboard=False, log_to_driver=False)


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model that writes bytes."""
    pytest.importorskip("transformers", reason="transformers is not installed")
    return saved(tmp_path_factory.mktemp("model"), tiny_model(), byte_tokenizer())


@pytest.fixture(scope="session")
def phrase_folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Models of a coder and a tester whose every reply is a program or a suite for `f(x) = x + 1`."""
    pytest.importorskip("transformers", reason="transformers is not installed")
    folders = {}
    for seed, role in enumerate(("coder", "tester")):
        folders[role] = phrase_folder(tmp_path_factory.mktemp(role), PHRASES, seed)
    return folders


@pytest.fixture(scope="session")
def increments(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A problem set of three problems, all of them `f(x) = x + 1`."""
    path = tmp_path_factory.mktemp("problems") / "toys.jsonl"
    statement, solution = 'def f(x):\n    """Return x plus one."""\n', "def f(x):\n    return x + 1\n"
    dump_jsonl([Problem(f"toy/{n}", statement, "f", solution, (GoldenCase("f(1)", "2"),)) for n in range(3)], path)
    return str(path)
