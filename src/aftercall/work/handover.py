"""Handing work to a sink so that it happens once: the intent on disk, then the deed, then its result."""

from collections.abc import Sequence
from dataclasses import replace

from aftercall.db.audit import Deed
from aftercall.errors import AftercallError, NotWaiting, OutcomeUnknown, SinkRefused, SinkUnavailable
from aftercall.faults import reach
from aftercall.model.followups import Delivery, FollowUp, Receipt, Work
from aftercall.work.desk import WorkDesk, archive_paths
from aftercall.work.ledger import WHO
from aftercall.work.notice import notice_key, notice_work, reminder_work
from aftercall.work.sinks.command import AgentSink
from aftercall.work.store import Transition

CUT_OFF = "was cut off while it worked and cannot tell whether it was done; look, then `aftercall followups retry`"
IN_HAND = "another process is sending it just now"


def do(desk: WorkDesk, followup_id: str) -> None:
    """Hand one request to each of its sinks. What it raises is for whoever asked, to try again or to give up."""
    row = desk.followups.get(followup_id)
    if row.state not in ("open", "doing"):
        return
    if desk.settings.work.dry_run:
        told = "; ".join(desk.sinks[name].rehearse(request_work(desk, row, name)) for name in row.sinks)
        _move(desk, row, Transition("held", WHO, f"dry run: {told}"))
        return
    if row.state == "open":
        _move(desk, row, Transition("doing", WHO))
    elif refused := _find_refused(desk, row):
        raise SinkRefused(refused.reason)
    reach("work.before_handover")
    receipts = [hand_over(desk, name, request_work(desk, row, name), row.id) for name in row.sinks]
    link = next((receipt.link for receipt in receipts if receipt.link), None)
    answer = next((receipt.response for receipt in receipts if receipt.response), "")
    _move(desk, row, Transition("done", WHO, "", answer, (("link", link),)))
    reach("work.after_done")


def run_agent(desk: WorkDesk, followup_ids: Sequence[str]) -> None:
    """Run the agent's command once for those of a conversation's requests that go to it.

    Each gets its delivery; `do` finds there how it ended. A single request is left to `do`.
    """
    sink = desk.sinks.get(AgentSink.name)
    if not isinstance(sink, AgentSink) or not sink.per_conversation or desk.settings.work.dry_run:
        return
    rows = [desk.followups.get(followup_id) for followup_id in followup_ids]
    rows = [row for row in rows if row.state in ("open", "doing") and _is_untried(desk, row, sink.name)]
    if len(rows) < 2:
        return
    for row in rows:
        if row.state == "open":
            _move(desk, row, Transition("doing", WHO))
    wanted = [(row.id, request_work(desk, row, sink.name)) for row in rows]
    works = desk.deliveries.claim_all(wanted, sink, desk.clock.now())
    if not works:
        return
    reach("work.after_intent")
    try:
        ends = sink.deliver_all(works)
    except AftercallError as error:
        for work in works:
            desk.deliveries.fail(work.key, str(error), desk.clock.now(), is_final=not error.retryable)
        raise
    reach("work.after_sink")
    for work, end in zip(works, ends, strict=True):
        if isinstance(end, Receipt):
            desk.deliveries.finish(work.key, end, desk.clock.now())
        else:
            desk.deliveries.fail(work.key, str(end), desk.clock.now(), is_final=True)
    reach("work.after_result")


def give_up_agent(desk: WorkDesk, followup_ids: Sequence[str], reason: str) -> None:
    """The command could not be run for these requests, and is not run for each of them either."""
    for followup_id in followup_ids:
        for delivery in desk.deliveries.of_followup(followup_id):
            if delivery.sink == AgentSink.name and delivery.state == "waiting":
                desk.deliveries.fail(delivery.key, reason, desk.clock.now(), is_final=True)


def _is_untried(desk: WorkDesk, row: FollowUp, sink: str) -> bool:
    known = desk.deliveries.find(_delivery_key(row, sink))
    untried = ("waiting", "dead") if row.state == "open" else ("waiting",)
    return sink in row.sinks and (known is None or known.state in untried)


def _find_refused(desk: WorkDesk, row: FollowUp) -> Delivery | None:
    """A delivery of this try that has failed for good: its sink is not asked again."""
    sent = desk.deliveries.of_followup(row.id)
    return next((item for item in sent if item.purpose == "request" and item.state == "dead"), None)


def hand_over(desk: WorkDesk, sink_name: str, work: Work, followup_id: str | None = None) -> Receipt:
    sink = desk.sinks.get(sink_name)
    if sink is None:
        raise SinkRefused(f"{sink_name}: is not set up any more; set it up, or reject this")
    if not desk.deliveries.claim(work, sink, followup_id, desk.clock.now()):
        known = desk.deliveries.get(work.key)
        if known.state == "done":
            return Receipt(known.link, known.response or "")
        if sink.can_repeat or desk.deliveries.is_held(work.key, desk.clock.now()):
            raise SinkUnavailable(f"{sink_name}: {IN_HAND}")
        raise OutcomeUnknown(f"{sink_name}: {CUT_OFF}")
    reach("work.after_intent")
    try:
        receipt = sink.deliver(work)
    except AftercallError as error:
        desk.deliveries.fail(work.key, str(error), desk.clock.now(), is_final=not error.retryable)
        raise
    reach("work.after_sink")
    desk.deliveries.finish(work.key, receipt, desk.clock.now())
    reach("work.after_result")
    return receipt


def notify(desk: WorkDesk, conversation: str, run: int) -> None:
    """Tell the owner of a conversation in which something was said."""
    now = desk.runs.get(conversation)
    rows = desk.followups.of_conversation(conversation)
    if desk.settings.work.dry_run or not any(now.legs.values()):
        return
    for sink in _names(desk.settings.work.notice):
        hand_over(desk, sink, notice_work(now, rows, notice_key(conversation, run, sink)))


def remind(desk: WorkDesk, followup_id: str) -> None:
    row = desk.followups.get(followup_id)
    for sink in _names(desk.settings.work.reminders) if not desk.settings.work.dry_run else ():
        hand_over(desk, sink, reminder_work(row, sink), row.id)


def give_up(desk: WorkDesk, followup_id: str, reason: str) -> None:
    """The request has failed, and shows; what is left of its deliveries is laid aside."""
    row = desk.followups.get(followup_id)
    for delivery in desk.deliveries.of_followup(followup_id):
        if delivery.purpose == "request" and delivery.state != "done":
            desk.deliveries.fail(delivery.key, reason, desk.clock.now(), is_final=True)
    _move(desk, row, Transition("failed", WHO, reason))


def approve(desk: WorkDesk, followup_id: str, who: str) -> FollowUp:
    """Let it be done, by whoever is at work, within a second."""
    row = desk.followups.get(followup_id)
    if row.kind != "request" or row.state != "held":
        raise NotWaiting(f"follow-up {followup_id} is a {row.kind} that is {row.state}; only a held request can be approved")
    return _queue(desk, row, "approved", who, "approved")


def reject(desk: WorkDesk, followup_id: str, who: str) -> FollowUp:
    row = desk.followups.get(followup_id)
    transition = Transition("refused", who, "rejected", values=(("queued", None),), deed="rejected")
    if not desk.followups.move(row.id, transition, desk.clock.now(), only_from=("held", "open", "failed", "unknown", "broken", "expired")):
        raise NotWaiting(f"follow-up {followup_id} is {row.state}; there is nothing to reject")
    desk.settle(desk.read(row.conversation))
    return desk.followups.get(followup_id)


def retry(desk: WorkDesk, followup_id: str, who: str) -> FollowUp:
    """Try what failed once more. Who asks for it has looked whether it was done after all."""
    row = desk.followups.get(followup_id)
    if row.kind != "request" or row.state not in ("failed", "expired"):
        raise NotWaiting(f"follow-up {followup_id} is a {row.kind} that is {row.state}; only a failed request can be tried again")
    for delivery in desk.deliveries.of_followup(row.id):
        if delivery.state in ("sending", "dead"):
            desk.deliveries.fail(delivery.key, "to be tried again", desk.clock.now(), is_final=False)
    return _queue(desk, row, "to be tried again", who, "retried")


def run_again(desk: WorkDesk, conversation: str) -> bool:
    """Have the follow-up work of a conversation done once more; False if it has not failed."""
    if desk.runs.get(conversation).state != "failed":
        return False
    desk.runs.make_due(conversation, desk.clock.now())
    return True


def resend(desk: WorkDesk, key: str) -> Delivery:
    """Send one delivery again, now and under its old key, however it ended."""
    delivery = desk.deliveries.get(key)
    if not desk.deliveries.fail(key, "to be sent again", desk.clock.now(), is_final=False):
        raise NotWaiting(f"delivery {key}: {IN_HAND}")
    row = desk.followups.get(delivery.followup_id) if delivery.followup_id else None
    if row and delivery.purpose == "request":
        work = request_work(desk, row, delivery.sink)
    elif row:
        work = reminder_work(row, delivery.sink)
    else:
        work = notice_work(desk.runs.get(delivery.conversation), desk.followups.of_conversation(delivery.conversation), key)
    hand_over(desk, delivery.sink, work, delivery.followup_id)
    if row and delivery.purpose == "request" and row.state == "failed":
        _move(desk, row, Transition("done", "resent", "", values=(("link", desk.deliveries.get(key).link),)))
    return desk.deliveries.get(key)


def request_work(desk: WorkDesk, row: FollowUp, sink: str) -> Work:
    return replace(Work.of(row, "request", _delivery_key(row, sink)), words=row.words, archives=archive_paths(desk, row))


def _delivery_key(row: FollowUp, sink: str) -> str:
    return f"{row.key}:{sink}"


def _names(sinks: str) -> tuple[str, ...]:
    return tuple(sinks.split("+")) if sinks else ()


def _queue(desk: WorkDesk, row: FollowUp, note: str, who: str, deed: Deed) -> FollowUp:
    values = (("queued", "due"), ("round", row.round + 1))
    if not desk.followups.move(row.id, Transition("open", who, "", note, values, deed), desk.clock.now(), only_from=(row.state,)):
        raise NotWaiting(f"follow-up {row.id} has just changed; look again")
    return desk.followups.get(row.id)


def _move(desk: WorkDesk, row: FollowUp, transition: Transition) -> None:
    desk.followups.move(row.id, transition, desk.clock.now(), only_from=("open", "doing", "failed"))
