"""Arranges the memory of a zygote so that its forks are cheap.

A process that answers a short job spends most of its time on page faults: the kernel copies each page of the zygote's
memory that it writes to (a reference count is enough) and maps each page of a library's code again. So the zygote does
once what every child will do. It fills the free gaps that its imports left in memory, so that later objects, even those
of a child, lie close together. And it makes forks inherit the page tables of the interpreter's own code.
"""

from __future__ import annotations

import ctypes
import sys

_POOL_BYTES = 1 << 14  # of CPython's allocator: objects of one size class
_POOL_HEADER_BYTES = 64
_LARGEST_POOLED = 512
_BYTES_OVERHEAD = sys.getsizeof(b"")
_MAX_PER_CLASS = 4096
_LARGE_SIZES = (65_536, 32_768, 16_384, 8192, 4096, 2048, 1024, 640)
_MAX_LARGE = 64
_PROT_READ, _PROT_WRITE, _PROT_EXEC = 1, 2, 4

_kept: list[bytes] = []


def fill_free_memory() -> None:
    """Fill the free memory between existing objects, permanently, so that later objects lie side by side."""
    for size in range(_BYTES_OVERHEAD // 16 * 16 + 16, _LARGEST_POOLED + 1, 16):
        for _ in range(_MAX_PER_CLASS):
            filler = bytes(size - _BYTES_OVERHEAD)
            _kept.append(filler)
            if id(filler) % _POOL_BYTES < _POOL_HEADER_BYTES:  # the first object of a new pool: all others are full
                break
    highest = 0
    for size in _LARGE_SIZES:
        for _ in range(_MAX_LARGE):
            filler = bytes(size - _BYTES_OVERHEAD)
            _kept.append(filler)
            if id(filler) > highest:  # at the end of the heap: no gap before it is large enough
                highest = id(filler)
                break


def share_code_pages() -> None:
    """Make forks inherit the page tables of the interpreter's code; otherwise each child faults the pages in again.

    The kernel copies the page tables of a file mapping only if one of its pages was written to. So this overwrites one
    byte of the mapping with itself. Some hardened systems do not allow that; then this function has no effect.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    libc.mprotect.argtypes = [ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as lines:
            mappings = [line.split(maxsplit=5) for line in lines]
    except OSError:  # not Linux, or already sealed
        return
    for span, rights, _, _, _, *path in mappings:
        if rights != "r-xp" or not path or not _is_interpreter(path[0]):
            continue
        start, end = (int(text, 16) for text in span.split("-"))
        if libc.mprotect(start, end - start, _PROT_READ | _PROT_WRITE | _PROT_EXEC) == 0:
            ctypes.memmove(start, ctypes.string_at(start, 1), 1)
            libc.mprotect(start, end - start, _PROT_READ | _PROT_EXEC)


def _is_interpreter(path: str) -> bool:
    return path.rpartition("/")[2].startswith(("python", "libpython"))
