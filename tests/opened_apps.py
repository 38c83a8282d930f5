"""Apps and databases that are closed when the test ends: what the fixtures `open_app` and
`open_database` give.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from aftercall.app import App, build
from aftercall.clock import Clock
from aftercall.db.connect import Database
from aftercall.settings import Settings

DISK_PATIENCE_S = 30 * 24 * 3600.0
"""The disk keeps its own time: nobody loses patience with it because a test lets virtual minutes
pass, or the machine is busy.
"""


OpenDatabase = Callable[[str], Database]
"""Opens the database at this address. The test does not close it."""


class OpenApp(Protocol):
    def __call__(
        self,
        settings: Settings,
        clock: Clock | None = None,
        *,
        database_timeout_s: float = DISK_PATIENCE_S,
    ) -> App:
        """Builds an app. The test does not close it."""
        ...


@contextmanager
def crashed(app: App) -> Iterator[App]:
    """A second process on the same home that dies without a word: its lock goes, nothing else
    does.
    """
    other = build(app.settings, app.clock)
    yield other
    other.presence.release_lock()
    other.database.close()
