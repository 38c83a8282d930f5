"""Compares the lists of calls at carriers and platforms with ours, and brings what is missing.

A webhook that never came loses no call. The lists are read page by page; after each page the
run is on disk, so that a run that was stopped goes on where it stood. To bring a call that is
known changes nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import httpx2
from sqlalchemy import Text, and_, cast, exists, select

from aftercall.clock import Clock, format_instant, parse_instant
from aftercall.db.connect import Database
from aftercall.db.statements import chunked, upsert
from aftercall.db.tables import calls, recordings, upkeep
from aftercall.errors import (
    AftercallError,
    CallElsewhere,
    CallErased,
    ConfigError,
    RestUnreachable,
)
from aftercall.hosted.listings import ListedCall, ServiceListing, make_listings
from aftercall.journal.recording_files import RecordingStore
from aftercall.journal.replay import RESUMABLE_ENDS
from aftercall.log import get_logger
from aftercall.model.calls import SENDER, Call
from aftercall.model.json_fields import Json
from aftercall.settings import Settings

RECONCILE_JOB = "reconcile"
MAX_RESUME_AGE = timedelta(hours=12)
MAX_LOST = 100  # named in the report; the others are counted
SETTLING = timedelta(minutes=5)
"""A call that ended later than this may still have its webhook on the way."""

log = get_logger("reconcile")

Progress = Callable[[str, "SourceResult"], None]
"""Told after each page: which source, and how far it is."""


TakeReport = Callable[[Call], Awaitable[tuple[str, bool]]]
"""Stores a whole call, once: its id, and whether it was new."""


@dataclass(frozen=True)
class LostCall:
    sid: str
    reason: str


@dataclass(frozen=True)
class SourceResult:
    """What a run found at one carrier or platform.

    `listed` are all calls of its list, `missing` those that we did not have whole, `brought`
    those that are stored now. `lost` names calls that cannot be had, or only without their words;
    `lost_count` counts them all. `cursor` is the next page: empty at the beginning, None at the
    end. `error` says why the list could not be read to its end.
    """

    listed: int = 0
    missing: int = 0
    brought: int = 0
    lost: tuple[LostCall, ...] = ()
    lost_count: int = 0
    cursor: str | None = ""
    error: str = ""

    def add_lost(self, sid: str, reason: str) -> "SourceResult":
        lost = (*self.lost, LostCall(sid, reason))[:MAX_LOST]
        return replace(self, lost=lost, lost_count=self.lost_count + 1)


@dataclass(frozen=True)
class ReconcileRun:
    """A run over the lists of all services, as far as it has come."""

    since: datetime
    started_at: datetime
    finished_at: datetime | None = None
    sources: dict[str, SourceResult] = field(default_factory=dict)

    @property
    def errors(self) -> list[str]:
        return [result.error for result in self.sources.values() if result.error]

    def summarise(self) -> Json:
        """For `health`."""
        results = self.sources.values()
        return {
            "finished_at": self.finished_at and format_instant(self.finished_at),
            "listed": sum(result.listed for result in results),
            "missing": sum(result.missing for result in results),
            "brought": sum(result.brought for result in results),
            "lost": sum(result.lost_count for result in results),
            "errors": self.errors,
        }

    def to_json(self) -> Json:
        return {
            "since": format_instant(self.since),
            "started_at": format_instant(self.started_at),
            "finished_at": self.finished_at and format_instant(self.finished_at),
            "summary": self.summarise(),
            "sources": {name: asdict(result) for name, result in self.sources.items()},
        }


def read_run(found: Json) -> ReconcileRun:
    ended = found["finished_at"]
    return ReconcileRun(
        parse_instant(found["since"]),
        parse_instant(found["started_at"]),
        parse_instant(ended) if ended else None,
        {
            name: SourceResult(
                **result | {"lost": tuple(LostCall(**item) for item in result["lost"])}
            )
            for name, result in found["sources"].items()
        },
    )


class ReconcileStore:
    """The SQL of the comparison and of the last run.

    The run is the row `reconcile` of the table `upkeep`. `health` reads its summary from there.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def find_whole(self, source: str, listed: Sequence[ListedCall]) -> set[str]:
        """Of these calls, those that need nothing: stored with their words, or live here."""
        by_sid = {sid: call.sid for call in listed for sid in (call.sid, *call.ids)}
        columns = (calls.c.sid, calls.c.state, calls.c.end_reason, calls.c.metadata)
        whole: set[str] = set()
        with self._database.read() as connection:
            for chunk in chunked(sorted(by_sid)):
                query = select(*columns).where(
                    calls.c.source == source, calls.c.sid.in_(chunk)
                )
                for row in connection.execute(query):
                    is_ours = SENDER not in row.metadata
                    is_sealed = row.state == "sealed"
                    if is_ours or (is_sealed and row.end_reason not in RESUMABLE_ENDS):
                        whole.add(by_sid[row.sid])
        return whole

    def add_recordings(
        self, source: str, sids: Iterable[str], store: RecordingStore, now: datetime
    ) -> None:
        """Of sealed calls whose recording nobody has noted: a crash came after the report."""
        noted = and_(recordings.c.carrier == source, recordings.c.sid == calls.c.sid)
        query = select(calls.c.id, calls.c.sid).where(
            calls.c.source == source,
            calls.c.state == "sealed",
            ~exists().where(noted),
        )
        missing: list[Any] = []
        with self._database.read() as connection:
            for chunk in chunked(sorted(sids)):
                missing += connection.execute(query.where(calls.c.sid.in_(chunk)))
        for row in missing:
            store.register(row.id, source, row.sid, None, "waiting", now)

    def is_known_elsewhere(self, call: ListedCall, since: datetime) -> bool:
        """Whether another call names it: a platform's call over our carrier's line."""
        for one in (call.sid, *call.ids):
            named = cast(calls.c.metadata, Text).contains(f'"{one}"', autoescape=True)
            query = select(calls.c.id).where(calls.c.started_at >= since, named)
            if self._database.fetch_first(query.limit(1)):
                return True
        return False

    def get_last_run(self) -> ReconcileRun | None:
        query = select(upkeep.c.found).where(upkeep.c.name == RECONCILE_JOB)
        found = self._database.fetch_value(query)
        return read_run(found) if found else None

    def save_run(self, run: ReconcileRun, now: datetime) -> None:
        with self._database.write() as connection:
            row = {"at": now, "found": run.to_json()}
            upsert(connection, upkeep, {"name": RECONCILE_JOB}, row)


class Reconciler:
    """Reads the lists of all services with a key, one service after the other.

    What is missing is stored on the way that webhooks take, so a webhook that comes late, or a
    second run at the same time, finds the call known. A service that fails keeps its place in the
    list: the next run begins there and repeats nothing of the others.
    """

    def __init__(
        self,
        settings: Settings,
        database: Database,
        clock: Clock,
        take_report: TakeReport,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._take_report = take_report
        self._transport = transport
        self._database = database
        self.store = ReconcileStore(database)

    async def run_if_due(self) -> None:
        """Raises if a source could not be read: the next run tries again."""
        every = timedelta(minutes=self._settings.reconcile.every_minutes)
        last = await asyncio.to_thread(self.store.get_last_run)
        is_fresh = (
            last is not None
            and last.finished_at is not None
            and not last.errors
            and self._clock.now() - last.finished_at < every
        )
        if not every or is_fresh:
            return
        try:
            made = await self.run()
        except ConfigError:  # there is nothing to compare with
            return
        if made.errors:
            raise RestUnreachable("; ".join(made.errors))

    async def run(
        self,
        *,
        days: int | None = None,
        only: Sequence[str] = (),
        dry_run: bool = False,
        progress: Progress = lambda _name, _result: None,
    ) -> ReconcileRun:
        """Goes on with a run that was stopped, unless other days are asked for.

        A dry run compares and counts; it fetches nothing and leaves no trace. `progress` is told
        of each page, so that a person who waits sees something move.
        """
        listings = make_listings(self._settings, self._clock, self._transport)
        try:
            wanted = select_listings(listings, only)
            run = await asyncio.to_thread(self._resume, days, wanted)
            for listing in wanted:
                run = await self._compare_source(listing, run, dry_run, progress)
        finally:
            for listing in listings:
                await listing.client.close()
        run = replace(run, finished_at=self._clock.now())
        if not dry_run:
            await asyncio.to_thread(self.store.save_run, run, self._clock.now())
        return run

    async def _compare_source(
        self,
        listing: ServiceListing,
        run: ReconcileRun,
        dry_run: bool,
        progress: Progress,
    ) -> ReconcileRun:
        """One page after the other; a service that fails does not stop the others."""
        result = run.sources[listing.name]
        while result.cursor is not None and not result.error:
            try:
                result = await self._compare_page(listing, result, run.since, dry_run)
            except AftercallError as error:
                log.warning("a list of calls failed", error=error.code)
                result = replace(result, error=str(error))
            run = replace(run, sources=run.sources | {listing.name: result})
            if not dry_run:
                await asyncio.to_thread(self.store.save_run, run, self._clock.now())
            progress(listing.name, result)
        return run

    def _resume(
        self, days: int | None, listings: Sequence[ServiceListing]
    ) -> ReconcileRun:
        """The run that was stopped, if it was the same; else a new one."""
        now = self._clock.now()
        new = {listing.name: SourceResult() for listing in listings}
        last = self.store.get_last_run()
        if last is not None and (last.finished_at is None or last.errors):
            is_same = days is None and last.sources.keys() == new.keys()
            if is_same and now - last.started_at < MAX_RESUME_AGE:
                going_on = {
                    name: replace(result, error="")
                    for name, result in last.sources.items()
                }
                return replace(last, sources=going_on, finished_at=None)
        since = now - timedelta(days=days or self._settings.reconcile.days)
        return ReconcileRun(since, now, None, new)

    async def _compare_page(
        self,
        listing: ServiceListing,
        result: SourceResult,
        since: datetime,
        dry_run: bool,
    ) -> SourceResult:
        page = await listing.read_page(since, result.cursor or "")
        whole = await asyncio.to_thread(self.store.find_whole, listing.name, page.calls)
        result = replace(result, listed=result.listed + len(page.calls))
        if not (dry_run or listing.loses_words):
            await asyncio.to_thread(self._add_recordings, listing.name, whole)
        for listed in self._list_settled(page.calls):
            if listed.sid in whole or (
                listing.loses_words and await self._is_elsewhere(listed, since)
            ):
                continue
            result = replace(result, missing=result.missing + 1)
            if not dry_run:
                result = await self._bring(listing, listed, result)
        return replace(result, cursor=page.cursor)

    def _add_recordings(self, source: str, whole: Iterable[str]) -> None:
        if self._settings.recordings.enabled:
            store = RecordingStore(self._database)
            self.store.add_recordings(source, whole, store, self._clock.now())

    def _list_settled(self, listed: Iterable[ListedCall]) -> list[ListedCall]:
        newest = self._clock.now() - SETTLING
        return [
            call
            for call in listed
            if call.is_over and (call.ended_at or call.started_at) <= newest
        ]

    async def _is_elsewhere(self, listed: ListedCall, since: datetime) -> bool:
        before = since - timedelta(days=1)
        return await asyncio.to_thread(self.store.is_known_elsewhere, listed, before)

    async def _bring(
        self, listing: ServiceListing, listed: ListedCall, result: SourceResult
    ) -> SourceResult:
        """One call's fault does not stop the others; an unreachable service does."""
        try:
            report = await listing.fetch(listed, self._settings.agent_id)
            if report is None:
                return replace(result, missing=result.missing - 1)
            _, is_new = await self._take_report(report)
        except RestUnreachable:
            raise
        except CallErased:
            return replace(result, missing=result.missing - 1)
        except CallElsewhere:
            reason = "it is live in another process, which brings it at its next run"
            return result.add_lost(listed.sid, reason)
        except AftercallError as error:
            return result.add_lost(listed.sid, str(error))
        result = replace(result, brought=result.brought + is_new)
        if listing.loses_words and is_new:
            reason = f"{listing.name} keeps no words: stored without"
            return result.add_lost(listed.sid, reason)
        return result


def select_listings(
    found: Sequence[ServiceListing], only: Sequence[str]
) -> list[ServiceListing]:
    names = [listing.name for listing in found]
    if unknown := [name for name in only if name not in names]:
        known = ", ".join(names) or "nothing"
        raise ConfigError(f"reconcile: {unknown[0]} is not set up; {known} is")
    if not found:
        raise ConfigError(
            "reconcile: no carrier or platform is set up; set the key of one, "
            "for example VAPI_API_KEY"
        )
    return [listing for listing in found if not only or listing.name in only]
