"""Secrets: keys and passwords that only the agents may read.

A secret is stored in an environment variable. All other places hold a text that shows it as `***`, in `repr`, `str`,
`format`, JSON and TOML, and that pickles as the variable's name. Only `revealed` returns the value, in a process that
has the variable. `redacted` removes every secret that this process knows from the texts of agents. `without_secrets`
also removes what looks like a secret from specifications and addresses.
"""

from __future__ import annotations

import json
import os
import re
import threading
import traceback
from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, NamedTuple, Self
from urllib.parse import quote, unquote, urlsplit

from codea1_env.errors import UserError

HIDDEN = "***"
"""Replaces a secret in texts."""

_VARIABLE = "CODEA1_SECRET_{}"
_SHORTEST = 7
"""Shorter secrets are not redacted: local servers accept ordinary words such as `none` or `EMPTY`."""
_NAME = r"(?:(?:\w*_)?key|\w*(?:apikey|token|passw(?:or)?d|secret|credentials?|authorization))"
_OPTION = re.compile(rf"[,;]\s*{_NAME}\s*=([^,;]*)", re.IGNORECASE)
_URL = re.compile(r"""[a-z][a-z0-9+.-]*://[^,;\s]+?(?=['"`)>\].:]*(?:[,;\s]|$))""", re.IGNORECASE)

_lock = threading.Lock()
_known: dict[str, str] = {}
"""From the value of each secret that this process has read to the variable that holds it."""
_searched: dict[str, None] = {}
"""Every form in which a text may hold one of them."""


class Secret(str):
    """One secret; as a text it is `***`."""

    __slots__ = ("variable",)

    variable: str
    """Name of the environment variable that holds it."""

    def __new__(cls, variable: str) -> Self:
        """Make a secret of a variable's name; the variable need not exist yet."""
        secret = super().__new__(cls, HIDDEN)
        secret.variable = variable
        return secret

    @classmethod
    def of(cls, value: str) -> Self:
        """Return a secret of this value; set a variable to the value unless one holds it already."""
        with _lock:
            name = _known.get(value, "")
            if os.environ.get(name) != value:
                names = (_VARIABLE.format(number) for number in count(1))
                name = next(name for name in names if os.environ.get(name, value) == value)
                try:
                    os.environ[name] = value
                except ValueError as error:
                    raise UserError("a secret has characters that no environment variable can hold") from error
                _remember(value, name)
        return cls(name)

    @classmethod
    def in_variable(cls, name: str) -> Self:
        """Return the secret in a variable that the user has set."""
        if os.environ.get(name):
            _remember(os.environ[name], name)
        return cls(name)

    def reveal(self) -> str:
        """Return the value.

        Raises:
            UserError: this process does not have the variable.
        """
        value = os.environ.get(self.variable)
        if value is None:
            raise UserError(
                f"a secret is missing here: this process has no environment variable {self.variable}; set a variable "
                "of your own wherever agents run, and name it, as in key_env=MY_KEY"
            )
        _remember(value, self.variable)
        return value

    def __reduce__(self) -> tuple[Any, ...]:
        return Secret, (self.variable,)


class TextWithSecrets(str):
    """A specification or an address that contains secrets; as a text it shows `***` for each of them."""

    __slots__ = ("_pieces",)

    _pieces: tuple[str, ...]

    def __new__(cls, *pieces: str) -> Self:
        """Join pieces of text, some of them secrets."""
        text = super().__new__(cls, "".join(pieces))
        text._pieces = pieces
        return text

    def reveal(self) -> str:
        """Return the text with its secrets; raises as `Secret.reveal`."""
        return "".join(map(revealed, self._pieces))

    def __add__(self, more: str) -> TextWithSecrets:
        return TextWithSecrets(*self._pieces, more)

    def __reduce__(self) -> tuple[Any, ...]:
        return TextWithSecrets, self._pieces


def read_secrets(text: str) -> str:
    """Return a specification or an address in a form that may be shown and stored; `revealed` returns the original.

    Secrets are the values of options whose names are `key` or end in `_key`, `apikey`, `token`, `password`, `passwd`,
    `secret`, `credential(s)` or `authorization`. In addresses they are the user and the password, the values of the
    query, and the fragment.
    """
    if isinstance(text, Secret | TextWithSecrets):
        return text
    pieces: list[str] = []
    end = 0
    for span in _spans(text):
        pieces += [text[end : span.start], Secret.of(text[span.start : span.end])]
        end = span.end
    return TextWithSecrets(*pieces, text[end:]) if pieces else text


def revealed(text: str) -> str:
    """Return a text with the values of its secrets, if it has any; raises as `Secret.reveal`."""
    return text.reveal() if isinstance(text, Secret | TextWithSecrets) else text


def require_secrets(spec: str) -> None:
    """Raise UserError for a specification that was read from a record, which holds no secrets."""
    if HIDDEN in spec and not isinstance(spec, TextWithSecrets):
        raise UserError(f"agent {spec!r}: records hold no secrets; give it again with yours in the place of {HIDDEN}")


def is_secret_option(name: str) -> bool:
    """Return whether an option of this name holds a secret; see `read_secrets`."""
    return re.fullmatch(_NAME, name.strip(), re.IGNORECASE) is not None


def shown_url(url: str) -> str:
    """Return an address without the user, the password, the values of the query and the fragment."""
    return _hidden(url, _spans_of_url(url, 0))


def without_secrets(text: str) -> str:
    """Return a text that records and screens may show: without known secrets and without what looks like one."""
    return _hidden(redacted(str(text)), _spans(redacted(str(text))))


def redacted(text: str) -> str:
    """Return a text with `***` for each known secret of at least 7 characters, in any encoding of it."""
    for form in sorted(_searched, key=len, reverse=True):
        text = text.replace(form, HIDDEN)
    return text


def redacted_error(error: Exception | SystemExit) -> Exception | SystemExit:
    """Return an equal error without known secrets; the same object if it holds none."""
    if not _leaks(error):
        return error
    error.args = tuple(redacted(each) if isinstance(each, str) else each for each in error.args)
    if isinstance(error, SystemExit) and isinstance(error.code, str):
        error.code = redacted(error.code)
    error.__cause__ = error.__context__ = None
    if not _leaks(error):
        return error
    replacement = RuntimeError(redacted(f"{type(error).__name__}: {error}"))
    return replacement.with_traceback(error.__traceback__)


@contextmanager
def redacted_errors() -> Iterator[None]:
    """Remove known secrets from the errors that the block raises."""
    try:
        yield
    except (Exception, SystemExit) as error:
        found = redacted_error(error)
        if found is error:
            raise
        raise found from None


class _Span(NamedTuple):
    start: int
    end: int


def _leaks(error: BaseException) -> bool:
    text = "".join(traceback.format_exception(error))
    if isinstance(error, SystemExit):
        text += str(error.code)
    return redacted(text) != text


def _remember(value: str, name: str) -> None:
    """Register a secret in all forms in which servers and libraries write it."""
    was_known = value in _known
    _known[value] = name
    if was_known:
        return
    plain = value.strip()
    password = plain.partition(":")[2]
    for each in {plain, unquote(plain), password, unquote(password)}:
        for form in (each, quote(each, safe=""), json.dumps(each)[1:-1], repr(each)[1:-1]):
            if len(form) >= _SHORTEST:
                _searched[form] = None
    if password:
        _searched[b64encode(unquote(plain).encode("utf-8", "surrogateescape")).decode()] = None


def _spans(text: str) -> list[_Span]:
    """Return the positions of secrets in a text, in order, without overlaps."""
    found = [_Span(*match.span(1)) for match in _OPTION.finditer(text)]
    for match in _URL.finditer(text):
        found += _spans_of_url(match[0], match.start())
    apart: list[_Span] = []
    for span in sorted(found):
        is_new = not apart or span.start >= apart[-1].end
        value = text[span.start : span.end].strip()
        if is_new and value and not value.startswith(HIDDEN):
            apart.append(span)
    return apart


def _spans_of_url(url: str, offset: int) -> Iterator[_Span]:
    start = url.find("://") + len("://") if "://" in url else 0
    end = start + len(re.split(r"[/?#]", url[start:])[0])
    at = url.rfind("@", start, end)
    if at < 0 and not _is_authority(url[start:end]):  # such as a password with an unquoted slash in it
        at = url.rfind("@")
    if at >= start:
        yield _Span(offset + start, offset + at)
    for match in re.finditer(r"[?&](?:[^=&#]*=)?([^&#]*)|#(.*)", url[max(at, start) :]):
        first, last = match.span(1) if match[1] is not None else match.span(2)
        yield _Span(offset + max(at, start) + first, offset + max(at, start) + last)


def _is_authority(authority: str) -> bool:
    try:
        urlsplit(f"//{authority}").port  # noqa: B018  reading it checks it
    except ValueError:
        return False
    return True


def _hidden(text: str, spans: Iterable[_Span]) -> str:
    end = 0
    pieces: list[str] = []
    for span in spans:
        if span.end > span.start:
            pieces += [text[end : span.start], HIDDEN]
            end = span.end
    return "".join([*pieces, text[end:]])
