"""The audio of a call, as far as it has come."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

RecordingState = Literal["waiting", "downloading", "here", "absent", "failed"]
TranscriptState = Literal["none", "waiting", "here", "failed"]


@dataclass(frozen=True)
class Recording:
    """`absent` is final: the carrier has nothing. `path` is below the home."""

    id: str
    call_id: str
    carrier: str
    sid: str
    url: str | None = field(repr=False)
    state: RecordingState
    sha256: str | None
    bytes: int | None
    path: str | None
    attempts: int
    reason: str
    transcript: TranscriptState
    changed_at: datetime
