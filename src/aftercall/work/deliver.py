"""Handing work to a sink so that it happens once: the intent on disk, then the deed, then its
result.
"""

from collections.abc import Sequence
from dataclasses import replace

from aftercall.db.audit_log import Deed
from aftercall.errors import (
    AftercallError,
    NotWaiting,
    OutcomeUnknown,
    SinkRefused,
    SinkUnavailable,
)
from aftercall.faults import fault_point
from aftercall.model.followups import Delivery, FollowUp, FollowUpRun, SinkReceipt, SinkWork
from aftercall.work.context import WorkContext, archive_paths
from aftercall.work.plan import FOLLOWUP_ACTOR
from aftercall.work.sinks.command import AgentSink
from aftercall.work.store import FollowUpTransition

_COUNTED = {
    "done": "done",
    "passed on": "passed on",
    "noted": "written down",
    "held": "waits for approval",
}


def notice_key(conversation: str, run: int, sink: str) -> str:
    return f"{conversation}:{run}:notice:{sink}"


def notice_work(run: FollowUpRun, rows: Sequence[FollowUp], key: str) -> SinkWork:
    """Who called, what was asked, what was done, what waits."""
    requests = [row for row in rows if row.kind == "request"]
    counts = [
        (sum(row.standing == standing for row in requests), told)
        for standing, told in _COUNTED.items()
    ]
    told = ", ".join(
        [f"{len(requests)} asked for", *(f"{count} {told}" for count, told in counts if count)]
    )
    return SinkWork(
        key=key,
        purpose="notice",
        kind="note",
        title=(
            f"{run.caller or 'A withheld number'} called: "
            f"{told if requests else 'nothing asked for'}"
        ),
        details="\n".join(
            _line(row) for row in rows if row.kind == "request" or row.state == "broken"
        ),
        caller=run.caller,
        agent_id=run.agent_id,
        conversation=run.conversation,
        call_id=next(iter(run.legs), ""),
        at=run.ended_at,
    )


def reminder_work(row: FollowUp, sink: str) -> SinkWork:
    return replace(
        SinkWork.from_followup(row, "reminder", f"{row.key}:reminder:{sink}"),
        kind="reminder",
        title=f"Due: {row.title}",
    )


def _line(row: FollowUp) -> str:
    what = (
        f"promised, broken: {row.title}"
        if row.kind == "promise"
        else f"{row.standing}: {row.title}"
    )
    if row.state == "held":
        return f"{what} ({row.reason}) — approve with: aftercall followups approve {row.id}"
    return f"{what} ({row.link or row.reason})" if row.link or row.reason else what


CUT_OFF = (
    "was cut off while it worked and cannot tell whether it was done; look, then `aftercall "
    "followups retry`"
)
IN_PROGRESS_REASON = "another process is sending it just now"


def deliver_request(context: WorkContext, followup_id: str) -> None:
    """Hand one request to each of its sinks.

    What it raises is for whoever asked, to try again or to give up.
    """
    row = context.followups.get(followup_id)
    if row.state not in ("open", "doing"):
        return
    if context.settings.work.dry_run:
        told = "; ".join(
            context.sinks[name].describe_dry_run(request_work(context, row, name))
            for name in row.sinks
        )
        _move(context, row, FollowUpTransition("held", FOLLOWUP_ACTOR, f"dry run: {told}"))
        return
    if row.state == "open":
        _move(context, row, FollowUpTransition("doing", FOLLOWUP_ACTOR))
    elif refused := _find_refused(context, row):
        raise SinkRefused(refused.reason)
    fault_point("work.before_handover")
    receipts = [
        deliver_once(context, name, request_work(context, row, name), row.id) for name in row.sinks
    ]
    link = next((receipt.link for receipt in receipts if receipt.link), None)
    answer = next((receipt.response for receipt in receipts if receipt.response), "")
    _move(context, row, FollowUpTransition("done", FOLLOWUP_ACTOR, "", answer, (("link", link),)))
    fault_point("work.after_done")


def run_agent(context: WorkContext, followup_ids: Sequence[str]) -> None:
    """Run the agent's command once for those of a conversation's requests that go to it.

    Each gets its delivery; `do` finds there how it ended. A single request is left to `do`.
    """
    sink = context.sinks.get(AgentSink.name)
    if (
        not isinstance(sink, AgentSink)
        or not sink.per_conversation
        or context.settings.work.dry_run
    ):
        return
    rows = [context.followups.get(followup_id) for followup_id in followup_ids]
    rows = [
        row
        for row in rows
        if row.state in ("open", "doing") and _is_untried(context, row, sink.name)
    ]
    if len(rows) < 2:
        return
    for row in rows:
        if row.state == "open":
            _move(context, row, FollowUpTransition("doing", FOLLOWUP_ACTOR))
    wanted = [(row.id, request_work(context, row, sink.name)) for row in rows]
    works = context.deliveries.claim_all(wanted, sink, context.clock.now())
    if not works:
        return
    fault_point("work.after_intent")
    try:
        ends = sink.deliver_all(works)
    except AftercallError as error:
        for work in works:
            context.deliveries.fail(
                work.key, str(error), context.clock.now(), is_final=not error.retryable
            )
        raise
    fault_point("work.after_sink")
    for work, end in zip(works, ends, strict=True):
        if isinstance(end, SinkReceipt):
            context.deliveries.finish(work.key, end, context.clock.now())
        else:
            context.deliveries.fail(work.key, str(end), context.clock.now(), is_final=True)
    fault_point("work.after_result")


def fail_agent_requests(context: WorkContext, followup_ids: Sequence[str], reason: str) -> None:
    """The command could not be run for these requests, and is not run for each of them either."""
    for followup_id in followup_ids:
        for delivery in context.deliveries.of_followup(followup_id):
            if delivery.sink == AgentSink.name and delivery.state == "waiting":
                context.deliveries.fail(delivery.key, reason, context.clock.now(), is_final=True)


def _is_untried(context: WorkContext, row: FollowUp, sink: str) -> bool:
    known = context.deliveries.find(_delivery_key(row, sink))
    untried = ("waiting", "dead") if row.state == "open" else ("waiting",)
    return sink in row.sinks and (known is None or known.state in untried)


def _find_refused(context: WorkContext, row: FollowUp) -> Delivery | None:
    """A delivery of this try that has failed for good: its sink is not asked again."""
    sent = context.deliveries.of_followup(row.id)
    return next((item for item in sent if item.purpose == "request" and item.state == "dead"), None)


def deliver_once(
    context: WorkContext, sink_name: str, work: SinkWork, followup_id: str | None = None
) -> SinkReceipt:
    sink = context.sinks.get(sink_name)
    if sink is None:
        raise SinkRefused(f"{sink_name}: is not set up any more; set it up, or reject this")
    if not context.deliveries.claim(work, sink, followup_id, context.clock.now()):
        known = context.deliveries.get(work.key)
        if known.state == "done":
            return SinkReceipt(known.link, known.response or "")
        if sink.can_repeat or context.deliveries.is_claimed_elsewhere(
            work.key, context.clock.now()
        ):
            raise SinkUnavailable(f"{sink_name}: {IN_PROGRESS_REASON}")
        raise OutcomeUnknown(f"{sink_name}: {CUT_OFF}")
    fault_point("work.after_intent")
    try:
        receipt = sink.deliver(work)
    except AftercallError as error:
        context.deliveries.fail(
            work.key, str(error), context.clock.now(), is_final=not error.retryable
        )
        raise
    fault_point("work.after_sink")
    context.deliveries.finish(work.key, receipt, context.clock.now())
    fault_point("work.after_result")
    return receipt


def notify(context: WorkContext, conversation: str, run: int) -> None:
    """Tell the owner of a conversation in which something was said."""
    now = context.runs.get(conversation)
    rows = context.followups.of_conversation(conversation)
    if context.settings.work.dry_run or not any(now.legs.values()):
        return
    for sink in _names(context.settings.work.notice):
        deliver_once(context, sink, notice_work(now, rows, notice_key(conversation, run, sink)))


def remind(context: WorkContext, followup_id: str) -> None:
    row = context.followups.get(followup_id)
    for sink in (
        _names(context.settings.work.reminders) if not context.settings.work.dry_run else ()
    ):
        deliver_once(context, sink, reminder_work(row, sink), row.id)


def fail_request(context: WorkContext, followup_id: str, reason: str) -> None:
    """The request has failed, and shows; what is left of its deliveries is laid aside."""
    row = context.followups.get(followup_id)
    for delivery in context.deliveries.of_followup(followup_id):
        if delivery.purpose == "request" and delivery.state != "done":
            context.deliveries.fail(delivery.key, reason, context.clock.now(), is_final=True)
    _move(context, row, FollowUpTransition("failed", FOLLOWUP_ACTOR, reason))


def approve(context: WorkContext, followup_id: str, who: str) -> FollowUp:
    """Let it be done, by whoever is at work, within a second."""
    row = context.followups.get(followup_id)
    if row.kind != "request" or row.state != "held":
        raise NotWaiting(
            f"follow-up {followup_id} is a {row.kind} that is {row.state}; only a held "
            "request can be approved"
        )
    return _queue(context, row, "approved", who, "approved")


def reject(context: WorkContext, followup_id: str, who: str) -> FollowUp:
    row = context.followups.get(followup_id)
    transition = FollowUpTransition(
        "refused", who, "rejected", values=(("queued", None),), deed="rejected"
    )
    if not context.followups.change_state(
        row.id,
        transition,
        context.clock.now(),
        only_from=("held", "open", "failed", "unknown", "broken", "expired"),
    ):
        raise NotWaiting(f"follow-up {followup_id} is {row.state}; there is nothing to reject")
    context.settle_promises(context.read(row.conversation))
    return context.followups.get(followup_id)


def retry(context: WorkContext, followup_id: str, who: str) -> FollowUp:
    """Try what failed once more. Who asks for it has looked whether it was done after all."""
    row = context.followups.get(followup_id)
    if row.kind != "request" or row.state not in ("failed", "expired"):
        raise NotWaiting(
            f"follow-up {followup_id} is a {row.kind} that is {row.state}; only a failed "
            "request can be tried again"
        )
    for delivery in context.deliveries.of_followup(row.id):
        if delivery.state in ("sending", "dead"):
            context.deliveries.fail(
                delivery.key, "to be tried again", context.clock.now(), is_final=False
            )
    return _queue(context, row, "to be tried again", who, "retried")


def retry_run(context: WorkContext, conversation: str) -> bool:
    """Have the follow-up work of a conversation done once more; False if it has not failed."""
    if context.runs.get(conversation).state != "failed":
        return False
    context.runs.make_due(conversation, context.clock.now())
    return True


def resend(context: WorkContext, key: str) -> Delivery:
    """Send one delivery again, now and under its old key, however it ended."""
    delivery = context.deliveries.get(key)
    if not context.deliveries.fail(key, "to be sent again", context.clock.now(), is_final=False):
        raise NotWaiting(f"delivery {key}: {IN_PROGRESS_REASON}")
    row = context.followups.get(delivery.followup_id) if delivery.followup_id else None
    if row and delivery.purpose == "request":
        work = request_work(context, row, delivery.sink)
    elif row:
        work = reminder_work(row, delivery.sink)
    else:
        work = notice_work(
            context.runs.get(delivery.conversation),
            context.followups.of_conversation(delivery.conversation),
            key,
        )
    deliver_once(context, delivery.sink, work, delivery.followup_id)
    if row and delivery.purpose == "request" and row.state == "failed":
        _move(
            context,
            row,
            FollowUpTransition(
                "done", "resent", "", values=(("link", context.deliveries.get(key).link),)
            ),
        )
    return context.deliveries.get(key)


def request_work(context: WorkContext, row: FollowUp, sink: str) -> SinkWork:
    return replace(
        SinkWork.from_followup(row, "request", _delivery_key(row, sink)),
        words=row.words,
        archives=archive_paths(context, row),
    )


def _delivery_key(row: FollowUp, sink: str) -> str:
    return f"{row.key}:{sink}"


def _names(sinks: str) -> tuple[str, ...]:
    return tuple(sinks.split("+")) if sinks else ()


def _queue(context: WorkContext, row: FollowUp, note: str, who: str, deed: Deed) -> FollowUp:
    values = (("queued", "due"), ("round", row.round + 1))
    if not context.followups.change_state(
        row.id,
        FollowUpTransition("open", who, "", note, values, deed),
        context.clock.now(),
        only_from=(row.state,),
    ):
        raise NotWaiting(f"follow-up {row.id} has just changed; look again")
    return context.followups.get(row.id)


def _move(context: WorkContext, row: FollowUp, transition: FollowUpTransition) -> None:
    context.followups.change_state(
        row.id, transition, context.clock.now(), only_from=("open", "doing", "failed")
    )
