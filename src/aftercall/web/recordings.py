"""Recordings that a carrier announces, noted with their call."""

from datetime import timedelta

from aftercall.app import App
from aftercall.log import get_logger
from aftercall.model.calls import RecordingState as Stored
from aftercall.phone.notices import RecordingNotice, RecordingState

_STATES: dict[RecordingState, Stored] = {
    RecordingState.READY: "waiting",
    RecordingState.ABSENT: "absent",
    RecordingState.FAILED: "failed",
}

log = get_logger("carrier")

MAX_CALL_DURATION = timedelta(days=2)


_REASONS = {
    RecordingState.ABSENT: "the carrier has nothing: too short, or silent",
    RecordingState.FAILED: "the carrier failed to record",
}


def store_recording_notice(app: App, source: str, recorded: RecordingNotice) -> None:
    """Note a recording of a call that we know; told twice, it is noted once.

    One that is still running is no news.
    """
    if not recorded.state.is_final:
        return
    row = (
        app.store.find_by_ids(source, recorded.call_sids, since=app.clock.now() - MAX_CALL_DURATION)
        if recorded.call_sids
        else None
    )
    if row is None:
        log.warning("a recording of a call that is not known", source=source)
        return
    state = (
        _STATES[recorded.state]
        if recorded.url or recorded.state is not RecordingState.READY
        else "absent"
    )
    sid = recorded.recording_sid or recorded.key
    app.recordings.register(
        row.live.id,
        source,
        sid,
        recorded.url,
        state,
        app.clock.now(),
        _REASONS.get(recorded.state, ""),
    )
