"""Recordings as API and commands show them; the carrier's address stays out, it may open the audio to anybody."""

from typing import Any

from aftercall.model.instants import format_instant
from aftercall.model.recordings import Recording


def recordings_json(found: list[Recording]) -> list[dict[str, Any]]:
    return [
        {
            "id": recording.id,
            "carrier": recording.carrier,
            "state": recording.state,
            "reason": recording.reason,
            "path": recording.path,
            "bytes": recording.bytes,
            "sha256": recording.sha256,
            "attempts": recording.attempts,
            "transcript": recording.transcript,
            "changed_at": format_instant(recording.changed_at),
        }
        for recording in found
    ]
