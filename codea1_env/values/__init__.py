"""Values that cross process borders: encode, decode, compare and write them as source. Standard library only.

`encode` and `decode` run inside sandboxed processes. Trusted code checks encoded values with `validate`, compares them
with `equal`, and never turns them into live objects (except small plain values, see `exact`).
"""

from __future__ import annotations

import codecs

from codea1_env.values.comparison import equal
from codea1_env.values.decoding import decode
from codea1_env.values.encoding import Opaque, TooLarge, encode
from codea1_env.values.source import SourceText, describe, to_source
from codea1_env.values.tree import MAX_BYTES, MAX_NODES, BeyondBudget, Malformed, is_beyond_budget, parse

__all__ = [
    "MAX_BYTES",
    "MAX_NODES",
    "Malformed",
    "Opaque",
    "SourceText",
    "TooLarge",
    "decode",
    "describe",
    "encode",
    "equal",
    "is_beyond_budget",
    "to_source",
    "validate",
]


def validate(data: bytes) -> None:
    """Check bytes that claim to be an encoded value; of values beyond the budget of `tree`, check only that they are
    UTF-8.

    Raises:
        Malformed: they are not.
    """
    try:
        parse(data)
    except BeyondBudget:
        if not data.isascii():
            _require_utf8(data)


def _require_utf8(data: bytes) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(data), _PIECE):
            decoder.decode(data[start : start + _PIECE])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise Malformed(str(error)[:200]) from None


_PIECE = 1 << 20  # bytes: the decoded text may take four times the memory
