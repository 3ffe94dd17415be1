from __future__ import annotations

import json
import signal
import sys
import urllib.request

import pytest

from codea1_env.sandbox.local import LocalSandbox
from codea1_lab.cli import web
from tests.support.command_line import check_document, codea1, refused, started

pytest.importorskip("fastapi", reason="fastapi is not installed")


@pytest.mark.slow
def test_it_serves_a_page_until_sigterm() -> None:
    process = started("web", "--port", 0, "--limit", 3, "--coders", "mutant", "--coders", "reference", "--json")
    try:
        line = process.stdout.readline()
        check_document(["web"], line)
        ready = json.loads(line)
        with urllib.request.urlopen(f"{ready['url']}/play/game", timeout=30) as response:
            choices = json.loads(response.read())["choices"]
        assert (choices["coders"], choices["testers"]) == (["mutant", "reference"], ["fuzz"])
        assert len(choices["problems"]) == ready["problems"]["n"] == 3
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 130
    finally:
        process.kill()
        process.communicate(timeout=30)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--host", "0.0.0.0"), "set a token in CODEA1_SERVE_TOKEN"),
        (("--coders", "human"), "the visitor is the person"),
        (("--testers", "mutant"), "is a coder, not a tester"),
        (("--problems", "nowhere"), "nowhere"),
        (("runs", "--public"), "--public shows nobody's runs"),
    ],
)
def test_what_cannot_be_served_is_one_sentence(options: tuple[str, ...], why: str) -> None:
    assert why in refused("web", "--port", 0, *options)


@pytest.mark.parametrize("package", ["fastapi", "uvicorn"])
def test_without_its_packages_the_hint_names_this_command(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    for name in [name for name in sys.modules if name.startswith(("codea1_lab.web.", "codea1_env.service."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    why = refused("web", "--port", 0)
    assert "the server of codea1 web needs an optional package: " in why
    assert "[serve]" in why


@pytest.mark.parametrize("tier", ["rlimits", "seccomp"])
def test_the_public_gets_no_sandbox_that_shows_files(monkeypatch: pytest.MonkeyPatch, tier: str) -> None:
    monkeypatch.setattr(web, "load_sandbox", lambda _: LocalSandbox(1, tiers=[tier], allow_weak=True))
    why = refused("web", "--public", "--port", 0)
    assert "too weak" in why
    assert f"by {tier}" in why


def test_the_token_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    token = "a-token-that-nobody-sees"
    monkeypatch.setenv("CODEA1_SERVE_TOKEN", token)
    assert token not in refused("web", "--public", "--port", 0)
    assert token not in codea1("web", "--coders", "human").output
