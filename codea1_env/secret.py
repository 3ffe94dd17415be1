"""Refuses keys and passwords in texts that are recorded with a run: specifications of agents, addresses, settings.

A record travels: it is copied, uploaded, put into a report. So a key never enters one. It is in an environment
variable, only the variable's name is written down, and the process that needs the key reads it when it needs it.
"""

from __future__ import annotations

import ipaddress
import os
import re
from urllib.parse import SplitResult, urlsplit

from codea1_env.errors import UserError

_KEY = r"(?=[^\s,;&}]{8})[^\s,;&}]{1,99}?[\dA-Z_+/=-]"
"""The begin of a key, rather than of a word of prose or of a Python name."""
_ASSIGNED = re.compile(
    r"(?<![\w/-])([\w-]++)(?:\s*=(?!=)|\\*[\"']\s*[:=]"
    rf"|\s*:(?=\s+(?:(?i:basic|bearer|digest|token)\s+)?{_KEY}|(?!//)\S{{0,99}}[+=-])|(?i:(?<=bearer))\s+(?={_KEY}))"
    r"\s*(?=([^\s,;&}]{0,999}))"
)
"""A name, and the begin of the first word of its value: behind `=`; behind a quote and `:`; if it looks like a key,
behind `:` or `Bearer`."""
_QUOTES = "\\\"')]"
_WORD = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\\W\\d_]+")
_SECRET = re.compile(
    "(?:^| )(?:key|pass|passcode|pw|pwd|auth|authentication|bearer|cookies?|creds|sig|signatures?|jwt)$"
    "|(?:token|secrets?|passwords?|passwd|passphrases?|credentials?|authorization)$|(?:api|access|private) ?keys$"
    "|(?:access|account|api|app|auth|client|hf|master|private|secret|service|session|shared|signing|user)(?:key|pwd)$"
)
_OF_TEXT = re.compile(
    "(?:bos|cls|end|eos|first|image|last|mask|max|min|next|pad|per|sep|special|start|stop|think|unk) ?token$"
)
"""Names of tokens of a language model, and of limits on them."""
_VARIABLE = re.compile("[A-Z_][A-Z0-9_]*")
"""A variable's name is in capitals: without this rule, a token such as `hf_...` is one."""
_SHORTEST = 7
"""Shorter keys are not hidden: local servers accept ordinary words such as `none` or `EMPTY`."""
_SENDABLE = re.compile("[!-~]*")
_ADDRESS = re.compile(
    r"[a-z][a-z0-9+.-]{0,99}://(?:[^,;\s]{0,2000}[@?#]|[^/,;\s\[]{0,2000}:(?!\d+[,;])[^/\s]{0,2000}@)", re.IGNORECASE
)
_LONGEST_ADDRESS = 2000


def require_no_secrets(text: str) -> None:
    """Check that a text does not contain a key or a password.

    Those are the values of names whose last word is `key`, `password`, `secret`, `token`, `auth`, `cookie` or the like,
    in any spelling, and the user, the query and the fragment of an address. The message does not repeat them.

    Raises:
        UserError: it holds one.

    >>> require_no_secrets("openai,model=m,api_key_env=MY_KEY")
    >>> require_no_secrets("openai,model=m,api_key=sk-123")
    Traceback (most recent call last):
    codea1_env.errors.UserError: 'api_key' holds a secret: put it into an environment variable and give its name, ...
    """
    name = next((name for name, value in _find_secrets(text) if value), None)
    if name or _ADDRESS.search(text):
        what = f"{name!r:.60} holds a secret" if name else "an address holds a user, a password, a query or a fragment"
        raise UserError(
            f"{what}: put it into an environment variable and give its name, as in api_key_env=MY_KEY, since"
            " specifications and settings are recorded with the run"
        )
    for name, value in _find_secrets(text, by_variable=True):
        if not _VARIABLE.fullmatch(value):
            raise UserError(f"{name!r} is the name of an environment variable in capitals, as in api_key_env=MY_KEY")


def _find_secrets(text: str, *, by_variable: bool = False) -> list[tuple[str, str]]:
    """Return the names of secrets in a text, or of variables with secrets, such as `key_env`, with their values."""
    ending, secrets = " env" if by_variable else "", []
    for name, value in _ASSIGNED.findall(text):
        words = " ".join(_WORD.findall(name)).lower()
        what = words.removesuffix(ending)
        if words.endswith(ending) and _SECRET.search(what) and not _OF_TEXT.search(what):
            secrets.append((name, value.strip(_QUOTES)))
    return secrets


def require_variables(text: str) -> None:
    """Check that the environment variables that a user's text names exist: a key may have been typed instead.

    Raises:
        UserError: one does not; the message does not repeat it.
    """
    for name, value in _find_secrets(text, by_variable=True):
        if value not in os.environ:
            raise UserError(
                f"{name!r} must name an environment variable that is set, as in api_key_env=MY_KEY, and never"
                " be the key itself"
            )


def require_address(name: str, url: str) -> SplitResult:
    """Return the parts of an address of HTTP, which holds neither a user nor a query nor a fragment.

    Args:
        name: what the address is of.
        url: in visible ASCII, as every client can send it.

    Raises:
        UserError: it is none.
    """
    require_no_secrets(url if "://" in url else f"http://{url}")
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        host.encode("idna")
        if host.replace(".", "").isdigit():
            ipaddress.ip_address(host)
        is_usable = parts.scheme in ("http", "https") and host != "" and parts.port != 0
    except ValueError:  # such as a port that is not a number, a name with an empty part
        is_usable = False
    if not is_usable or len(url) > _LONGEST_ADDRESS or not _SENDABLE.fullmatch(url):
        raise UserError(f"{name} must be an address such as http://127.0.0.1:8080, got {url!r:.100}")
    return parts


def secret_in(variable: str) -> str:
    """Return the secret in an environment variable; empty if it is not set.

    Raises:
        UserError: no header of a request can hold it. HTTP libraries repeat such a header in their errors.
    """
    secret = os.environ.get(variable, "")
    if not _SENDABLE.fullmatch(secret):
        raise UserError(f"{variable} must be visible ASCII, got other characters, such as a line's end")
    return secret


def without(text: str, secret: str) -> str:
    """Return what a server says with `***` for the secret that it was sent, which some servers repeat."""
    return text.replace(secret, "***") if len(secret) >= _SHORTEST else text
