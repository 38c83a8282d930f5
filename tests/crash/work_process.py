"""A process that does follow-up work and may be killed in the middle of it."""

import asyncio
import signal
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from pydantic import SecretStr
from sqlalchemy import select

from aftercall import faults
from aftercall.app import App, build
from aftercall.db.event_log import events
from aftercall.db.tables import deliveries
from aftercall.model.reading import Promise, Reading, Request
from aftercall.running import running
from aftercall.settings import Settings
from aftercall.settings.providers import (
    EventSettings,
    GitHubSettings,
    WebhookSettings,
)
from aftercall.settings.sections import DatabaseSettings, WorkSettings
from aftercall.work import deliver
from fakes import FakeReader, make_call

TOKEN = "the-lab's-own-token"
EVENTS_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ASKED = Reading(
    language="en",
    summary="Bill asked for three things.",
    requests=(
        Request(
            kind="issue",
            title="Open a bug about the thumbnails",
            turns=(2,),
            words="open a bug",
        ),
        Request(
            kind="reminder",
            title="Remind me to call Markus",
            due=date(2026, 2, 17),
            turns=(2,),
            words="remind me",
        ),
        Request(
            kind="message",
            title="Send Dana the contract",
            turns=(2,),
            words="send Dana",
        ),
    ),
    promises=(
        Promise(
            title="Open a bug about the thumbnails", turns=(3,), words="I'll open a bug"
        ),
    ),
)
SAID = [
    ("agent", "Hello."),
    ("caller", "Please do three things."),
    ("agent", "I will."),
]


@dataclass(frozen=True)
class Place:
    """Where the process lives and what is outside of it."""

    home: str
    database_url: str
    github_url: str
    hook_url: str
    events_url: str = ""

    @property
    def settings(self) -> Settings:
        return Settings(
            home=Path(self.home),
            database=DatabaseSettings(url=self.database_url),
            reconnect_window_s=0,
            github=GitHubSettings(
                token=SecretStr(TOKEN), repository="acme/site", api_url=self.github_url
            ),
            webhook=WebhookSettings(url=SecretStr(self.hook_url)),
            events=self._make_event_settings(),
            work=WorkSettings(
                policy={"unknown": "do", "unknown.message": "hold"},
                notice="webhook",
                reminders="webhook",
                daily_limit=10_000,
            ),
        )

    def _make_event_settings(self) -> EventSettings:
        if not self.events_url:
            return EventSettings()
        return EventSettings(
            webhooks={"log": SecretStr(self.events_url)},
            secrets={"log": SecretStr(EVENTS_SECRET)},
            allow_private=True,
        )


def run(place: Place, fault: str, sids: list[str]) -> None:
    """Take the calls in, if they are new, approve what is held, and work until everything has
    come to its end.
    """
    faults.arm(fault)
    asyncio.run(_work(place, sids))


def serve(place: Place) -> None:
    """Work on whatever is due until told to stop."""
    asyncio.run(_serve(place))


async def _serve(place: Place) -> None:
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    app = replace(build(place.settings), reader=FakeReader(ASKED))
    async with running(app):
        await stopped.wait()
    app.close()


async def _work(place: Place, sids: list[str]) -> None:
    app = replace(build(place.settings), reader=FakeReader(ASKED))
    async with running(app):
        for sid in sids:
            row, _ = app.journal.ingest(make_call(SAID, sid=sid))
            while not await asyncio.to_thread(_is_over, app, row.live.conversation):
                await app.clock.sleep(0.05)
        while not await asyncio.to_thread(_is_told, app):
            await app.clock.sleep(0.05)
    app.close()


def _is_told(app: App) -> bool:
    """Whether every event so far is published and posted."""
    with app.database.read() as connection:
        is_new = select(events.c.n).where(events.c.id.is_(None)).limit(1)
        is_open = deliveries.c.state.not_in(("done", "dead"))
        unsent = select(deliveries.c.key).where(is_open).limit(1)
        return all(
            connection.execute(query).first() is None for query in (is_new, unsent)
        )


def _is_over(app: App, conversation: str) -> bool:
    desk = app.work
    if desk.runs.get(conversation).state != "done":
        return False
    rows = [
        row
        for row in desk.followups.of_conversation(conversation)
        if row.kind == "request"
    ]
    for row in rows:
        if row.state == "held":
            deliver.approve(desk, row.id, "test")
    sent = [
        delivery
        for delivery in desk.deliveries.of_conversation(conversation)
        if delivery.purpose in ("notice", "reminder")
    ]
    return all(row.state == "done" for row in rows) and [
        delivery.state for delivery in sent
    ] == [
        "done",
        "done",
    ]
