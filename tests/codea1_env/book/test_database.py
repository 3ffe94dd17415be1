"""The file: safe among threads, forks, processes and kills; snapshots; and what is not a book is refused."""

from __future__ import annotations

import copy
import hashlib
import os
import pickle
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from codea1_env.book.store import MistakeBook
from codea1_env.errors import BrokenInput, UserError
from codea1_env.facts.verdicts import ProblemReport
from codea1_env.rules.mistake_book import BookDelta, BookEntry, apply_changes, changes, select_replayed
from codea1_env.rules.ruleset import PRESETS, BookRules, BookUpdate
from tests.support import ROOT
from tests.support.books import FAILED, PASSED, assert_sound, candidate, failing, stored
from tests.support.folders import powerless
from tests.support.processes import forked, wait_for

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded, use of fork:DeprecationWarning")

RELEASE = BookRules()


def frequencies(book: MistakeBook, problem_id: str = "p") -> dict[int, int]:
    return {int(entry.key.expected): entry.frequency for entry in stored(book, problem_id)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "book.sqlite"


def test_threads_share_one_book(path):
    def play(book: MistakeBook) -> None:
        for _ in range(20):
            book.record(failing("p", 1, 2), RELEASE)
            book.retrieve("p", RELEASE)

    for book in (MistakeBook(), MistakeBook(path, survives_power_loss=False)):
        threads = [threading.Thread(target=play, args=(book,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (frequencies(book), book.round_of("p")) == ({1: 80, 2: 80}, 80)
        book.close()


def record_often(book: MistakeBook, problem_id: str, n_rounds: int) -> None:
    for _ in range(n_rounds):
        book.record(failing(problem_id, 1), RELEASE)


def test_forked_children_and_their_parent_all_go_on(path):
    book = MistakeBook(path, survives_power_loss=False)
    book.record(failing("p", 1), RELEASE)
    children = [forked(lambda: record_often(book, "p", 10)) for _ in range(3)]
    record_often(book, "p", 10)
    wait_for(*children)
    assert frequencies(book) == {1: 41}
    assert_sound(book)
    book.close()


def test_a_child_inherits_no_open_file(path):
    # SQLite's locks would seem to be held in the child, and are not: no other test could see that every time.
    def check() -> None:
        links = [Path(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")]
        assert not [link for link in links if link.is_symlink() and path.name in os.readlink(link)]

    with MistakeBook(path), MistakeBook(path):
        wait_for(forked(check))


def test_a_fork_waits_for_the_transactions_of_other_threads(path):
    book = MistakeBook(path, survives_power_loss=False)
    stop = threading.Event()

    def play() -> None:
        while not stop.is_set():
            book.record(failing("p", 1), RELEASE)

    thread = threading.Thread(target=play)
    thread.start()
    for _ in range(5):
        wait_for(forked(lambda: record_often(book, "q", 1)))
    stop.set()
    thread.join()
    assert frequencies(book, "q") == {1: 5}
    assert_sound(book)
    book.close()


def test_a_fork_gives_the_child_a_memory_book_of_its_own():
    with MistakeBook() as book:
        book.record(failing("p", 1), RELEASE)
        wait_for(forked(lambda: record_often(book, "p", 1)))
        assert frequencies(book) == {1: 1}


def test_a_book_pickles_as_its_path_and_one_in_memory_not_at_all(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    with MistakeBook(path.name, survives_power_loss=False) as book:
        data = pickle.dumps(book)
        monkeypatch.chdir("/")
        book.record(failing("p", 1), RELEASE)
        with pickle.loads(data) as same, copy.deepcopy(book) as copied:
            assert same.path == copied.path == path.resolve()
            assert same.size() == copied.size() == 1
    path.unlink()
    with pytest.raises(BrokenInput, match="no such file"):
        pickle.loads(data)
    with MistakeBook() as memory, pytest.raises(UserError, match="in memory"):
        pickle.dumps(memory)


def test_a_closed_book_says_so(path):
    book = MistakeBook(path)
    book.close()
    book.close()
    with pytest.raises(UserError, match="is closed"):
        book.size()


def seeded_round(number: int, replayed: tuple[BookEntry, ...]) -> ProblemReport:
    """The report of round `number` of a game that anybody can play again."""
    rng, sampled = np.random.default_rng(number), []
    for _ in range(2):
        again = {entry.to_valid_case(): [PASSED, FAILED][rng.integers(2)] for entry in replayed}
        new = {int(one): [PASSED, FAILED][rng.integers(2)] for one in rng.integers(0, 200, size=8)}
        sampled.append(candidate(again, new))
    return ProblemReport("p", tuple(sampled))


def play_on(path: Path, rules: BookRules, report_to: int) -> None:
    """Record seeded rounds for ever; write the number of each when it is recorded."""
    book = MistakeBook(path)
    while True:
        number = book.round_of("p") + 1
        book.record(seeded_round(number, book.retrieve("p", rules)), rules)
        os.write(report_to, b"%d\n" % number)


def last_number_before_kill(path: Path, rules: BookRules, delay_s: float) -> int:
    readable, writable = os.pipe()
    child = forked(lambda: play_on(path, rules, writable))
    os.close(writable)
    with open(readable, "rb") as numbers:
        time.sleep(delay_s)
        os.kill(child, signal.SIGKILL)
        lines = numbers.read().splitlines(keepends=True)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    return max((int(line) for line in lines if line.endswith(b"\n")), default=0)


@pytest.mark.slow
def test_what_was_recorded_survives_a_kill_at_any_moment(path):
    rules = PRESETS["fixed"].book
    rng = np.random.default_rng()  # any moment: others in every run of this test
    n_kills = n_rounds = 0
    while n_kills < 10 or n_rounds < 50:
        reported = last_number_before_kill(path, rules, rng.uniform(0.0, 0.15))
        n_kills += 1
        with MistakeBook(path) as book:
            n_rounds = book.round_of("p")
            assert n_rounds >= reported
            assert_sound(book)
    model: tuple[BookEntry, ...] = ()
    with MistakeBook(path) as book:
        for number in range(1, n_rounds + 1):
            report = seeded_round(number, select_replayed(model, rules))
            model = apply_changes(model, changes(report, rules), rules, round=number)
        assert stored(book, "p") == model


def test_processes_that_open_and_record_at_once_lose_nothing(path):
    ready, go = os.pipe()

    def play(number: int) -> None:
        os.close(go)
        os.read(ready, 1)
        with MistakeBook(path, survives_power_loss=False) as book:
            for one in range(50):
                book.record(failing("shared", 1, 2), RELEASE)
                book.record(failing(f"own {number}", one), RELEASE)

    children = [forked(lambda number=number: play(number)) for number in range(4)]
    os.close(go)  # all of them see the end of the pipe at once
    wait_for(*children)
    os.close(ready)
    with MistakeBook(path) as book:
        assert frequencies(book, "shared") == {1: 200, 2: 200}
        assert [book.size(f"own {number}") for number in range(4)] == [50] * 4
        assert (book.size(), book.round_of("shared")) == (202, 200)
        assert_sound(book)


def digest_of_a_game() -> str:
    with MistakeBook() as book:
        for number in range(1, 6):
            book.record(seeded_round(number, book.retrieve("p", RELEASE)), RELEASE)
        return hashlib.sha256(book.snapshot()).hexdigest()


@pytest.mark.slow
def test_equal_games_give_equal_books_byte_for_byte_in_any_process():
    code = "from tests.codea1_env.book.test_database import digest_of_a_game; print(digest_of_a_game())"
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == digest_of_a_game()


def test_a_snapshot_is_an_ordinary_file_that_opens_and_restores_anywhere(path, tmp_path):
    with MistakeBook(path) as book, MistakeBook(tmp_path / "other.sqlite") as other, MistakeBook() as memory:
        book.record(failing("p", 1, 2), RELEASE)
        other.record(failing("q", 9), RELEASE)
        for target in (other, memory):
            target.restore(book.snapshot())
            assert list(target.entries()) == list(book.entries())
            assert (target.size(), target.round_of("p"), target.problem_ids()) == (2, 1, ("p",))
            target.record(failing("p", 1, 3), RELEASE)
            assert frequencies(target) == {1: 2, 2: 1, 3: 1}
        (tmp_path / "copy.sqlite").write_bytes(book.snapshot())
    with MistakeBook(tmp_path / "copy.sqlite") as copied:
        assert frequencies(copied) == {1: 1, 2: 1}


@pytest.mark.parametrize("damage", [b"", b"not a database" * 100, None])
def test_what_is_no_snapshot_is_refused_and_changes_nothing(path, damage):
    with MistakeBook(path) as book:
        book.record(failing("p", *range(500)), RELEASE)
        whole = book.snapshot()
        middle = len(whole) // 2
        broken = whole[:middle] + b"\0" * 9000 + whole[middle + 9000 :] if damage is None else damage
        with pytest.raises(BrokenInput, match="snapshot"):
            book.restore(broken)
        assert book.size() == 500
        assert_sound(book)


def execute(path: Path, statements: str) -> None:
    connection = sqlite3.connect(path)
    connection.executescript(statements)
    connection.close()


def test_other_files_and_a_newer_schema_are_refused_and_left_as_they_are(path, tmp_path):
    text, database = tmp_path / "notes.txt", tmp_path / "other.sqlite"
    text.write_text("not a database, but long enough to have a header " * 10)
    execute(database, "CREATE TABLE mine (x)")
    MistakeBook(path).close()
    execute(path, "PRAGMA user_version = 5")
    reasons = {text: "not a database", database: "not a Mistake Book", path: "expected schema version 4, got 5"}
    for file, reason in (reasons | {tmp_path: "is a folder"}).items():
        before = file.read_bytes() if file.is_file() else b""
        with pytest.raises(BrokenInput, match=reason) as caught:
            MistakeBook(file)
        assert str(file) in str(caught.value)
        assert (file.read_bytes() if file.is_file() else b"") == before
    assert {*tmp_path.iterdir()} == {*reasons}


COLUMNS = {
    "book": "size judge_version",
    "problem": "name round size",
    "entry": "digest sequence expression imports expected direct frequency n_failed n_evaluated added_round"
    " last_replayed_round run episode_id round coder tester program_sha256 verdict actual",
    "departure": "digest expression how added_round left_round n_failed n_evaluated run episode_id round coder",
}
CELLS = [(table, column) for table, columns in COLUMNS.items() for column in columns.split()]


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> Path:
    """A book with entries and departures, as one file."""
    with MistakeBook() as book:
        book.record(failing("p", *range(9)), BookRules(max_entries=6))
        book.record(failing("q", 1, 2), RELEASE)
        path = tmp_path_factory.mktemp("sound") / "book.sqlite"
        path.write_bytes(book.snapshot())
        return path


def used(path: Path) -> None:
    """Do all that users do with a book."""
    with MistakeBook(path) as book:
        list(book.entries()), list(book.departures()), book.size(), book.require_this_judge()
        for rules in (RELEASE, BookRules(n_stalest=4), BookRules(update=BookUpdate.REMOVE_ON_PASS)):
            again = {entry.to_valid_case(): PASSED for entry in book.retrieve("p", rules)}
            book.record(ProblemReport("p", (candidate(again, {3: FAILED, 50: FAILED}),)), rules)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cell=st.sampled_from(CELLS),
    value=st.one_of(
        st.integers(-(1 << 63), (1 << 63) - 1),
        st.sampled_from((1 << 48, (1 << 48) + 1, 1 << 62, (1 << 63) - 1)),
        st.text(max_size=5),
        st.binary(max_size=5),
        st.sampled_from(("[1]", "{}", "[" * 9999, '["import os"]', b"[1", b"\xff", b'{"$":1}')),
        st.floats(),
    ),
)
def test_a_row_that_is_damaged_is_one_sentence_or_as_good_as_another(sound, cell, value):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "book.sqlite")
        shutil.copy(sound, path)
        table, column = cell
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA ignore_check_constraints = ON")
        try:
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = 1", (value,))
        except sqlite3.IntegrityError:  # such as a second entry of the same age
            return
        finally:
            connection.commit()
            connection.close()
        said = ""
        try:
            used(path)
        except UserError as error:
            said = str(error)
        assert "\n" not in said
        assert not said or "Mistake Book" in said or "of the judge" in said


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(bytes_=st.dictionaries(st.integers(0, 1 << 20), st.integers(0, 255), min_size=1, max_size=40))
@example(  # whose pages of departures never end
    {
        489: 180,
        163: 197,
        17033: 187,
        252: 42,
        524287: 112,
        287: 254,
        364554: 176,
        210: 197,
        8523: 203,
        41: 202,
        50819: 78,
    }
)
def test_damaged_bytes_are_one_sentence(sound, bytes_):
    with tempfile.TemporaryDirectory() as folder:
        data = bytearray(sound.read_bytes())
        for place, byte in bytes_.items():
            data[place % len(data)] = byte
        Path(folder, "book.sqlite").write_bytes(data)
        with suppress(UserError):
            used(Path(folder, "book.sqlite"))


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE VIEW more AS SELECT 1",
        "CREATE TRIGGER more AFTER INSERT ON entry BEGIN DELETE FROM entry; END",
        "DROP TABLE entry;"
        "CREATE VIEW entry AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT * FROM n",
        "DROP INDEX entry_by_age",
        "CREATE INDEX more ON entry (hex(expected))",
        "ALTER TABLE book ADD COLUMN more",
    ],
)
def test_a_database_with_other_tables_is_no_book(path, sound, statement):
    shutil.copy(sound, path)
    execute(path, statement)
    with pytest.raises(BrokenInput, match="other tables"):
        MistakeBook(path)
    with MistakeBook() as book, pytest.raises(BrokenInput, match="other tables"):
        book.restore(path.read_bytes())


FULL_DISK = """
import resource, signal, sys
from codea1_env.book.store import MistakeBook
from codea1_env.rules.ruleset import BookRules
from tests.support.books import failing
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
with MistakeBook(sys.argv[1]) as book:
    for number in range(10_000):
        book.record(failing("p", *range(30 * number, 30 * number + 30)), BookRules())
        print(number + 1, flush=True)
"""


def test_a_full_disk_loses_no_round_that_was_recorded(path):
    command = [sys.executable, "-c", FULL_DISK, path]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False, timeout=120)
    assert "BrokenInput: Mistake Book" in done.stderr.splitlines()[-1]
    with MistakeBook(path) as book:
        assert book.round_of("p") == int(done.stdout.split()[-1])
        assert book.size("p") == 30 * book.round_of("p")
        assert_sound(book)
        book.record(failing("p", 0), RELEASE)  # there is room again


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("no/such/book", {}, "does not exist"),
        ("a\0b", {}, "null"),
        ("lost", {"create": False}, "no such file"),
        ("lost", {"read_only": True}, "no such file"),
        ("empty", {"read_only": True}, "is empty"),
    ],
)
def test_where_no_book_can_be_none_is_made(tmp_path, name, options, reason):
    (tmp_path / "empty").touch()
    with pytest.raises(BrokenInput, match=reason):
        MistakeBook(tmp_path / name, **options)
    assert [(path.name, path.stat().st_size) for path in tmp_path.iterdir()] == [("empty", 0)]


def test_opening_waits_for_another_process_that_makes_the_file(path):
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(0.2, other.close)
    timer.start()
    with MistakeBook(path) as book:
        assert book.size() == 0
    timer.join()


def test_waiting_for_another_writer_ends_with_a_sentence(path):
    with MistakeBook(path) as holder, MistakeBook(path, busy_timeout_s=0.05) as waiting:
        with holder._database.writing(), pytest.raises(BrokenInput, match="locked"):
            waiting.record(failing("p", 1), RELEASE)
        assert waiting.record(failing("p", 1), RELEASE) == BookDelta(added=1, size=1)


def test_dropping_a_book_closes_its_file(path):
    book = MistakeBook(path)
    assert Path(f"{path}-wal").exists()
    del book
    assert not Path(f"{path}-wal").exists()


@pytest.fixture
def kept(open_folder: Path) -> Path:
    """A book of two cases in a folder that anybody may look at."""
    path = open_folder / "book.sqlite"
    with MistakeBook(path) as book:
        book.record(failing("p", 1, 2), RELEASE)
    return path


@pytest.mark.parametrize(("file_mode", "folder_mode"), [(0o444, 0o555), (0o444, 0o777), (0o666, 0o555)])
def test_a_book_that_cannot_be_written_can_be_read(kept: Path, file_mode: int, folder_mode: int) -> None:
    kept.chmod(file_mode)
    kept.parent.chmod(folder_mode)
    before = sorted(kept.parent.iterdir())
    with powerless(), MistakeBook(kept, read_only=True) as book:
        assert (book.size(), book.problem_ids(), len(stored(book, "p"))) == (2, ("p",), 2)
        assert len(book.snapshot()) > 0
        with pytest.raises(UserError, match="readonly"):
            book.record(failing("p", 3), RELEASE)
    assert sorted(kept.parent.iterdir()) == before
    kept.parent.chmod(0o755)


def test_rounds_that_only_the_log_holds_are_not_overlooked(kept: Path) -> None:
    with MistakeBook(kept) as book:
        book.record(failing("q", 3, 4, 5), RELEASE)
        copy = kept.with_name("copy.sqlite")
        for suffix in ("", "-wal"):  # as a killed process leaves them
            shutil.copy(f"{kept}{suffix}", f"{copy}{suffix}")
    kept.parent.chmod(0o555)
    with powerless(), pytest.raises(BrokenInput, match="copy both files"):
        MistakeBook(copy, read_only=True)
    kept.parent.chmod(0o755)


def test_a_book_that_may_not_be_read_is_one_sentence(kept: Path) -> None:
    kept.chmod(0)
    with powerless(), pytest.raises(BrokenInput, match="unable to open"):
        MistakeBook(kept, read_only=True)
    kept.chmod(0o644)
    kept.parent.chmod(0)
    with powerless(), pytest.raises(BrokenInput, match="Permission denied"):
        MistakeBook(kept, read_only=True)
    kept.parent.chmod(0o755)
