"""A rolling upgrade: servers of two versions on one Postgres, which the newer one migrates while
the older one has a call. Nothing is lost, doubled or left undone.
"""

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

import aftercall.db.upgrade
from aftercall.app import App, build
from aftercall.db.connect import Database
from aftercall.db.upgrade import KNOWN_REVISIONS, SURVIVED_BY, current_revision
from aftercall.journal.verify import verify_archive
from aftercall.lab.deepgram import EmulatedDeepgram
from aftercall.lab.twilio import EmulatedTwilio, LabCall
from aftercall.settings import Settings
from aftercall.settings.sections import DatabaseSettings
from crash.killable_server import MortalServer
from crash.server_fleet import Balancer, Fleet, make_server, speak
from voice_server import KEY, TOKEN
from waiting import until

SOURCE = Path(aftercall.__file__).parent.parent
REPOSITORY = SOURCE.parent
FIRST_ADDITION = "src/aftercall/db/migrations/versions/0002_page_revisions.py"
OLD, NEW = 0, 1
NEXT_REVISION = f"0099{SURVIVED_BY}{KNOWN_REVISIONS[-1][:4]}"
NEXT_MIGRATION = f"""
import sqlalchemy as sa
from alembic import op
revision, down_revision = {NEXT_REVISION!r}, {KNOWN_REVISIONS[-1]!r}
def upgrade():
    op.add_column("calls", sa.Column("mood", sa.Text))
    op.create_table("moods", sa.Column("name", sa.Text, primary_key=True))
"""


def run_git(*words: str) -> str:
    git = shutil.which("git")
    if git is None:
        pytest.skip("no git: the code of an old version cannot be had")
    ran = subprocess.run(
        [git, *words], cwd=REPOSITORY, capture_output=True, check=False, text=True
    )
    return ran.stdout.strip() if ran.returncode == 0 else ""


def unpack_first_version(folder: Path) -> Path:
    """The code of the commit before the second migration came."""
    if not run_git("rev-parse", "--git-dir"):
        pytest.skip("not a clone: the code of an old version cannot be had")
    if run_git("rev-parse", "--is-shallow-repository") == "true":
        pytest.skip("a shallow clone has no old version; `git fetch --unshallow`")
    added = run_git("log", "--diff-filter=A", "--format=%H", "--", FIRST_ADDITION)
    commit = added.split()[-1] if added else ""
    archive = folder / "old.tar"
    made = run_git("archive", f"--output={archive}", f"{commit}^", "src")
    if made or not archive.exists():
        pytest.skip("the history begins after the first version")
    shutil.unpack_archive(archive, folder, filter="data")
    return folder / "src"


def make_next_version(folder: Path) -> Path:
    """This version with one more migration, which this one survives."""
    shutil.copytree(SOURCE / "aftercall", folder / "aftercall")
    migrations = folder / "aftercall" / "db" / "migrations" / "versions"
    (migrations / "0099_moods.py").write_text(NEXT_MIGRATION)
    upgrade = folder / "aftercall" / "db" / "upgrade.py"
    known = re.compile(r"^KNOWN_REVISIONS = \((.*)\)$", re.MULTILINE)
    text, changes = known.subn(
        rf'KNOWN_REVISIONS = (\1, "{NEXT_REVISION}")', upgrade.read_text()
    )
    assert changes == 1
    upgrade.write_text(text)
    return folder


def migrate(version: Path, home: Path, database_url: str) -> None:
    environment = os.environ | {
        "AFTERCALL_HOME": str(home),
        "AFTERCALL_DATABASE_URL": database_url,
        "PYTHONPATH": str(version),
    }
    command = [sys.executable, "-m", "aftercall", "db", "upgrade"]
    subprocess.run(command, env=environment, cwd=home, check=True, capture_output=True)


def read_revision(database_url: str) -> str | None:
    database = Database(database_url)
    try:
        with database.read() as connection:
            return current_revision(connection)
    finally:
        database.close()


async def read_readiness(server: MortalServer) -> int:
    async with httpx2.AsyncClient(timeout=60, trust_env=False) as http:
        return (await http.get(f"{server.address}/readyz")).status_code


class Upgrade:
    """Calls to servers of two versions, and what became of them."""

    def __init__(self, fleet: Fleet, twilio: EmulatedTwilio) -> None:
        self.fleet = fleet
        self._twilio = twilio
        self.sids: list[str] = []

    async def ring(self, webhook: int, stream: int, end: int) -> LabCall:
        """Each part of a call meets the server with this number."""
        self.fleet.route(webhook, stream, end)
        address = self.fleet.balancer.address
        call = await self._twilio.ring(
            f"{address}/twilio/voice",
            caller=f"+1555010{len(self.sids):04}",
            status_url=f"{address}/twilio/status",
        )
        self.sids.append(call.sid)
        return call

    async def talk(self, call: LabCall) -> None:
        await speak(call.phone, self.sids.index(call.sid))
        await self._twilio.hang_up(call)


def is_settled(app: App, calls: int) -> bool:
    health = app.report_health()
    return (
        app.store.list_unsealed() == []
        and health.by_state["pending"] == 0
        and len(health.calls) == calls
        and health.status == "ok"
    )


def check_calls(app: App, sids: list[str]) -> None:
    """Each is sealed once, with its words, and its request was taken down once."""
    rows = app.store.list_page(limit=1_000)
    assert Counter(row.live.sid for row in rows) == Counter(sids)
    for row in rows:
        number = sids.index(row.live.sid)
        call, _ = app.archive.read(str(row.archive_name))
        said = [turn.text for turn in call.turns if turn.speaker == "caller"]
        assert said == [f"Please call plumber {number}."]
        requests = app.work.followups.of_conversation(call.conversation)
        assert [request.kind for request in requests] == ["request"]
    assert verify_archive(app.archive.place, app.store).faults == ()


@pytest.mark.timeout(240)
@pytest.mark.parametrize("step", ["first to this", "this to next"])
async def test_two_versions_share_a_database_that_the_newer_one_migrates(
    tmp_path: Path, empty_postgres: str, step: str
) -> None:
    is_next = step == "this to next"
    make: Callable[[Path], Path] = (
        make_next_version if is_next else unpack_first_version
    )
    other = make(tmp_path / "version" if is_next else tmp_path)
    before, after = (SOURCE, other) if is_next else (other, SOURCE)
    revision = NEXT_REVISION if is_next else KNOWN_REVISIONS[-1]
    home = tmp_path / "home"
    home.mkdir()
    balancer = Balancer()
    async with (
        EmulatedDeepgram(KEY, lambda heard: "Taken down.") as engine,
        EmulatedTwilio(TOKEN, speed=10.0) as twilio,
        balancer.listen(),
    ):
        twilio.http.headers["connection"] = "close"
        keys = {
            "AFTERCALL_RECONNECT_WINDOW_S": "1",
            "AFTERCALL_ENGINE": "deepgram",
            "DEEPGRAM_API_KEY": KEY,
            "AFTERCALL_DEEPGRAM_URL": engine.url,
        }
        old, new = (
            make_server(home, balancer, empty_postgres, PYTHONPATH=str(path), **keys)
            for path in (before, after)
        )
        try:
            await old.start()
            assert await read_readiness(old) == 200
            begun = KNOWN_REVISIONS[-1] if is_next else KNOWN_REVISIONS[0]
            assert read_revision(empty_postgres) == begun
            upgrade = Upgrade(Fleet([old, old], balancer), twilio)

            call = await upgrade.ring(OLD, OLD, OLD)
            await asyncio.to_thread(migrate, after, home, empty_postgres)
            assert read_revision(empty_postgres) == revision
            await upgrade.talk(call)
            await upgrade.talk(await upgrade.ring(OLD, OLD, OLD))
            # the first version had no way to know that it survives
            assert await read_readiness(old) == (200 if is_next else 503)

            database = DatabaseSettings(url=empty_postgres)
            app = build(Settings(home=home, database=database))
            try:
                await until(lambda: is_settled(app, 2))  # by the old one, alone
                await new.start()
                assert await read_readiness(new) == 200
                upgrade.fleet.servers[:] = [old, new]
                for parts in ((OLD, NEW, OLD), (NEW, OLD, NEW), (NEW, NEW, OLD)):
                    await upgrade.talk(await upgrade.ring(*parts))
                last = await upgrade.ring(OLD, OLD, OLD)
                assert last.phone is not None
                await last.phone.wait_for_words("What can I do")
                old.ask_to_stop()
                await upgrade.talk(last)
                assert await old.wait_stopped() == 0
                await upgrade.talk(await upgrade.ring(NEW, NEW, NEW))
                await until(lambda: is_settled(app, 7))
                check_calls(app, upgrade.sids)
            finally:
                app.close()
        finally:
            await asyncio.gather(old.stop(), new.stop())
