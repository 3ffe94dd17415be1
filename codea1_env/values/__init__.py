"""Values that cross process borders: encoding, comparing, writing as source. Standard library only.

`encode` and `decode` run inside sandboxed processes; trusted code checks what arrives with `validate` and compares it
with `equal`, and never turns it into live objects.
"""

from __future__ import annotations

from codea1_env.values.comparison import equal
from codea1_env.values.decoding import decode
from codea1_env.values.encoding import Opaque, TooLarge, encode
from codea1_env.values.source import SourceText, describe, to_source
from codea1_env.values.tree import Malformed, parse

__all__ = [
    "Malformed",
    "Opaque",
    "SourceText",
    "TooLarge",
    "decode",
    "describe",
    "encode",
    "equal",
    "to_source",
    "validate",
]


def validate(data: bytes) -> None:
    """Check bytes that claim to be an encoded value.

    Raises:
        Malformed: they are not.
    """
    parse(data)
