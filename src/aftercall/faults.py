"""Named points where a crash test kills the process. They do nothing unless one is armed.

`AFTERCALL_FAULT=journal.after_append:3` sends SIGKILL the third time that point is reached.
"""

import os
import signal

POINTS = (
    "journal.before_append",
    "journal.after_append",
    "archive.before_file",
    "archive.after_file",
    "archive.after_chain",
    "erase.after_terms",
    "erase.after_tombstone",
    "erase.after_recordings",
    "erase.after_archive",
    "erase.after_pages",
    "erase.after_rows",
    "backup.after_file",
    "backup.before_rename",
    "restore.after_file",
    "restore.after_database",
    "restore.after_rename",
    "retention.after_copy",
    "retention.after_files",
    "seal.before_finish",
    "addendum.after_file",
    "resume.after_keep",
    "bridge.after_request",
    "workspace.before_compare",
    "workspace.before_rename",
    "workspace.after_rename",
    "pages.after_commit",
    "pages.after_file",
    "postcall.after_enqueue",
    "postcall.after_claim",
    "postcall.before_step",
    "postcall.after_step",
    "postcall.after_finish",
    "facts.after_read",
    "facts.after_retire",
    "facts.before_commit",
    "facts.after_commit",
    "corrections.before_commit",
    "corrections.after_commit",
    "corrections.after_page",
    "pins.after_topics",
    "pins.before_commit",
    "pins.after_commit",
    "work.after_enqueue",
    "work.after_queue",
    "work.before_gather",
    "work.after_gather",
    "work.before_delivery",
    "work.after_event_start",
    "work.after_intent",
    "work.after_sink",
    "work.after_result",
    "work.after_done",
    "work.after_settle",
    "work.after_close",
    "step.after_put_off",
    "step.after_late_summary",
    "documents.after_put",
    "remem.after_send",
    "hosted.after_report",
    "recording.after_enqueue",
    "recording.after_part",
    "recording.after_rename",
    "upload.after_object",
    "upload.after_mark",
    "upload.after_segment",
    "upload.after_recording",
    "upload.after_copy",
    "upload.after_copies",
    "tests.after_start",
    "tester.after_reserve",
    "tester.after_turn",
    "tester.after_calls",
    "tester.after_scenario",
    "tester.after_ledger",
    "briefing.before_keep",
    "spill.after_line",
    "spill.after_read",
)

_armed: dict[str, int] = {}


def arm(spec: str) -> None:
    """`point` or `point:count`; an empty spec disarms all."""
    _armed.clear()
    if spec:
        point, _, count = spec.partition(":")
        _armed[point] = int(count or 1)


def fault_point(point: str) -> None:
    if point in _armed:
        _armed[point] -= 1
        if _armed[point] == 0:
            os.kill(os.getpid(), signal.SIGKILL)


arm(os.environ.get("AFTERCALL_FAULT", ""))
