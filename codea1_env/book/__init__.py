"""The Mistake Book on disk: its store, and its import and export files. Its rules are in `rules.mistake_book`."""

from codea1_env.book.files import export_official, import_official, merge
from codea1_env.book.store import MistakeBook, StoredEntry

__all__ = ["MistakeBook", "StoredEntry", "export_official", "import_official", "merge"]
