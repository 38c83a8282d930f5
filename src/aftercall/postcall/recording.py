"""The durable workflow of a recording: fetch it, and have it transcribed.

Knows the durable engine, as workflow.py does.

The workflow's id is the recording's id. An attempt that a crash cuts off is made again, behind
what was already fetched.
"""

import asyncio

from dbos import SetWorkflowID

from aftercall.durable import register_queue, run_in_thread, start_workflow, step, workflow
from aftercall.errors import to_aftercall_error
from aftercall.faults import fault_point
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


@workflow("aftercall.recording")
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


@step("aftercall.download", ATTEMPTS)
async def download(recording_id: str) -> bool:
    return await run_in_thread(desk().download, recording_id)


@step("aftercall.transcribe", ATTEMPTS)
async def transcribe(recording_id: str) -> None:
    await run_in_thread(desk().transcribe, recording_id)


@step("aftercall.give_up_recording", ATTEMPTS)
async def give_up(recording_id: str, code: str, reason: str) -> None:
    log.warning("a recording was not fetched", recording=recording_id, error=code)
    await run_in_thread(desk().give_up, recording_id, code, reason)


@step("aftercall.give_up_transcript", ATTEMPTS)
async def give_up_transcript(recording_id: str, code: str, reason: str) -> None:
    log.warning("a recording was not transcribed", recording=recording_id, error=code)
    await run_in_thread(desk().give_up_transcript, recording_id, reason)


def _cause(error: Exception) -> tuple[str, str]:
    ours = to_aftercall_error(error)
    return ours.code, str(ours)


def open_recordings(at: RecordingDesk) -> None:
    """Call before the durable engine is launched."""
    global _desk
    _desk = at
    register_queue(QUEUE, AT_ONCE)


async def start_due_recordings(at: RecordingDesk) -> list[str]:
    """Start every recording that waits. A crash in between starts it again, which is the same."""
    due = await asyncio.to_thread(at.store.list_due)
    for recording_id in due:
        with SetWorkflowID(recording_id):
            await start_workflow(QUEUE, AT_HAND, get_recording, recording_id)
        fault_point("recording.after_enqueue")
        await asyncio.to_thread(at.store.mark_started, recording_id, at.clock.now())
    return due
