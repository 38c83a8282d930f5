"""A process that backs up or restores, and may be killed in the middle of it."""

from pathlib import Path

from aftercall import faults
from aftercall.app import build
from aftercall.backup import make_backup, restore_backup
from aftercall.clock import SystemClock
from aftercall.settings import Settings


def back_up(settings: Settings, to: Path, fault: str) -> None:
    app = build(settings)
    faults.arm(fault)
    make_backup(settings, app.database, to, app.clock.now())
    app.close()


def restore(settings: Settings, file: Path, fault: str) -> None:
    faults.arm(fault)
    restore_backup(settings, file, SystemClock().now())
