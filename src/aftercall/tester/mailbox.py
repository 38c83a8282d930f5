"""Mailboxes, told by what they say: a carrier's machine detection goes by the length of a greeting and takes agents for machines."""

from dataclasses import replace

from aftercall.tester.phrases import find_any
from aftercall.tester.record import CallRecord

_FIRST_TURNS = 2
_SAYS = (
    "after the tone|after the beep|at the tone|at the beep|following the tone",
    "reached the voice mail|reached the voicemail|voice mail box|voicemail box|voice mailbox|mailbox is full",
    "not available to take your call",
)


def tell_mailbox(record: CallRecord) -> CallRecord:
    """An answered call whose first words are a mailbox's was answered by one."""
    first = " ".join(span.text for span in record.agent_spans[:_FIRST_TURNS])
    return replace(record, outcome="voicemail") if record.outcome == "answered" and find_any(_SAYS, first) else record
