"""The Mistake Book on disk. Its rules are in `rules.mistake_book`."""

from codea1_env.book.store import MistakeBook, StoredEntry

__all__ = ["MistakeBook", "StoredEntry"]
