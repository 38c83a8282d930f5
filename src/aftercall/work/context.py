"""Where follow-up work is done, one step at a time: read the conversation, hand over each
request, settle what was promised.

Every step may run again after a crash and leaves the same behind when it does.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import cached_property

from aftercall.clock import Clock
from aftercall.faults import fault_point
from aftercall.journal.archive import Archive
from aftercall.llm.reader import Reader
from aftercall.model.followups import FollowUp, FollowUpDraft, FollowUpRun, Trust
from aftercall.model.instants import parse_instant
from aftercall.settings import Settings
from aftercall.work.conversation import JoinedConversation, join_legs
from aftercall.work.delivery_store import DeliveryStore
from aftercall.work.passcode import PasscodeMask, find_tries
from aftercall.work.plan import FOLLOWUP_ACTOR, DraftOrigin, JudgedDraft, plan_followups
from aftercall.work.policy import PolicyRuling, TrustPolicy, lowest_trust
from aftercall.work.promises import draft_promises, is_overdue, judge_promise
from aftercall.work.requests import draft_requests
from aftercall.work.run_store import RunStore
from aftercall.work.sinks.journal import write_entry
from aftercall.work.sinks.router import Sink, SinkRouter
from aftercall.work.store import FollowUpStore, FollowUpTransition

DAY = timedelta(days=1)
SILENT = "nothing was said"
SWITCHED_OFF = "work.enabled is off"
OUTBOUND = "an outbound call: the callee is not the user"
IMPORTED = "imported: what it asks for was asked long ago"


@dataclass(frozen=True)
class WorkContext:
    settings: Settings
    reader: Reader
    clock: Clock
    archive: Archive
    runs: RunStore
    followups: FollowUpStore
    deliveries: DeliveryStore
    sinks: Mapping[str, Sink]

    @cached_property
    def policy(self) -> TrustPolicy:
        return TrustPolicy(self.settings)

    @cached_property
    def router(self) -> SinkRouter:
        return SinkRouter(self.settings, self.sinks)

    def check(self) -> None:
        """Raises ConfigError for policy or routes that cannot be used."""
        _ = (self.policy, self.router)

    def read(self, conversation: str) -> JoinedConversation:
        return join_legs(
            conversation,
            [self.archive.read(name) for name in self.runs.archives(conversation).values()],
        )

    def record_followups(self, conversation_id: str, run: int) -> list[str]:
        """Enter what the conversation asks for and promises; returns the ids of the follow-ups
        to do now.
        """
        self.runs.mark_running(conversation_id, run, self.clock.now())
        fault_point("work.before_gather")
        conversation = self.read(conversation_id)
        if not self._skip_reason(conversation):
            self._record_drafts(conversation, self.runs.get(conversation_id))
        fault_point("work.after_gather")
        return [
            row.id
            for row in self.followups.of_conversation(conversation_id)
            if row.kind == "request" and row.state in ("open", "doing")
        ]

    def finish_run(self, conversation_id: str, run: int) -> None:
        """Everything that could be done is done: settle promises, write the journal, and end
        the run.
        """
        conversation = self.read(conversation_id)
        self.runs.note_legs(
            conversation_id,
            {leg.id: _caller_turns(conversation, leg.id) for leg in conversation.legs},
        )
        reason = self._skip_reason(conversation)
        if not reason:
            self.settle_promises(conversation)
        fault_point("work.after_settle")
        self.runs.finish(conversation_id, run, "done", reason, self.clock.now())
        fault_point("work.after_close")

    def settle_promises(self, conversation: JoinedConversation) -> None:
        """Promises stand as the work behind them stands; the journal tells all of it."""
        rows = self.followups.of_conversation(conversation.id)
        requests = [row for row in rows if row.kind == "request"]
        is_ours = not self.runs.is_handed_in(conversation.id)
        for promise in rows:
            if promise.kind == "promise" and promise.state != "refused":
                is_late = (is_ours and not promise.due) or self.is_overdue(promise)
                kept = judge_promise(promise, requests, is_late=is_late)
                values = (
                    ("fulfilled_by", kept.fulfilled_by),
                    ("link", kept.link),
                    ("sink", kept.sink),
                )
                if (kept.state, kept.reason, kept.fulfilled_by) != (
                    promise.state,
                    promise.reason,
                    promise.fulfilled_by,
                ):
                    self.followups.change_state(
                        promise.id,
                        FollowUpTransition(kept.state, FOLLOWUP_ACTOR, kept.reason, values=values),
                        self.clock.now(),
                        only_from=(promise.state,),
                    )
        rows = self.followups.of_conversation(conversation.id)
        archives = list(self.runs.archives(conversation.id).values())
        write_entry(self.settings, conversation.id, conversation.legs, archives, rows)

    def is_overdue(self, promise: FollowUp) -> bool:
        zone = self.settings.zone
        return is_overdue(promise, self.clock.now().astimezone(zone).date(), zone)

    def _skip_reason(self, conversation: JoinedConversation) -> str:
        """Why a conversation has no follow-up work, if it has none."""
        if not self.settings.work.enabled or not self.settings.post_call_extraction:
            return SWITCHED_OFF
        if conversation.legs[0].direction == "outbound":
            return OUTBOUND
        if conversation.legs[0].source == "import":
            return IMPORTED
        return (
            SILENT if conversation.merged_call.is_silent and not conversation.noted_requests else ""
        )

    def _record_drafts(self, conversation: JoinedConversation, run: FollowUpRun) -> None:
        asked = self.reader.find_requests(conversation.merged_call).value
        self.reader.forget(conversation.merged_call.id)
        trusts = self._trusts(conversation, run)
        mask = (
            PasscodeMask(code.get_secret_value()) if (code := self.settings.work.passcode) else str
        )
        drafts = [*draft_requests(conversation, asked, mask), *draft_promises(conversation, asked)]
        first, last = conversation.legs[0], conversation.legs[-1]
        origin = DraftOrigin(conversation.id, first.id, last.agent_id, last.caller)
        today = self.followups.count_since(
            last.caller, self._midnight(), apart_from=conversation.id
        )
        numbers = {
            id(draft): today + number
            for number, draft in enumerate(
                (draft for draft in drafts if draft.kind == "request"), 1
            )
        }

        def judge_draft(draft: FollowUpDraft) -> JudgedDraft:
            return self._judge(
                draft, lowest_trust(trusts, draft.turn_refs), numbers.get(id(draft), 0)
            )

        made = plan_followups(
            drafts,
            self.followups.of_conversation(conversation.id),
            origin,
            judge_draft,
            self.clock.now(),
        )
        self.followups.record(made.new_rows, made.changes, made.reminders, self.clock.now())

    def _judge(self, draft: FollowUpDraft, trust: Trust, today: int) -> JudgedDraft:
        if draft.kind == "promise":
            return JudgedDraft(draft, trust, (), PolicyRuling("do"))
        sinks = self.router.route(draft.request_kind)
        ruling = self.policy.rule(
            trust, draft.request_kind, leaves_machine=self.router.leaves_machine(sinks), today=today
        )
        return JudgedDraft(draft, trust, sinks, ruling, self._remind_at(draft.due))

    def _trusts(self, conversation: JoinedConversation, run: FollowUpRun) -> dict[str, Trust]:
        """How far each leg is trusted."""
        right: frozenset[str] = frozenset()
        if passcode := self.settings.work.passcode:
            most = self.settings.work.passcode_tries
            own, everybody = self.runs.wrong_passcodes(run, self.clock.now() - DAY)
            allowed = 0 if everybody >= most * 10 else max(0, most - own)
            tries = find_tries(conversation.legs, passcode.get_secret_value(), allowed)
            self.runs.note_wrong_passcodes(conversation.id, tries.wrong)
            right = tries.correct_leg_ids
        return {leg.id: self.policy.trust(leg, leg.id in right) for leg in conversation.legs}

    def _midnight(self) -> datetime:
        return (
            self.clock.now()
            .astimezone(self.settings.zone)
            .replace(hour=0, minute=0, second=0, microsecond=0)
        )

    def _remind_at(self, due: str | None) -> datetime | None:
        if due is None or not self.settings.work.reminders:
            return None
        if "T" in due:
            return parse_instant(due)
        return datetime.combine(
            date.fromisoformat(due), time(self.settings.work.reminder_hour), self.settings.zone
        )


def _caller_turns(conversation: JoinedConversation, call_id: str) -> int:
    pairs = zip(conversation.spots, conversation.merged_call.turns, strict=True)
    return sum(
        spot[0] == call_id and turn.speaker == "caller" and bool(turn.text.strip())
        for spot, turn in pairs
    )


def archive_paths(context: WorkContext, row: FollowUp) -> tuple[str, ...]:
    return tuple(
        str(context.settings.home / "archive" / name)
        for name in context.runs.archives(row.conversation).values()
    )
