"""What the durable engine needs of the SQLite that Python brings."""

import sqlite3
import sys

from aftercall.errors import ConfigError

NEEDED = (3, 42)


def check_durable_engine(
    database_url: str,
    python: tuple[int, ...] = tuple(sys.version_info[:3]),
    sqlite: tuple[int, ...] = sqlite3.sqlite_version_info,
) -> None:
    """From Python 3.12 on, the durable engine asks SQLite for `unixepoch('subsec')`, which came with 3.42."""
    if database_url.startswith("sqlite") and python >= (3, 12) and sqlite < NEEDED:
        have = ".".join(map(str, sqlite))
        raise ConfigError(
            f"Python {python[0]}.{python[1]} here brings SQLite {have}, and the durable engine needs 3.42 or newer with it: "
            "use Python 3.11, a Python linked to a newer SQLite, or a Postgres database"
        )
