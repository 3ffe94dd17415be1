"""The docker back end where no engine answers, or its SDK is not installed."""

from __future__ import annotations

import pickle

import pytest

import codea1_env.sandbox.docker.engine
from codea1_env.errors import MissingExtra, SandboxError
from codea1_env.sandbox.docker.sandbox import DockerSandbox
from codea1_env.sandbox.interface import Guarantee, Job, Sandbox


def test_it_says_what_it_promises_without_starting_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("docker")
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/socket")
    sandbox = DockerSandbox(3, image="some/image", memory_mb=2048)
    assert (sandbox.name, sandbox.guarantee) == ("docker", Guarantee.ISOLATED)
    assert isinstance(sandbox, Sandbox)
    assert sandbox.run([]) == []
    copy = pickle.loads(pickle.dumps(sandbox))
    assert type(copy) is DockerSandbox
    assert pickle.dumps(copy) == pickle.dumps(sandbox)
    sandbox.close()


def test_without_the_sdk_the_line_that_installs_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codea1_env.sandbox.docker.engine.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"the docker sandbox .*\[docker\]"):
        DockerSandbox()


def test_without_an_engine_its_address_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("docker")
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/socket")
    with DockerSandbox(1) as sandbox, pytest.raises(SandboxError, match=r"no Docker engine answers .*/nowhere/socket"):
        sandbox.run([Job("def f(): pass", "f")])
