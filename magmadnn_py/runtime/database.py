"""The kernel database: how long kernels take on this device, in one SQLite file in the user's cache folder.

A row is the timing of one algorithm on one signature (op, attributes, types, threads), by one kernel library on one
device. Processes share the file: transactions are short, and one that is killed leaves no trace. Where the file cannot
be used (a read-only folder, a lock that stays), everything works without it.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from ..utils.files import cache_root, set_aside
from .log import warn_once

#: Tells the file from those of other programs, and from those of other versions of this one.
_IDENTITY = (0x4D444E4E, 1)
_LOCK_SECONDS = 10.0

_KEY = ("device", "version", "op", "attributes", "inputs", "outputs", "threads", "algorithm")
#: What a row holds, in this order; those of _STRUCTURED are nestings of lists, dicts and numbers, kept as JSON.
COLUMNS = (*_KEY, "seconds", "samples", "flops", "bytes")
_STRUCTURED = ("attributes", "inputs", "outputs")

_CREATE = f"""
CREATE TABLE timings (
    device TEXT NOT NULL, version TEXT NOT NULL,
    op TEXT NOT NULL, attributes TEXT NOT NULL, inputs TEXT NOT NULL, outputs TEXT NOT NULL,
    threads INTEGER NOT NULL, algorithm TEXT NOT NULL,
    seconds REAL NOT NULL, samples INTEGER NOT NULL, flops INTEGER NOT NULL, bytes INTEGER NOT NULL,
    measured TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
    PRIMARY KEY ({", ".join(_KEY)})
) WITHOUT ROWID
"""
_INSERT = f"INSERT OR REPLACE INTO timings ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"


class KernelDatabase:
    """Timings of kernels, shared by the processes of a user.

    Args:
        path: the file; by default `kernels.sqlite` in the cache folder (`MAGMADNN_CACHE`, or the user's). A file that
            is damaged, or not one of these, is set aside as `<name>.bad`, with a warning, and a new one begun.

    A row is a dict with the keys `COLUMNS`: device and version (text), op (its name), attributes (a dict), inputs and
    outputs (lists of [dtype, shape]), threads, algorithm, seconds (the median of a run), samples (how many timings it
    is the median of), flops and bytes (of a run, by the op's own count).
    """

    def __init__(self, path: str | os.PathLike | None = None):
        self.path = Path(path) if path is not None else cache_root() / "kernels.sqlite"
        self._usable = True

    def rows(self, **wanted) -> list[dict[str, Any]]:
        """All rows whose columns have the given values: `rows(op="matmul", threads=2)`."""
        if unknown := set(wanted) - set(COLUMNS):
            raise ValueError(f"rows: got {', '.join(sorted(unknown))}, wanted some of {', '.join(COLUMNS)}")
        where = " AND ".join(["1", *(f"{column} = ?" for column in wanted)])
        query = f"SELECT {', '.join(COLUMNS)} FROM timings WHERE {where}"
        values = [_to_sql(column, value) for column, value in wanted.items()]
        found = self._use(lambda connection: connection.execute(query, values).fetchall(), [])
        return [{column: _from_sql(column, v) for column, v in zip(COLUMNS, row, strict=True)} for row in found]

    def add(self, rows: Iterable[dict[str, Any]]) -> None:
        """Keeps the rows, in place of those for the same algorithm and signature. All are written, or none.

        Raises:
            ValueError: a key is missing, or its value is none that a timing can have.
        """
        records = [_record(number, row) for number, row in enumerate(rows)]

        def insert(connection: sqlite3.Connection) -> None:
            connection.execute("BEGIN IMMEDIATE")
            with connection:
                connection.executemany(_INSERT, records)

        self._use(insert, None)

    def _use(self, action: Callable[[sqlite3.Connection], Any], otherwise: Any) -> Any:
        """What `action` returns on the opened database; `otherwise` where that cannot be used."""
        reason: Exception | None = None
        for _ in range(2 * self._usable):  # once more after a bad file was set aside
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                file = _file_number(self.path)
                with closing(sqlite3.connect(self.path, timeout=_LOCK_SECONDS, isolation_level=None)) as connection:
                    connection.execute("PRAGMA synchronous = NORMAL")
                    _prepare(connection)
                    return action(connection)
            except (OSError, sqlite3.OperationalError) as error:
                reason = error
                break
            except sqlite3.DatabaseError as error:  # damaged, or none of ours
                reason = error
                self._set_aside(file, error)
        if reason is not None:
            self._usable = False
            warn_once(f"kernel database {self.path}: {reason}: timings are not kept for other processes")
        return otherwise

    def _set_aside(self, file: int | None, reason: Exception) -> None:
        """Renames the file and what belongs to it, unless another process has done so already."""
        if file is None or file != _file_number(self.path):
            return
        for suffix in ("-journal", "-wal", "-shm", ""):
            set_aside(self.path.with_name(self.path.name + suffix))
        warn_once(f"kernel database {self.path}: {reason}: set aside as {self.path.name}.bad, a new one is begun")


def _file_number(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


def _identity(connection: sqlite3.Connection) -> tuple[int, int]:
    return tuple(connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))


def _prepare(connection: sqlite3.Connection) -> None:
    """Makes the table in a new file. Raises DatabaseError for a file that is something else."""
    if _identity(connection) == _IDENTITY:
        return
    connection.execute("BEGIN IMMEDIATE")
    with connection:  # alone with the file: another process may have made it just now
        found = _identity(connection)
        if found == _IDENTITY:
            return
        if found != (0, 0) or connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            raise sqlite3.DatabaseError("it is another program's, or another version's")
        connection.execute(_CREATE)
        connection.execute(f"PRAGMA application_id = {_IDENTITY[0]}")
        connection.execute(f"PRAGMA user_version = {_IDENTITY[1]}")


def canonical(value: Any) -> str:
    """JSON in which equal values have equal text: sorted keys, no spaces, tuples as lists."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _to_sql(column: str, value: Any) -> Any:
    return canonical(value) if column in _STRUCTURED else value


def _from_sql(column: str, value: Any) -> Any:
    return json.loads(value) if column in _STRUCTURED else value


def _record(number: int, row: dict[str, Any]) -> tuple:
    for column in COLUMNS:
        if column not in row:
            raise ValueError(f"row {number}: '{column}' is missing, wanted {', '.join(COLUMNS)}")
    for column in ("device", "version", "op", "algorithm"):
        if not isinstance(row[column], str):
            raise ValueError(f"row {number}: {column}: got {row[column]!r}, wanted text")
    for column, least in (("threads", 1), ("seconds", 0), ("samples", 1), ("flops", 0), ("bytes", 0)):
        value, kind = row[column], float if column == "seconds" else int
        if not isinstance(value, int | kind) or isinstance(value, bool) or not least <= value < 2**63:
            raise ValueError(f"row {number}: {column}: got {value!r}, wanted a number from {least}")
    return tuple(_to_sql(column, row[column]) for column in COLUMNS)
