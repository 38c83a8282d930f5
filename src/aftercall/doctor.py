"""Checks of the machine and the settings, each with what to do about it."""

import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from aftercall.config import LoadedConfig
from aftercall.db.connect import Database
from aftercall.db.home import check_home
from aftercall.db.upgrade import NEWEST_REVISION, check_durable_engine, current_revision
from aftercall.errors import AftercallError
from aftercall.llm.model.choice import choose_model
from aftercall.settings import Settings
from aftercall.speech.kit import find_missing

MIN_FREE_GB = 1.0


@dataclass(frozen=True)
class Check:
    name: str
    state: Literal["ok", "warn", "fail"]
    detail: str


def run_checks(loaded: LoadedConfig) -> Iterator[Check]:
    settings = loaded.settings
    yield Check("python", "ok", f"{sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}")
    yield _check_engine(settings)
    yield _check_full_text()
    yield from _check_home(settings.home)
    yield _check_database(settings)
    yield _check_reader(settings)
    if settings.receptionist.speech:
        yield _check_speech()
    for warning in loaded.warnings:
        yield Check("settings", "warn", warning)
    if settings.secret_key is None and not settings.database_url.startswith("sqlite"):
        yield Check(
            "secret key",
            "warn",
            "not set: each machine seals secrets with a key of its own; set "
            "AFTERCALL_SECRET_KEY on all of them",
        )
    if settings.public_url is None:
        yield Check(
            "public address",
            "warn",
            "not set: carriers cannot reach this server; set AFTERCALL_PUBLIC_URL to answer "
            "phone calls",
        )
    if settings.api_token is None:
        yield Check(
            "API token",
            "warn",
            "not set: only this machine is served; set AFTERCALL_API_TOKEN to open the API "
            "and pages",
        )


def _check_engine(settings: Settings) -> Check:
    try:
        check_durable_engine(settings.database_url)
    except AftercallError as error:
        return Check("durable engine", "fail", str(error))
    return Check("durable engine", "ok", "can run here")


def _check_reader(settings: Settings) -> Check:
    try:
        choice = choose_model(settings)
    except AftercallError as error:
        return Check("reader", "fail", str(error))
    return Check(
        "reader", "ok", f"calls are read by {choice.name}" if choice else "calls are read by rules"
    )


def _check_speech() -> Check:
    missing = find_missing()
    if missing:
        return Check(
            "speech", "warn", f"{missing}; until then the receptionist speaks through the carrier"
        )
    return Check("speech", "ok", "the receptionist speaks and listens on this machine")


def _check_full_text() -> Check:
    with sqlite3.connect(":memory:") as connection:
        try:
            connection.execute("CREATE VIRTUAL TABLE words USING fts5(word, tokenize='porter')")
        except sqlite3.OperationalError:
            return Check(
                "full text",
                "fail",
                "this Python's SQLite has no FTS5; use another Python or Postgres",
            )
        finally:
            connection.rollback()
    connection.close()
    return Check("full text", "ok", "FTS5 is there")


def _check_home(home: Path) -> Iterator[Check]:
    try:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home, prefix=".doctor-") as name:
            first = Path(name) / "first"
            first.write_bytes(b"x")
            os.link(first, Path(name) / "second")
    except OSError as error:
        yield Check(
            "home", "fail", f"{home}: {error.strerror}; files must be writable and allow hard links"
        )
        return
    yield Check("home", "ok", str(home))
    free = shutil.disk_usage(home).free / 1e9
    yield Check(
        "disk",
        "ok" if free >= MIN_FREE_GB else "warn",
        f"{free:.1f} GB free" + ("" if free >= MIN_FREE_GB else "; make room"),
    )


def _check_database(settings: Settings) -> Check:
    try:
        with closing(Database(settings.database_url)) as database, database.read() as connection:
            current = current_revision(connection)
            check_home(connection, settings.home)
    except AftercallError as error:
        return Check("database", "fail", str(error))
    if current is None:
        return Check("database", "ok", f"{database.dialect}, empty; it is made at first start")
    if current == NEWEST_REVISION:
        return Check("database", "ok", f"{database.dialect}, revision {current}")
    return Check(
        "database",
        "fail",
        f"revision {current}, this version has {NEWEST_REVISION}; run `aftercall db upgrade`",
    )
