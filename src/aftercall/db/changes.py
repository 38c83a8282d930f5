"""Whether anybody may have written to the database since somebody last looked. Asking costs next to nothing.

SQLite counts for each connection what all the others commit, and this one never writes. Postgres has no such count that every
role may read: there the answer is always yes.
"""

import sqlite3
from contextlib import suppress
from typing import Any

from aftercall.db.connect import Database


class Changes:
    """For the thread of the event loop: it waits for nobody."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._driver: Any = None

    def mark(self) -> object:
        """While it equals an earlier one, nothing was written between the two. Whoever is in doubt looks."""
        if self._database.dialect != "sqlite":
            return object()
        try:
            driver = self._driver = self._driver or self._connect()
            return driver.execute("PRAGMA data_version").fetchone()
        except sqlite3.Error:  # locked, or its file is gone: whoever looks will be told
            self.close()
            return object()

    def close(self) -> None:
        driver, self._driver = self._driver, None
        if driver is not None:
            with suppress(sqlite3.Error):
                driver.close()

    def _connect(self) -> Any:
        driver = sqlite3.connect(str(self._database.engine.url.database), check_same_thread=False, timeout=0)
        driver.execute("PRAGMA query_only=ON")
        return driver
