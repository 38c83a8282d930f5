"""How long things are kept. By default everything stays but recordings, which go after ninety days."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from aftercall.clock import Clock
from aftercall.custody.store import forget_recording, old_recordings
from aftercall.db.connect import Database
from aftercall.log import get_logger
from aftercall.settings import Settings

EVERY_S = 3600.0
REASON = "older than retention.recordings_days"

log = get_logger("retention")


@dataclass(frozen=True)
class Expired:
    """What is past its time."""

    recordings: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Retention:
    settings: Settings
    database: Database
    clock: Clock

    def find(self) -> Expired:
        """What would go now."""
        days = self.settings.retention.recordings_days
        return Expired(tuple(old_recordings(self.database, self._before(days))) if days else ())

    def apply(self) -> Expired:
        """The file first: a row without its file says so, a file without its row would stay for ever."""
        expired = self.find()
        for recording_id, path in expired.recordings:
            remove_recording(self.settings.home, path)
            forget_recording(self.database, recording_id, REASON, self.clock.now())
        if expired.recordings:
            log.info("recordings past their time are gone", recordings=len(expired.recordings))
        return expired

    def _before(self, days: int) -> datetime:
        return self.clock.now() - timedelta(days=days)


def remove_recording(home: Path, path: str) -> bool:
    """A recording, and everything that lies beside it under its name: its transcript, a download that was cut off."""
    file = home / path
    beside = [other for other in file.parent.glob(f"{file.stem}*") if other.is_file()] if file.parent.is_dir() else []
    for each in beside:
        each.unlink(missing_ok=True)
    return bool(beside)
