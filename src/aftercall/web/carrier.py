"""What the webhooks of both carriers share: signed bodies, the call of a ring, recordings."""

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

from fastapi import HTTPException, Request

from aftercall.errors import Overloaded
from aftercall.log import get_logger
from aftercall.model.calls import LiveCall
from aftercall.model.calls import RecordingState as StoredState
from aftercall.phone.notices import RecordingNotice, RecordingState, RingNotice
from aftercall.phone.signature import (
    Signature,
    SignatureFlaw,
    SignedRequest,
)

if TYPE_CHECKING:
    from aftercall.app import App

TWILIO_MEDIA = "/twilio/media"
TELNYX_MEDIA = "/telnyx/media"
MAX_CALL_DURATION = timedelta(days=2)
_STORED_STATES: dict[RecordingState, StoredState] = {
    RecordingState.READY: "waiting",
    RecordingState.ABSENT: "absent",
    RecordingState.FAILED: "failed",
}
_REASONS = {
    RecordingState.ABSENT: "the carrier has nothing: too short, or silent",
    RecordingState.FAILED: "the carrier failed to record",
}

log = get_logger("carrier")


async def read_signed_body(
    request: Request,
    signature: Signature,
    *,
    carrier: str,
    not_set_up: str,
) -> bytes:
    """The body, once its signature is proven over the raw bytes; a refusal logs no content."""
    body = await request.body()
    flaw = signature.find_flaw(
        SignedRequest(_raw_target(request), dict(request.headers), body)
    )
    if flaw is SignatureFlaw.NO_KEY:
        raise HTTPException(503, not_set_up)
    if flaw is not None:
        log.warning("webhook refused", flaw=flaw.name.lower(), carrier=carrier)
        raise HTTPException(403, f"the signature is not from {carrier}")
    return body


def _raw_target(request: Request) -> str:
    """Path and query as sent: the carrier signed them before decoding."""
    path: bytes = request.scope.get("raw_path") or request.url.path.encode()
    query: bytes = request.scope.get("query_string", b"")
    return (path + b"?" + query if query else path).decode("latin-1")


def is_refused(app: "App", source: str, sid: str) -> bool:
    """Whether a call that rings is one too many."""
    try:
        app.load.check_live_call(source, sid)
    except Overloaded:
        return True
    return False


def make_call_factory(app: "App", ring: RingNotice) -> Callable[[str], LiveCall]:
    """Opens the call of a ring under a sid; the metadata of a resumed leg, which gets a new sid,
    keeps the carrier's.
    """

    def make_call(sid: str) -> LiveCall:
        call = ring.open_call(app.clock.now(), app.settings.agent_id)
        if sid == ring.sid:
            return call
        metadata = {**call.metadata, "call_sid": ring.sid}
        return call.model_copy(update={"sid": sid, "metadata": metadata})

    return make_call


def get_stream_url(app: "App", path: str) -> str:
    """The address to which a carrier streams a call's audio."""
    return f"ws{(app.settings.public_url or '').removeprefix('http').rstrip('/')}{path}"


def store_recording_notice(app: "App", source: str, notice: RecordingNotice) -> None:
    """Stores the recording of a known call; the same notice twice is stored once.

    A recording still in progress is not stored.
    """
    if not notice.state.is_final:
        return
    row = None
    if notice.call_sids:
        since = app.clock.now() - MAX_CALL_DURATION
        row = app.store.find_by_ids(source, notice.call_sids, since=since)
    if row is None:
        log.warning("recording of an unknown call", source=source)
        return
    state = _STORED_STATES[notice.state]
    if notice.state is RecordingState.READY and not notice.url:
        state = "absent"
    app.recordings.register(
        row.live.id,
        source,
        notice.recording_sid or notice.key,
        notice.url,
        state,
        app.clock.now(),
        _REASONS.get(notice.state, ""),
    )
