"""The turns of a call that goes on, one JSON line each in `calls/<id>.jsonl`, synced before the
call goes on.
"""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from aftercall.faults import fault_point
from aftercall.tester.record import Span, span_json


class CallLog:
    """The turns of one call, one JSON line each."""

    def __init__(self, path: Path) -> None:
        self.call_id = path.stem
        self._path = path

    async def add(self, *spans: Span, sid: str | None = None) -> None:
        """Returns when they are on disk."""
        lines = [{"turn": span_json(span)} for span in spans] + ([{"sid": sid}] if sid else [])
        if lines:
            await asyncio.to_thread(append_lines, self._path, *lines)
            fault_point("tester.after_turn")


def read_call_log(path: Path) -> dict[str, Any]:
    """A call that is not over, in the form of one that is."""
    about, *lines = [json.loads(line) for line in whole_lines(path)] or [{"id": path.stem}]
    turns = [
        {"turn": number} | turn
        for number, turn in enumerate((line["turn"] for line in lines if "turn" in line), 1)
    ]
    unfinished = {
        "scenario": "",
        "call": 1,
        "run": 1,
        "sid": next((line["sid"] for line in lines if "sid" in line), None),
        "duration_s": max((turn["end_s"] for turn in turns), default=0.0),
        "outcome": "unfinished",
        "ended_by": "nobody",
        "end_why": "the test run was cut short, or is going on",
        "turns": turns,
        "events": [],
        "whisper": None,
        "measures": None,
        "findings": [],
    }
    return {**unfinished, **about}


def whole_lines(path: Path) -> list[bytes]:
    """A line without its end was being written when the process ended."""
    return [line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]


def append_lines(path: Path, *lines: dict[str, Any]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(
            b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines)
        )
        file.flush()
        os.fsync(file.fileno())
