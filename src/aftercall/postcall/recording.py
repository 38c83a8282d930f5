"""The durable workflow of a recording: fetch it, and have it transcribed. Knows the durable engine, as workflow.py does.

The workflow's id is the recording's id. An attempt that a crash cuts off is made again, behind what was already fetched.
"""

import asyncio

from dbos import DBOS, SetWorkflowID
from dbos import error as engine_error

from aftercall.durable import begin, open_queue
from aftercall.errors import AftercallError
from aftercall.faults import reach
from aftercall.log import get_logger
from aftercall.postcall.recording_desk import RecordingDesk

QUEUE = "aftercall.recordings"
AT_ONCE = 2  # a long download is no reason to hold up the others, nor to fill the line
AT_HAND = 2  # begun without the queue; only when there are more of them does anybody wait for it
ATTEMPTS = 9  # with doubling pauses: a recording that is not there after four minutes is not coming

log = get_logger("recordings")

# One at a time in a process, because the durable engine is one.
_desk: RecordingDesk | None = None


def desk() -> RecordingDesk:
    if _desk is None:
        raise RuntimeError("the recordings have not been opened")
    return _desk


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, AftercallError) and error.retryable


@DBOS.workflow(name="aftercall.recording")
async def get_recording(recording_id: str) -> None:
    try:
        is_transcript_wanted = await download(recording_id)
    except Exception as error:  # noqa: BLE001 - the edge of a step: it is recorded and shown
        await give_up(recording_id, *_cause(error))
        return
    if is_transcript_wanted:
        try:
            await transcribe(recording_id)
        except Exception as error:  # noqa: BLE001 - the edge of a step: it is recorded and shown
            await give_up_transcript(recording_id, *_cause(error))


@DBOS.step(name="aftercall.download", retries_allowed=True, max_attempts=ATTEMPTS, should_retry=_may_pass)
async def download(recording_id: str) -> bool:
    return await asyncio.to_thread(desk().download, recording_id)


@DBOS.step(name="aftercall.transcribe", retries_allowed=True, max_attempts=ATTEMPTS, should_retry=_may_pass)
async def transcribe(recording_id: str) -> None:
    await asyncio.to_thread(desk().transcribe, recording_id)


@DBOS.step(name="aftercall.give_up_recording")
async def give_up(recording_id: str, code: str, reason: str) -> None:
    log.warning("a recording was not fetched", recording=recording_id, error=code)
    await asyncio.to_thread(desk().give_up, recording_id, code, reason)


@DBOS.step(name="aftercall.give_up_transcript")
async def give_up_transcript(recording_id: str, code: str, reason: str) -> None:
    log.warning("a recording was not transcribed", recording=recording_id, error=code)
    await asyncio.to_thread(desk().give_up_transcript, recording_id, reason)


def _cause(error: Exception) -> tuple[str, str]:
    """Code and reason, as what a workflow may keep; the text of foreign errors may hold addresses and is left out."""
    cause = error.errors[-1] if isinstance(error, engine_error.DBOSMaxStepRetriesExceeded) and error.errors else error
    return (cause.code, str(cause)) if isinstance(cause, AftercallError) else ("error", type(cause).__name__)


async def open_recordings(at: RecordingDesk) -> None:
    """Call once the durable engine is launched."""
    global _desk
    _desk = at
    await open_queue(QUEUE, AT_ONCE)
    await start_due_recordings(at)


async def start_due_recordings(at: RecordingDesk) -> list[str]:
    """Start every recording that waits. A crash in between starts it again, which is the same."""
    due = await asyncio.to_thread(at.store.due)
    for recording_id in due:
        with SetWorkflowID(recording_id):
            await begin(QUEUE, AT_HAND, get_recording, recording_id)
        reach("recording.after_enqueue")
        await asyncio.to_thread(at.store.mark_started, recording_id, at.clock.now())
    return due
