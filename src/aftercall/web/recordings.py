"""What carriers tell of recordings, noted as rows; fetching them is durable work."""

from datetime import timedelta

from aftercall.app import App
from aftercall.log import get_logger
from aftercall.model.recordings import RecordingState as Stored
from aftercall.phone.notices import Recorded, RecordingState

LONGEST_CALL = timedelta(days=2)
_STATES: dict[RecordingState, Stored] = {
    RecordingState.READY: "waiting",
    RecordingState.ABSENT: "absent",
    RecordingState.FAILED: "failed",
}
_REASONS = {RecordingState.ABSENT: "the carrier has nothing: too short, or silent", RecordingState.FAILED: "the carrier failed to record"}

log = get_logger("recordings")


def keep_recorded(app: App, source: str, recorded: Recorded) -> None:
    """Note a recording of a call that we know; told twice, it is noted once. One that is still running is no news."""
    if not recorded.state.is_final:
        return
    row = app.store.find_by_ids(source, recorded.calls, since=app.clock.now() - LONGEST_CALL) if recorded.calls else None
    if row is None:
        log.warning("a recording of a call that is not known", source=source)
        return
    state = _STATES[recorded.state] if recorded.url or recorded.state is not RecordingState.READY else "absent"
    sid = recorded.recording_sid or recorded.key
    app.recordings.note(row.live.id, source, sid, recorded.url, state, app.clock.now(), _REASONS.get(recorded.state, ""))
