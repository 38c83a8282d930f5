"""Calls that a hosted platform runs: shown while they go on, and whole when it reports them.

While a call goes on it is a remote call whose sender is the platform: it has a lease, tools and
a place on the pages. Its words come with the report, which alone is complete. A platform that
never told of a call before hands it in finished.
"""

import asyncio
from collections.abc import Sequence

from aftercall.bridge.remote_call import (
    RemoteCall,
    RemoteCalls,
    RemoteStart,
    SentEvent,
    SentTurn,
)
from aftercall.bridge.tools import NO_SUCH_TOOL
from aftercall.carrier.media import PLATFORMS, open_recording_api
from aftercall.engine.voice import END_CALL
from aftercall.errors import (
    CallElsewhere,
    CallErased,
    CallNotLive,
    CallTaken,
    RefusedInput,
)
from aftercall.faults import fault_point
from aftercall.hosted.platform import UNKNOWN_SID, PlatformToolCall
from aftercall.journal.journal import MAX_CLOCK_SKEW, Journal, ingest_call
from aftercall.journal.recording_files import RecordingStore
from aftercall.journal.replay import RESUMABLE_ENDS
from aftercall.model.calls import SENDER, Call, LiveCall
from aftercall.settings import Settings

REPORT_EVENT = "platform.report"
"""What a platform says of a call besides the words: its summary, the carrier's id."""
REPORT_SEQ = 1 << 52
"""Its number among the events of a call, so that a report that comes again adds nothing."""
CALL_OVER = "This call is over; nothing was done."


class HostedCalls:
    """The calls of all platforms, each in one of three states.

    Live: the platform told of it, and `show` or a tool opened it. Its row is owned by this process.
    Stored: the report came. Whatever comes later finds it over.
    Interrupted: the lease ran out or the process ended before the report came. The report then
    opens a second leg, which holds the words and continues the first.
    """

    def __init__(
        self,
        remote_calls: RemoteCalls,
        journal: Journal,
        settings: Settings,
        recordings: RecordingStore,
    ) -> None:
        self._remote_calls = remote_calls
        self._journal = journal
        self._settings = settings
        self._recordings = recordings

    async def show(self, call: LiveCall) -> RemoteCall | None:
        """Opens the call, or renews its lease. None if it is over or has no id yet."""
        if call.sid == UNKNOWN_SID:
            return None
        live = self._remote_calls.find_live(call.source, call.sid)
        if live is not None:
            return live
        try:
            return await self._remote_calls.start(self._make_start(call))
        except (CallNotLive, CallTaken, CallElsewhere, CallErased):
            return None

    async def use_tools(
        self, call: LiveCall, used: Sequence[PlatformToolCall]
    ) -> list[tuple[PlatformToolCall, str]]:
        """What to tell the agent. A call that we never saw begins with its first tool."""
        live = await self.show(call)
        if live is None:
            return [(tool, CALL_OVER) for tool in used]
        return [(tool, await _use_tool(live, tool)) for tool in used]

    async def take_report(
        self, report: Call, recording_url: str | None = None
    ) -> tuple[str, bool]:
        """The id of the call, and whether the report was new. May be repeated.

        A crash in between leaves a call without its recording: the report that comes again, or
        the reconciler, adds it.
        """
        call_id, is_new = await self._store_report(report)
        fault_point("hosted.after_report")
        if self._is_recorded(report, recording_url):
            await asyncio.to_thread(
                self._recordings.register,
                call_id,
                report.source,
                report.sid,
                recording_url,
                "waiting",
                self._journal.clock.now(),
            )
        return call_id, is_new

    def _is_recorded(self, report: Call, url: str | None) -> bool:
        """A platform may make the recording after its report: then its API is asked for it."""
        if not self._settings.recordings.enabled or report.source not in PLATFORMS:
            return False
        if url is not None:
            return True
        api = open_recording_api(self._settings, report.source, report.sid)
        return api.can_ask and bool(report.turns)

    async def _store_report(self, report: Call) -> tuple[str, bool]:
        row = await asyncio.to_thread(
            self._journal.store.find, report.source, report.sid
        )
        if row is None:
            stored, is_new = await asyncio.to_thread(ingest_call, self._journal, report)
            return stored.live.id, is_new
        known = row.live
        if SENDER not in known.metadata:
            return known.id, False
        if report.ended_at > self._journal.clock.now() + MAX_CLOCK_SKEW:
            raise RefusedInput("ended_at", "lies in the future")
        same = {
            name: getattr(known, name)
            for name in ("source", "sid", "agent_id", "caller", "callee", "direction")
        }
        again = LiveCall(**same, started_at=report.started_at)
        try:
            live = await self._remote_calls.start(self._make_start(again))
            await _write_report(live, report)
        except CallNotLive:
            return known.id, False
        return live.call.id, True

    def _make_start(self, call: LiveCall) -> RemoteStart:
        lease_s = self._settings.live.platform_lease_s
        return RemoteStart(call, sender=call.source, lease_s=lease_s)


async def _use_tool(live: RemoteCall, tool: PlatformToolCall) -> str:
    """The platform hangs up by itself."""
    if tool.name == END_CALL:
        return NO_SUCH_TOOL
    return await live.run_tool(tool.name, tool.arguments, tool.seq)


async def _write_report(live: RemoteCall, report: Call) -> None:
    """Words, details, end. A crash in between leaves a call without its end.

    The report then comes again, from the platform or by the reconciler, and what is already on
    disk is known by its number.
    """
    await live.write_turns(
        [
            SentTurn(seq=turn.seq, speaker=turn.speaker, text=turn.text, at=turn.at)
            for turn in report.turns
        ]
    )
    if report.metadata:
        details = SentEvent(
            kind=REPORT_EVENT,
            seq=REPORT_SEQ,
            at=report.ended_at,
            data=report.metadata,
        )
        await live.write_event(details)
    reason = report.end_reason
    if reason in RESUMABLE_ENDS:  # ours, of calls whose words may be missing
        reason = f"ended_{reason}"
    await live.end(reason, report.ended_at)
