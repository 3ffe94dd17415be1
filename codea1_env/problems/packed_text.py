"""The private tests of LiveCodeBench: base64 of zlib of a pickle of one text.

A pickle is a program, and loading one may run anything. So it is not loaded: its instructions are listed, and the text
is taken only if no instruction does more than to hold one text.
"""

from __future__ import annotations

import base64
import binascii
import pickletools
import zlib

from codea1_env.errors import BrokenInput

_MOST_BYTES = 64 << 20
_TEXTS = frozenset({"UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"})
_HARMLESS = frozenset({"PROTO", "FRAME", "PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE", "STOP"}) | _TEXTS
_MOST_INSTRUCTIONS = 16


def packed_text(content: str) -> str:
    """Return the text that is packed in `content`.

    Raises:
        BrokenInput: it is packed in another way, holds more than 64 MiB, or its pickle holds anything but one text.
    """
    try:
        unpacking = zlib.decompressobj()
        pickled = unpacking.decompress(base64.b64decode(content, validate=True), _MOST_BYTES)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise BrokenInput(f"it is not compressed text ({error})") from error
    if unpacking.unconsumed_tail or not unpacking.eof:
        raise BrokenInput(f"it is cut off, or unpacks to more than {_MOST_BYTES:,} bytes")
    texts = []
    try:
        for number, (instruction, argument, _) in enumerate(pickletools.genops(pickled)):
            if instruction.name not in _HARMLESS or number >= _MOST_INSTRUCTIONS:
                raise BrokenInput(f"its pickle must contain one text and nothing else, got {instruction.name}")
            texts += [argument] if instruction.name in _TEXTS else []
    except (ValueError, UnicodeDecodeError) as error:
        raise BrokenInput(f"its pickle is broken ({error})"[:200]) from error
    if len(texts) != 1:
        raise BrokenInput(f"its pickle must contain one text, got {len(texts)}")
    return str(texts[0])
