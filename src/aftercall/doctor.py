"""Checks this machine and the settings, and says what to do about each problem."""

import os
import shutil
import sqlite3
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from aftercall.config import LoadedConfig
from aftercall.db.connect import Database
from aftercall.db.upgrade import (
    NEWEST_REVISION,
    can_use,
    check_home,
    current_revision,
)
from aftercall.disk import OTHER_USERS, close_to_others
from aftercall.encryption import KEY_FILE, MIN_UNGUESSABLE_CHARS, TOKEN_FILE
from aftercall.errors import AftercallError
from aftercall.journal.archive import KEY_CHECK_FILE
from aftercall.llm.model.client import choose_model
from aftercall.settings import Settings
from aftercall.speech.kit import find_missing

MIN_FREE_GB = 1.0


@dataclass(frozen=True)
class Check:
    name: str
    state: Literal["ok", "warn", "fail"]
    detail: str
    advice: str = ""


def run_checks(loaded: LoadedConfig) -> Iterator[Check]:
    settings = loaded.settings
    yield Check(
        "python", "ok", f"{sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}"
    )
    yield _check_full_text()
    yield from _check_home(settings.home)
    yield _check_key(settings)
    yield _check_database(settings)
    yield _check_reader(settings)
    if settings.receptionist.speech:
        yield _check_speech()
    yield from _check_settings_file(loaded)
    for warning in loaded.warnings:
        yield Check("settings", "warn", warning)
    if settings.public_url is None:
        yield Check(
            "public address",
            "warn",
            "not set: carriers cannot reach this server",
            "set AFTERCALL_PUBLIC_URL to answer phone calls",
        )
    yield _check_api_token(settings)


def _check_settings_file(loaded: LoadedConfig) -> Iterator[Check]:
    """The file may hold keys of a carrier and of models."""
    if loaded.file is None:
        return
    if stat.S_IMODE(loaded.file.stat().st_mode) & OTHER_USERS:
        advice = f"run `chmod 600 {loaded.file}`"
        yield Check("settings", "warn", f"{loaded.file} can be read by others", advice)
    else:
        yield Check("settings", "ok", f"{loaded.file}, only this user can open it")


def _check_api_token(settings: Settings) -> Check:
    name = "API token"
    if token := settings.api_token:
        if len(token) >= MIN_UNGUESSABLE_CHARS:
            return Check(name, "ok", "set")
        detail = f"shorter than {MIN_UNGUESSABLE_CHARS} characters: it may be guessed"
        return Check(name, "warn", detail, "unset it; Aftercall makes a long one")
    file = settings.home / TOKEN_FILE
    try:
        mode = stat.S_IMODE(file.stat().st_mode)
    except OSError:
        return Check(name, "ok", "made at the first start")
    if mode & OTHER_USERS:
        return Check(
            name, "warn", f"{file} can be read by others", f"run `chmod 600 {file}`"
        )
    return Check(name, "ok", "made here; `aftercall token` shows it")


def _check_reader(settings: Settings) -> Check:
    try:
        choice = choose_model(settings)
    except AftercallError as error:
        return Check("reader", "fail", str(error))
    if choice and choice.checks_rules:
        told = f"calls are read by rules, checked by {choice.name}"
    else:
        told = f"calls are read by {choice.name if choice else 'rules'}"
    return Check("reader", "ok", told)


def _check_speech() -> Check:
    missing = find_missing()
    if missing:
        advice = "until then the receptionist speaks through the carrier"
        return Check("speech", "warn", missing, advice)
    return Check("speech", "ok", "the receptionist speaks and listens on this machine")


def _check_full_text() -> Check:
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute(
                "CREATE VIRTUAL TABLE words USING fts5(word, tokenize='porter')"
            )
        except sqlite3.OperationalError:
            detail = "this Python's SQLite has no FTS5"
            return Check("full text", "fail", detail, "use another Python or Postgres")
    return Check("full text", "ok", "FTS5 is available")


def _check_home(home: Path) -> Iterator[Check]:
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home, prefix=".doctor-") as name:
            first = Path(name) / "first"
            first.write_bytes(b"x")
            os.link(first, Path(name) / "second")
    except OSError as error:
        advice = "use a folder that is writable and allows hard links"
        yield Check("home", "fail", f"{home}: {error.strerror}", advice)
        return
    yield Check("home", "ok", str(home))
    yield _close_files(home)
    free = shutil.disk_usage(home).free / 1e9
    if free < MIN_FREE_GB:
        yield Check("disk", "warn", f"{free:.1f} GB free", "make room")
    else:
        yield Check("disk", "ok", f"{free:.1f} GB free")


def _close_files(home: Path) -> Check:
    """Takes the access of other users of this machine away, and says that they had it."""
    were_open = 0
    for path in (home.resolve(), *home.rglob("*")):
        try:
            were_open += close_to_others(path)
        except FileNotFoundError:  # removed meanwhile, by a running server
            continue
        except OSError as error:
            detail = f"{path}: other users can open it ({error.strerror})"
            return Check("access", "fail", detail, "run `chmod go=` as its owner")
    if were_open:
        detail = f"other users could open {were_open} files and folders; mended"
        return Check("access", "warn", detail)
    return Check("access", "ok", "only this user can open the home")


def _check_key(settings: Settings) -> Check:
    """Reads only: an empty home gets no key from a check."""
    if settings.secret_key is not None:
        return Check("secret key", "ok", "from the settings")
    file = settings.home / KEY_FILE
    is_encrypted = (settings.home / "archive" / KEY_CHECK_FILE).exists()
    if is_encrypted and not file.exists():
        detail = f"{file} is missing and the archive is encrypted"
        return Check("secret key", "fail", detail, "restore your copy")
    if not settings.database_url.startswith("sqlite"):
        detail = "not set: each machine encrypts secrets with another key"
        advice = "set AFTERCALL_SECRET_KEY on all of them"
        return Check("secret key", "warn", detail, advice)
    if file.exists():
        return Check("secret key", "ok", str(file), "keep a copy elsewhere")
    return Check("secret key", "ok", "none yet; the first start creates it")


def _check_database(settings: Settings) -> Check:
    try:
        with (
            closing(Database(settings.database_url)) as database,
            database.read() as connection,
        ):
            database.refuse_transaction_pool()
            current = current_revision(connection)
            check_home(connection, settings)
    except AftercallError as error:
        return Check("database", "fail", str(error))
    if current is None:
        return Check(
            "database", "ok", f"{database.dialect}, empty; the first start creates it"
        )
    if can_use(current):
        return Check("database", "ok", f"{database.dialect}, revision {current}")
    detail = f"revision {current}, this version has {NEWEST_REVISION}"
    return Check("database", "fail", detail, "run `aftercall db upgrade`")
