"""Keys and passwords in what is recorded are refused, and no message repeats them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_env.errors import UserError
from codea1_env.secret import require_no_secrets

VALUES = st.text("abcdefghijklmnopqrstuvwxyz0123456789-_.", min_size=8, max_size=40).map("Q".__add__)
NAMES = st.sampled_from(
    ["key", "api_key", "API_KEY", "apikey", "hf_token", "token", "access_token", "password", "passwd", "client_secret"]
)
FORMS = st.sampled_from(
    [
        "openai,model=m,{name}={value}",
        "openai,model=m, {name} = {value},retries=0",
        "tape,path=t,agent=openai;{name}={value};model=m",
        "--agnet=openai,{name}={value}",
        "agents.coder.agent=openai,{name}={value}",
        "agents.coder.{name}={value}",
        "{{'agents': {{'coder': {{'{name}': '{value}'}}}}}}",
        '{{"{name}": "{value}"}}',
        "openai,base_url=http://host/v1?{name}={value}",
        "openai,base_url=http://me:{value}@host/v1",
        "http://{value}@host",
        "http://me:{value}/with-a-slash@host/v1",
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
        "openai,base_url=http://127.0.0.1:8000/v1?api-version=2024-10",
        "transformers,model=models/tiny,prompts=tiny",
        "mine:Agent,eos_token=</s>,keys=3,monkey=1",
        "training.tokens_at_once=64",
        "problems/key=value.jsonl",
        "runs/first@base",
    ],
)
def test_what_holds_no_secret_passes(text: str) -> None:
    require_no_secrets(text)
