"""Refuses keys and passwords in texts that are recorded with a run: specifications of agents, addresses, settings.

A record travels: it is copied, uploaded, put into a report. So a key never enters one. It is in an environment
variable, only the variable's name is written down, and the process that needs the key reads it when it needs it.
"""

from __future__ import annotations

import os
import re

from codea1_env.errors import UserError

_NAME = (
    r"(?:[\w-]*[_-])?(?:key|apikey|passwd|password|secret|credentials?|authorization)"
    r"|(?:\w*(?:api|auth|access|bearer|hf)_?)?token"
)
_OPTION = re.compile(rf"(?:^|[,;?&.\"'{{]\s*|--)({_NAME})(?:[\"']?\s*=|[\"']\s*:)\s*[^\s,;&}}]", re.IGNORECASE)
_KEY_FOR_NAME = re.compile(
    r"(?:^|[,;.\"'{]\s*|--)(\w*(?:key|token|password)_env)\s*=(?!\s*[A-Z_][A-Z0-9_]*\s*(?:[,;\"']|$))"
)
"""A variable's name is in capitals: without this rule, a token such as `hf_...` is one."""
_HIDDEN = "***"
_SHORTEST = 7
"""Shorter keys are not hidden: local servers accept ordinary words such as `none` or `EMPTY`."""
_SENDABLE = re.compile("[!-~]*")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://[^,;\s]*@", re.IGNORECASE)


def require_no_secrets(text: str) -> None:
    """Check that a text does not contain a key or a password.

    Those are the values of options, and of the query of an address, whose names are `key`, `password`, `secret`,
    `token` and the like, and the user of an address. The message does not repeat them.

    Raises:
        UserError: it holds one.

    >>> require_no_secrets("openai,model=m,api_key_env=MY_KEY")
    >>> require_no_secrets("openai,model=m,api_key=sk-123")
    Traceback (most recent call last):
    codea1_env.errors.UserError: 'api_key' holds a secret: put it into an environment variable and give its name, ...
    """
    option = _OPTION.search(text)
    if option or _ADDRESS.search(text):
        what = f"{option[1]!r} holds a secret" if option else "an address holds a user or a password"
        raise UserError(
            f"{what}: put it into an environment variable and give its name, as in api_key_env=MY_KEY, since"
            " specifications and settings are recorded with the run"
        )
    if name := _KEY_FOR_NAME.search(text):
        raise UserError(f"{name[1]!r} is the name of an environment variable in capitals, as in api_key_env=MY_KEY")


_NAMED = re.compile(r"\b(\w*(?:key|token|password)_env)[\"']?\s*[=:]\s*[\"']?([^\s,;\"'}]+)")


def require_variables(text: str) -> None:
    """Check that the environment variables that a user's text names exist: a key may have been typed instead.

    Raises:
        UserError: one does not; the message does not repeat it.
    """
    for option, name in _NAMED.findall(text):
        if name not in os.environ:
            raise UserError(
                f"{option!r} must name an environment variable that is set, as in api_key_env=MY_KEY, and never"
                " be the key itself"
            )


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
    return text.replace(secret, _HIDDEN) if len(secret) >= _SHORTEST else text
