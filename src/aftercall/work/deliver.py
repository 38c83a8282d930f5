"""Delivers work to sinks exactly once: the intent on disk, then the deed, then its result."""

from collections.abc import Sequence
from dataclasses import replace

from aftercall import telemetry
from aftercall.db.audit_log import Deed
from aftercall.errors import (
    AftercallError,
    NotWaiting,
    OutcomeUnknown,
    SinkRefused,
    SinkUnavailable,
)
from aftercall.faults import fault_point
from aftercall.log import get_logger
from aftercall.model.followups import (
    Delivery,
    FollowUp,
    FollowUpRun,
    FollowUpState,
    SinkReceipt,
    SinkWork,
)
from aftercall.work.context import WorkContext, split_names
from aftercall.work.events import event_work, next_attempt_s
from aftercall.work.plan import FOLLOWUP_ACTOR
from aftercall.work.sinks.command import AgentSink
from aftercall.work.store import FollowUpTransition

CUT_OFF = (
    "was cut off while it worked and cannot tell whether it was done; check, then "
    "`aftercall followups retry`"
)
log = get_logger("work")

REJECTED = "rejected"
UNDONE = "a decision was undone"
_RESTORED_STATES: dict[str, FollowUpState] = {
    "held": "held",
    "failed": "failed",
    "unknown": "unknown",
    "broken": "broken",
    "expired": "expired",
}
IN_PROGRESS_REASON = "another process is sending it just now"
_COUNTED = {
    "done": "done",
    "passed on": "passed on",
    "noted": "written down",
    "held": "waits for approval",
}


def deliver_request(context: WorkContext, followup_id: str) -> None:
    """Delivers one request to each of its sinks. The caller handles the errors."""
    row = context.followups.get(followup_id)
    if row.state not in ("open", "doing"):
        return
    if context.settings.work.dry_run:
        works = [(name, request_work(context, row, name)) for name in row.sinks]
        lines = [context.sinks[name].describe_dry_run(work) for name, work in works]
        reason = f"dry run: {'; '.join(lines)}"
        _move(context, row, FollowUpTransition("held", FOLLOWUP_ACTOR, reason))
        return
    if row.state == "open":
        if not _move(context, row, FollowUpTransition("doing", FOLLOWUP_ACTOR)):
            return  # a person has just taken it back
    elif refused := _find_refused(context, row):
        raise SinkRefused(refused.reason)
    fault_point("work.before_delivery")
    receipts = [
        deliver_once(context, name, request_work(context, row, name), row.id)
        for name in row.sinks
    ]
    link = next((receipt.link for receipt in receipts if receipt.link), None)
    answer = next((receipt.response for receipt in receipts if receipt.response), "")
    _move(
        context,
        row,
        FollowUpTransition("done", FOLLOWUP_ACTOR, "", answer, (("link", link),)),
    )
    fault_point("work.after_done")


def deliver_once(
    context: WorkContext, sink_name: str, work: SinkWork, followup_id: str | None = None
) -> SinkReceipt:
    sink = context.sinks.get(sink_name)
    if sink is None:
        raise SinkRefused(
            f"{sink_name}: is not set up any more; set it up, or reject this"
        )
    if not context.deliveries.claim(work, sink, followup_id, context.clock.now()):
        known = context.deliveries.get(work.key)
        if known.state == "done":
            return SinkReceipt(known.link, known.response or "")
        now = context.clock.now()
        if sink.can_repeat or context.deliveries.is_claimed_elsewhere(work.key, now):
            raise SinkUnavailable(f"{sink_name}: {IN_PROGRESS_REASON}")
        raise OutcomeUnknown(f"{sink_name}: {CUT_OFF}")
    fault_point("work.after_intent")
    try:
        with telemetry.timed("sink", work.call_id, sink=sink_name):
            receipt = sink.deliver(work)
    except AftercallError as error:
        _fail_delivery(context, work.key, str(error), is_final=not error.retryable)
        raise
    fault_point("work.after_sink")
    context.deliveries.finish(work.key, receipt, context.clock.now())
    fault_point("work.after_result")
    return receipt


def run_agent(context: WorkContext, followup_ids: Sequence[str]) -> None:
    """Runs the agent's command once for all requests of a conversation that go to it.

    Each request gets a delivery, where `deliver_request` finds the outcome. A single request is
    left to `deliver_request`.
    """
    sink = context.sinks.get(AgentSink.name)
    if not isinstance(sink, AgentSink) or not sink.per_conversation:
        return
    if context.settings.work.dry_run:
        return
    rows = [context.followups.get(followup_id) for followup_id in followup_ids]
    rows = [row for row in rows if _is_untried(context, row, sink.name)]
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
        with telemetry.timed("sink", works[0].call_id, sink=sink.name):
            outcomes = sink.deliver_all(works)
    except AftercallError as error:
        for work in works:
            _fail_delivery(context, work.key, str(error), is_final=not error.retryable)
        raise
    fault_point("work.after_sink")
    for work, outcome in zip(works, outcomes, strict=True):
        if isinstance(outcome, SinkReceipt):
            context.deliveries.finish(work.key, outcome, context.clock.now())
        else:
            _fail_delivery(context, work.key, str(outcome), is_final=True)
    fault_point("work.after_result")


def fail_agent_requests(
    context: WorkContext, followup_ids: Sequence[str], reason: str
) -> None:
    """The command could not be run for these requests and is not run for each of them either."""
    log.warning("the agent's command failed", requests=len(followup_ids))
    for followup_id in followup_ids:
        for delivery in context.deliveries.of_followup(followup_id):
            if delivery.sink == AgentSink.name and delivery.state == "waiting":
                _fail_delivery(context, delivery.key, reason, is_final=True)


def fail_request(context: WorkContext, followup_id: str, reason: str) -> None:
    """Marks the request and its unfinished deliveries as failed."""
    log.warning("a request failed", followup=followup_id)
    row = context.followups.get(followup_id)
    for delivery in context.deliveries.of_followup(followup_id):
        if delivery.purpose == "request" and delivery.state != "done":
            _fail_delivery(context, delivery.key, reason, is_final=True)
    _move(context, row, FollowUpTransition("failed", FOLLOWUP_ACTOR, reason))


def notify(context: WorkContext, conversation: str, run: int) -> None:
    """Tells the owner about a conversation unless all its callers were silent."""
    state = context.runs.get(conversation)
    if context.settings.work.dry_run or not any(state.legs.values()):
        return
    rows = context.followups.of_conversation(conversation)
    for sink in split_names(context.settings.work.notice):
        key = f"{conversation}:{run}:notice:{sink}"
        deliver_once(context, sink, notice_work(state, rows, key))


def send_event(context: WorkContext, key: str, attempt: int) -> float | None:
    """Posts an event to one webhook; the pause before the next attempt, if there is one."""
    delivery = context.deliveries.find(key)
    if delivery is None or delivery.state in ("done", "dead"):
        return None  # erased, too old, or settled
    try:
        deliver_once(context, delivery.sink, event_work(key, delivery.conversation))
    except AftercallError as error:
        pause_s = next_attempt_s(error, attempt)
        if pause_s is None:
            _fail_delivery(context, key, str(error), is_final=True)
        return pause_s
    return None


def remind(context: WorkContext, followup_id: str) -> None:
    if context.settings.work.dry_run:
        return
    row = context.followups.get(followup_id)
    for sink in split_names(context.settings.work.reminders):
        deliver_once(context, sink, reminder_work(row, sink), row.id)


def approve(
    context: WorkContext, followup_id: str, who: str, *, can_undo: bool = False
) -> FollowUp:
    """Queues a held request; a running server or worker delivers it within a second, or after
    the time in which it can be undone.
    """
    row = context.followups.get(followup_id)
    if row.kind != "request" or row.state != "held":
        raise NotWaiting(
            f"follow-up {followup_id} is a {row.kind} that is {row.state}; only a held "
            "request can be approved"
        )
    return _queue(context, row, "approved", who, "approved", can_undo=can_undo)


def reject(context: WorkContext, followup_id: str, who: str) -> FollowUp:
    """It is not to be done. The next call is told so; promises that rest on it are settled."""
    row = context.followups.get(followup_id)
    transition = FollowUpTransition(
        "refused", who, REJECTED, values=(("queued", None),), deed="rejected"
    )
    if not context.followups.change_state(
        row.id,
        transition,
        context.clock.now(),
        only_from=("held", "open", "failed", "unknown", "broken", "expired"),
    ):
        raise NotWaiting(
            f"follow-up {followup_id} is {row.state}; there is nothing to reject"
        )
    context.settle_promises(row.conversation)
    return context.followups.get(followup_id)


def undo(context: WorkContext, followup_id: str, who: str) -> FollowUp:
    """Takes an approval back that was not carried out yet, or a rejection."""
    row, history = (
        context.followups.get(followup_id),
        context.followups.history(followup_id),
    )
    before = history[-2] if len(history) > 1 else None
    is_rejected = row.state == "refused" and row.reason == REJECTED
    is_undone = False
    if before and (row.state == "open" or is_rejected):
        state = _RESTORED_STATES.get(before.what, "held")
        transition = FollowUpTransition(
            state, who, before.note, UNDONE, (("queued", None),), "undone"
        )
        is_undone = context.followups.change_state(
            row.id,
            transition,
            context.clock.now(),
            only_from=(row.state,),
            only_soon=row.state == "open",
        )
    if not is_undone:
        raise NotWaiting(
            f"follow-up {followup_id} is {row.standing}; what was done stays done"
        )
    context.settle_promises(row.conversation)
    return context.followups.get(followup_id)


def retry(context: WorkContext, followup_id: str, who: str) -> FollowUp:
    """Queues a failed request again. The person who asks has checked that it was not done."""
    row = context.followups.get(followup_id)
    if row.kind != "request" or row.state not in ("failed", "expired"):
        raise NotWaiting(
            f"follow-up {followup_id} is a {row.kind} that is {row.state}; only a failed "
            "request can be tried again"
        )
    for delivery in context.deliveries.of_followup(row.id):
        if delivery.state in ("sending", "dead"):
            _fail_delivery(context, delivery.key, "to be tried again", is_final=False)
    return _queue(context, row, "to be tried again", who, "retried")


def retry_run(context: WorkContext, conversation: str) -> bool:
    """Makes a failed run due again; False if it has not failed."""
    if context.runs.get(conversation).state != "failed":
        return False
    context.runs.make_due(conversation, context.clock.now())
    return True


def resend(context: WorkContext, key: str) -> Delivery:
    """Sends one delivery again now, under its old key and whatever its state.

    An event is left to the engine, which tries it as often as a new one.
    """
    delivery = context.deliveries.get(key)
    if not _fail_delivery(context, key, "to be sent again", is_final=False):
        raise NotWaiting(f"delivery {key}: {IN_PROGRESS_REASON}")
    if delivery.purpose == "event":
        context.webhooks.send_again(key)
        return context.deliveries.get(key)
    try:
        return _resend(context, delivery)
    except AftercallError as error:
        if delivery.state == "dead":  # it has no workflow: it stays in the list
            _fail_delivery(context, key, str(error), is_final=True)
        raise


def _resend(context: WorkContext, delivery: Delivery) -> Delivery:
    """Delivers again what failed: a notice, a request or a reminder."""
    key = delivery.key
    row = context.followups.get(delivery.followup_id) if delivery.followup_id else None
    if row is None:
        run = context.runs.get(delivery.conversation)
        work = notice_work(
            run, context.followups.of_conversation(delivery.conversation), key
        )
    elif delivery.purpose == "request":
        work = request_work(context, row, delivery.sink)
    else:
        work = reminder_work(row, delivery.sink)
    receipt = deliver_once(context, delivery.sink, work, delivery.followup_id)
    if row and delivery.purpose == "request" and row.state == "failed":
        values = (("link", receipt.link),)
        _move(context, row, FollowUpTransition("done", "resent", "", values=values))
    return context.deliveries.get(key)


def request_work(context: WorkContext, row: FollowUp, sink: str) -> SinkWork:
    return replace(
        SinkWork.from_followup(row, "request", _delivery_key(row, sink)),
        words=row.words,
        archives=context.archive_paths(row.conversation),
    )


def reminder_work(row: FollowUp, sink: str) -> SinkWork:
    work = SinkWork.from_followup(row, "reminder", f"{row.key}:reminder:{sink}")
    return replace(work, kind="reminder", title=f"Due: {row.title}")


def notice_work(run: FollowUpRun, rows: Sequence[FollowUp], key: str) -> SinkWork:
    """Who called, what was asked for, what was done and what waits."""
    requests = [row for row in rows if row.kind == "request"]
    counts = [f"{len(requests)} asked for"]
    for standing, words in _COUNTED.items():
        if count := sum(row.standing == standing for row in requests):
            counts.append(f"{count} {words}")
    summary = ", ".join(counts) if requests else "nothing asked for"
    lines = [
        _notice_line(row)
        for row in rows
        if row.kind == "request" or row.state == "broken"
    ]
    return SinkWork(
        key=key,
        purpose="notice",
        kind="note",
        title=f"{run.caller or 'A withheld number'} called: {summary}",
        details="\n".join(lines),
        caller=run.caller,
        agent_id=run.agent_id,
        conversation=run.conversation,
        call_id=next(iter(run.legs), ""),
        at=run.ended_at,
    )


def _notice_line(row: FollowUp) -> str:
    standing = "promised, broken" if row.kind == "promise" else row.standing
    line = f"{standing}: {row.title}"
    if row.state == "held":
        return f"{line} ({row.reason}) — approve with: aftercall followups approve {row.id}"
    end = row.link or row.reason
    return f"{line} ({end})" if end else line


def _is_untried(context: WorkContext, row: FollowUp, sink: str) -> bool:
    if row.state not in ("open", "doing") or sink not in row.sinks:
        return False
    known = context.deliveries.find(_delivery_key(row, sink))
    untried = ("waiting", "dead") if row.state == "open" else ("waiting",)
    return known is None or known.state in untried


def _find_refused(context: WorkContext, row: FollowUp) -> Delivery | None:
    """A delivery of this attempt that has failed for good: its sink is not asked again."""
    sent = context.deliveries.of_followup(row.id)
    return next(
        (item for item in sent if item.purpose == "request" and item.state == "dead"),
        None,
    )


def _delivery_key(row: FollowUp, sink: str) -> str:
    return f"{row.key}:{sink}"


def _fail_delivery(
    context: WorkContext, key: str, reason: str, *, is_final: bool
) -> bool:
    return context.deliveries.fail(key, reason, context.clock.now(), is_final=is_final)


def _queue(
    context: WorkContext,
    row: FollowUp,
    note: str,
    who: str,
    deed: Deed,
    *,
    can_undo: bool = False,
) -> FollowUp:
    values = (("queued", "soon" if can_undo else "due"), ("round", row.round + 1))
    transition = FollowUpTransition("open", who, "", note, values, deed)
    now = context.clock.now()
    if not context.followups.change_state(
        row.id, transition, now, only_from=(row.state,)
    ):
        raise NotWaiting(f"follow-up {row.id} has just changed; look again")
    return context.followups.get(row.id)


def _move(context: WorkContext, row: FollowUp, transition: FollowUpTransition) -> bool:
    return context.followups.change_state(
        row.id, transition, context.clock.now(), only_from=("open", "doing", "failed")
    )
