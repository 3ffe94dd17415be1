from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
from base64 import b64encode
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_env.errors import AgentUnavailable, UserError
from codea1_env.sandbox import Call, Job
from codea1_env.sandbox.local import LocalSandbox
from codea1_env.secret import (
    Secret,
    read_secrets,
    redacted,
    redacted_error,
    redacted_errors,
    require_secrets,
    revealed,
    shown_url,
    without_secrets,
)
from codea1_env.values import decode

KEY = "canary-of-the-unit-tests"

SPECS = {
    "openai,api_key=sk-1,model=m": "openai,api_key=***,model=m",
    "openai,model=m, API_KEY = sk-1": "openai,model=m, API_KEY =***",
    "tape,path=t,agent=openai;api_key=sk-1;model=m": "tape,path=t,agent=openai;api_key=***;model=m",
    "mine:Agent,hf_token=x,max_tokens=9,key_env=K": "mine:Agent,hf_token=***,max_tokens=9,key_env=K",
    "mine:Agent,key=x,monkey=3,passwd=y": "mine:Agent,key=***,monkey=3,passwd=***",
    "openai,base_url=http://me:pw@h:1/v1?key=abc&x=1#y,model=m": "openai,base_url=http://***@h:1/v1?key=***&x=***#***,model=m",
    "tape,path=t,agent=openai;base_url=https://me@h/v1": "tape,path=t,agent=openai;base_url=https://***@h/v1",
    "openai,base_url=http://me:p/w@h/v1": "openai,base_url=http://***@h/v1",
    "openai,base_url=http://h/v1/@me?abc": "openai,base_url=http://h/v1/@me?***",
    "openai,base_url=http://[::1]:8000/v1": "openai,base_url=http://[::1]:8000/v1",
    "mutant,strength=0.5": "mutant,strength=0.5",
    "openai,api_key=": "openai,api_key=",
}


@pytest.mark.parametrize(("spec", "shown"), SPECS.items())
def test_a_specification_shows_no_secrets_and_keeps_them(spec: str, shown: str) -> None:
    read = read_secrets(spec)
    for told in (str(read), f"{read}", "%s" % read, repr(read)[1:-1], json.loads(json.dumps(read)), read):  # noqa: UP031
        assert told == shown
    assert without_secrets(spec) == without_secrets(shown) == shown
    assert revealed(read) == spec
    assert revealed(read_secrets(read)) == spec
    assert revealed(copy.deepcopy(read)) == spec
    assert revealed(pickle.loads(pickle.dumps(read))) == spec
    assert revealed(read + ",seed=1") == f"{spec},seed=1"
    assert read + ",seed=1" == f"{shown},seed=1"


def test_what_travels_is_the_name_of_a_variable() -> None:
    read = read_secrets(f"openai,api_key={KEY}")
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert KEY.encode() not in pickle.dumps(read, protocol)
    variable = Secret.of(KEY).variable
    assert os.environ[variable] == KEY
    assert variable.encode() in pickle.dumps(read)


@pytest.mark.slow
def test_a_process_without_the_variable_says_so_in_one_sentence() -> None:
    read = read_secrets(f"openai,api_key={KEY}")
    code = (
        f"import pickle\nfrom codea1_env.secret import revealed\nprint(revealed(pickle.loads({pickle.dumps(read)!r})))"
    )
    others = {name: value for name, value in os.environ.items() if value != KEY}
    with_it, without = (
        subprocess.run([sys.executable, "-c", code], env=each, capture_output=True, text=True, check=False)
        for each in (dict(os.environ), others)
    )
    assert with_it.stdout.strip() == f"openai,api_key={KEY}"
    assert without.returncode
    assert f"no environment variable {Secret.of(KEY).variable}" in without.stderr.splitlines()[-1]


def test_a_secret_whose_variable_is_gone_gets_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_MINE", "canary-that-moves")
    assert Secret.in_variable("OF_MINE").reveal() == "canary-that-moves"
    assert Secret.of("canary-that-moves").variable == "OF_MINE"
    monkeypatch.delenv("OF_MINE")
    assert Secret.of("canary-that-moves").reveal() == "canary-that-moves"


@pytest.mark.parametrize(
    "told",
    [
        KEY,
        f"Authorization: Bearer {KEY}.",
        f"{KEY}{KEY}",
        "canary me:hunter22 and hunter22 and " + b64encode(b"me:hunter22").decode(),
        f"?key={quote('a canary/quoted', safe='')}",
        json.dumps({"key": 'a canary "quoted"'}),
        repr("a canary\nin lines"),
    ],
)
def test_known_secrets_are_found_in_every_form(told: str) -> None:
    for value in (KEY, "me:hunter22", "a canary/quoted", 'a canary "quoted"', "a canary\nin lines"):
        Secret.of(value)
    assert "***" in redacted(told)
    for part in (KEY, "hunter22", b64encode(b"me:hunter22").decode(), "quoted", "in lines"):
        assert part not in redacted(told)


@pytest.mark.parametrize("value", ["a\0b", "\ud800"])
def test_a_secret_that_no_variable_holds_is_one_sentence(value: str) -> None:
    with pytest.raises(UserError, match="no environment variable can hold"):
        read_secrets(f"openai,api_key={value}")


def test_short_words_are_not_searched_for() -> None:
    read_secrets("openai,api_key=none")
    assert redacted("return none") == "return none"


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_known_secret_survives(before: str, after: str) -> None:
    Secret.of(KEY)
    assert KEY not in redacted(before + KEY + after)
    assert KEY not in without_secrets(before + KEY + after)


@given(st.text(alphabet="ab:/?#@&=%[]", max_size=20))
def test_any_text_has_an_address_to_show_that_shows_itself(text: str) -> None:
    shown = shown_url(f"http://{text}")
    assert shown_url(shown) == shown
    assert revealed(read_secrets(f"openai,base_url=http://{text}")) == f"openai,base_url=http://{text}"


class Strange(Exception):
    def __str__(self) -> str:
        return f"strange {KEY}"


def nested() -> Exception:
    try:
        raise KeyError(KEY)
    except KeyError as error:
        found = ValueError("outer")
        found.__cause__ = error
        return found


@pytest.mark.parametrize(
    "error",
    [AgentUnavailable(f"no {KEY}"), UserError(f"no {KEY}"), KeyError(KEY), Strange(), SystemExit(KEY), nested()],
)
def test_an_error_keeps_its_kind_where_it_can_and_no_secret(error: Exception) -> None:
    Secret.of(KEY)
    with pytest.raises(BaseException) as caught, redacted_errors():  # noqa: PT011
        raise error
    assert KEY not in str(caught.value) + repr(caught.value.__cause__)
    assert type(caught.value) in (type(error), RuntimeError)
    assert type(caught.value) is type(error) or "Strange" in str(caught.value)


def test_other_errors_are_left_alone() -> None:
    error = ValueError("nothing in it")
    error.__cause__ = KeyError("nor here")
    assert redacted_error(error) is error
    assert error.__cause__ is not None


@pytest.mark.parametrize("spec", ["openai,api_key=***", "openai,base_url=http://***@h/v1"])
def test_a_specification_from_a_record_is_refused(spec: str) -> None:
    with pytest.raises(UserError, match="records hold no secrets"):
        require_secrets(spec)
    require_secrets(read_secrets(spec.replace("***", "sk-1")))


def test_programs_do_not_see_the_variable() -> None:
    name = Secret.of(KEY).variable
    program = f"""
import os

def f():
    found = [name for name, value in os.environ.items() if name == {name!r} or {KEY[:9]!r} in value]
    for place in ("self", str(os.getppid()), "1"):
        try:
            found += [place for text in [open(f"/proc/{{place}}/environ", "rb").read()] if {KEY[:9].encode()!r} in text]
        except OSError:
            pass
    return found
"""
    with LocalSandbox(1) as sandbox:
        (report,) = sandbox.run([Job(program, "f", (Call("f()"),))])
    assert report.outcomes[0].value is not None
    assert decode(report.outcomes[0].value) == []
