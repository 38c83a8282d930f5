"""Processes in which the summary of a call comes late, and that may be killed in the middle of
what it had left behind.
"""

import asyncio
from dataclasses import replace
from pathlib import Path

from aftercall import faults
from aftercall.app import App, build
from aftercall.cli.context import wait_for_steps
from aftercall.errors import ModelDeclined, ModelUnavailable
from aftercall.model.calls import Call
from aftercall.model.reading import Reading, ReadingResult, Summary
from aftercall.postcall.runner import rerun
from aftercall.running import running
from aftercall.settings import Settings
from aftercall.settings.sections import DatabaseSettings, WorkSettings
from fakes import FakeReader, make_call

SAID = (("agent", "Hello!"), ("caller", "Please mend the gutter."), ("agent", "Noted."))


class Hoarse(FakeReader):
    """Fails at the first summaries it is asked for."""

    def __init__(self, *faults: Exception) -> None:
        super().__init__(Reading(language="en", summary="About the gutter."))
        self._left = list(faults)

    def summarise(self, call: Call) -> ReadingResult[Summary]:
        if self._left:
            raise self._left.pop(0)
        return super().summarise(call)


def run(home: str, database_url: str, fault: str, sids: list[str], fails: int) -> None:
    """Work until every step of each call has come to its end; the model is away for the first
    summaries.
    """
    faults.arm(fault)
    reader = Hoarse(*[ModelUnavailable("the model does not answer")] * fails)
    asyncio.run(_work(_open(home, database_url, reader), sids))


async def _work(app: App, sids: list[str]) -> None:
    async with running(app):
        for sid in sids:
            row, _ = app.journal.ingest(
                make_call(SAID, sid=sid, started_at=app.clock.now())
            )
            await wait_for_steps(app, row.live.id)
    app.close()


def run_by_hand(
    home: str, database_url: str, fault: str, sid: str, *, declines: bool
) -> None:
    """Take every step once, without the engine, or run those that failed again."""
    app = _open(
        home,
        database_url,
        Hoarse(*[ModelDeclined("the model declined to answer")] * declines),
    )
    row, is_new = app.journal.ingest(
        make_call(SAID, sid=sid, started_at=app.clock.now())
    )
    faults.arm(fault)
    for name in ("summary", "index", "document", "pins") if is_new else ("",):
        rerun(app.step_runner, row.live.id, name)
    app.close()


def _open(home: str, database_url: str, reader: Hoarse) -> App:
    settings = Settings(
        home=Path(home),
        database=DatabaseSettings(url=database_url),
        work=WorkSettings(enabled=False),
    )
    return replace(build(settings), reader=reader)
