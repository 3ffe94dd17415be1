"""Keys and passwords in what is recorded are refused, and no message repeats them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_env.errors import UserError
from codea1_env.secret import require_address, require_no_secrets, require_variables, secret_in, without

VALUES = st.text("abcdefghijklmnopqrstuvwxyz0123456789-_.", min_size=8, max_size=40).map("Q".__add__)
NAMES = st.sampled_from(["key", "api_key", "api-key", "x-api-key", "API_KEY", "apikey", "hf_token", "token"])
NAMES |= st.sampled_from(
    ["access_token", "password", "passwd", "client_secret", "session_token", "accessKey", "APIKey"]
)
NAMES |= st.sampled_from(
    ["pwd", "dbPass", "passphrase", "auth", "X-Auth", "bearer", "cookie", "sig", "apiKeys", "CSRFTOKEN"]
)
FORMS = st.sampled_from(
    [
        *("openai,model=m,{name}={value}", "openai,model=m, {name} = {value},retries=0"),
        *("mine:Agent,agent=openai;{name}={value};model=m", "--agnet=openai,{name}={value}"),
        *("agents.coder.agent=openai,{name}={value}", "agents.coder.{name}={value}"),
        *("{{'agents': {{'coder': {{'{name}': '{value}'}}}}}}", '{{"{name}": "{value}"}}'),
        *("openai,base_url=http://host/v1?{name}={value}", "openai,base_url=http://me:{value}@host/v1"),
        *("http://{value}@host", "http://me:{value}/with-a-slash@host/v1", "x=http://host/v1?code={value}"),
        *("openai,base_url=http://host/v1#{value}", "mine:Agent,x=1={name}={value}", "openai:{name}={value}"),
        *("mine:Agent,header={name}: {value}-7", "{name}:{value}-7", "mine:Agent,x=[{name} : Token {value}-7]"),
        *("mine:Agent,header=Bearer {value}_7", "bearer  {value}7", "X-Authorization: Basic {value}X=="),
        *("openai,base_url=https://me:{value},7@host", "openai,base_url=https://me:{value};x@host/v1"),
        *('openai,extra_body={{"headers": {{"{name}": "Bearer {value}"}}}}', '"{{\\"{name}\\": \\"{value}\\"}}"'),
    ]
)


@given(FORMS, NAMES, VALUES)
def test_a_secret_is_refused_in_one_sentence_that_does_not_repeat_it(form: str, name: str, value: str) -> None:
    with pytest.raises(UserError, match="api_key_env=MY_KEY") as caught:
        require_no_secrets(form.format(name=name, value=value))
    assert value not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "openai,model=m,api_key_env=MY_KEY,max_tokens=9",
        "openai,base_url=http://127.0.0.1:8000/v1,top_k=3,stop_token_ids=1,n_tokens=2,max_token=9,key_fn=len",
        *("transformers,model=models/tiny,prompts=tiny", "mine:Agent,eos_token=</s>,keys=3,monkey=1,bypass=1"),
        *("training.micro_batch_tokens=64", "problems/key=value.jsonl", "runs/first@base"),
        *("{'about': 'Find the key: a study', 'book': {}}", "the secret: understanding 64 tokens", "a bearer of news"),
        *("my_auth:Agent7", "token:make_tester_2.blind", "pass: 3", "openai,base_url=http://h:1,model=a@b"),
        *("openai,base_url=http://[::1]:80,model=a@b", "mine:Agent,basic=True,auth_mode=bearer tokens"),
        "{'agents': {'coder': {'agent': 'openai,model=m,api_key_env=MY_KEY'}}}",
    ],
)
def test_what_holds_no_secret_passes(text: str) -> None:
    require_no_secrets(text)


@pytest.mark.parametrize("value", ["sk-canary-123", "hf_canary", ""])
@pytest.mark.parametrize(
    "form",
    [
        *("openai,api_key_env={}", "key_env={}", "--key_env={}", "mine:Agent,agent=openai;api_key_env={};model=m"),
        *("mine:Agent,authEnv={}", "mine:Agent,session-token-env={}"),
    ],
)
def test_a_key_where_a_name_belongs_is_refused_and_not_repeated(form: str, value: str) -> None:
    with pytest.raises(UserError, match=r"[eE]nv' is the name of an environment variable") as caught:
        require_no_secrets(form.format(value))
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    "form", ["api_key_env={}", "--set agents.coder.api_key_env='{}'", "{{'token_env': '{}'}}", "openai,key_env={}"]
)
def test_a_key_that_could_be_a_name_is_none_of_a_variable(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = form.format("AKIACANARY7")
    with pytest.raises(UserError, match="must name an environment variable") as caught:
        require_variables(text)
    assert "CANARY" not in str(caught.value)
    monkeypatch.setenv("AKIACANARY7", "x")
    require_variables(text)


@pytest.mark.parametrize(
    "url",
    [
        *("http://h:99999", "http://h:abc", "http://h:0", "http://[", "http://", "http://:80", "ftp://h", "h:8080", ""),
        *(
            "http://a..b",
            f"http://{'a' * 70}.x",
            "http://\u00fc" + "\u00fc" * 80,
            "http://999.1.1.1",
            "http://h/\u00fc",
        ),
        *("http://h/\x7f", "http://h /", " http://h", "http://h/" + "a" * 5000, "http://h\udcff"),
        *("http://me:canary@h", "http://h?canary", "http://h/v1#canary", "h/v1?code=canary", "http://h?", "http://h#"),
    ],
)
def test_an_address_that_cannot_be_meant_is_one_sentence(url: str) -> None:
    with pytest.raises(UserError, match="address") as caught:
        require_address("base_url", url)
    assert "canary" not in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("url", "host"),
    [("http://[::1]:80/v1", "::1"), ("https://API.example.com/a/b", "api.example.com"), ("http://1.2.3.4", "1.2.3.4")],
)
def test_an_address_has_parts(url: str, host: str) -> None:
    assert require_address("base_url", url).hostname == host


@pytest.mark.parametrize("value", ["canary-key\n", "canary key", "canary-\u20ac"])
def test_a_secret_that_no_header_holds_is_refused_and_not_repeated(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", value)
    with pytest.raises(UserError, match="MY_KEY must be visible ASCII") as caught:
        secret_in("MY_KEY")
    assert "canary" not in str(caught.value)


def test_what_a_server_repeats_is_hidden_unless_it_is_a_word() -> None:
    assert without("Bearer canary-key.", "canary-key") == "Bearer ***."
    assert without("return none", "none") == "return none"


@pytest.mark.parametrize("scheme", ["x" * 1_000_000, "https"])
def test_an_address_is_looked_for_in_one_pass_and_its_secret_is_refused(scheme: str) -> None:
    require_no_secrets(scheme)
    with pytest.raises(UserError, match="an address holds"):
        require_no_secrets(f"{scheme}://user:word@host")


@pytest.mark.parametrize("piece", ["x=", "a://", "a://b:", 'k":'])
def test_what_looks_like_many_secrets_is_read_within_a_bound_for_each(piece: str) -> None:
    """Without one the first took minutes: each name looked at all that follows."""
    require_no_secrets(piece * 60_000)
    with pytest.raises(UserError, match="'api_key' holds a secret"):
        require_no_secrets(f"{piece * 60_000} api_key=canary")
