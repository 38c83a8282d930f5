"""The steps of follow-up work: record requests, judge them, settle promises, write the page.
And which sinks are set up, and which of them a kind of request goes to.

A crash may run a step again; it then leaves the same result.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from functools import cached_property

from aftercall.clock import Clock, parse_instant
from aftercall.db.corrections import FOLLOWUPS, CorrectionStore
from aftercall.errors import ConfigError, NotWaiting
from aftercall.faults import fault_point
from aftercall.journal.archive import Archive
from aftercall.journal.view import read_whole
from aftercall.llm.reader import Reader
from aftercall.log import get_logger
from aftercall.model.calls import IMPORTED
from aftercall.model.followups import (
    PERSON,
    FollowUp,
    FollowUpDraft,
    FollowUpRun,
    Trust,
)
from aftercall.model.reading import OUTBOUND_REASON
from aftercall.settings import Settings
from aftercall.who.trust import (
    PasscodeMask,
    PolicyRuling,
    TrustPolicy,
    find_tries,
    lowest_trust,
)
from aftercall.work.events import Webhooks
from aftercall.work.plan import (
    FOLLOWUP_ACTOR,
    CorrectedFollowUp,
    DraftOrigin,
    JudgedDraft,
    index_corrections,
    make_row,
    plan_followups,
    settle_rebuilt,
)
from aftercall.work.requests import (
    JoinedConversation,
    draft_promises,
    draft_requests,
    is_overdue,
    join_legs,
    judge_promise,
)
from aftercall.work.run_store import RunStore
from aftercall.work.sinks import Sink
from aftercall.work.sinks.command import AgentSink, McpSink
from aftercall.work.sinks.http import GitHubSink, WebhookSink
from aftercall.work.sinks.markdown import PeopleSink, TasksSink, write_entry
from aftercall.work.sinks.message import EmailSink, MessageSink, make_carrier
from aftercall.work.store import DeliveryStore, FollowUpStore, FollowUpTransition

log = get_logger("work")

DAY = timedelta(days=1)
MAX_PLANS = (
    10  # people correct rows while they are planned; each plan takes milliseconds
)
SILENT_REASON = "nothing was said"
WORK_OFF_REASON = "work.enabled is off"
ADDED_REASON = "a person found it in the call; approve it to have it done"
IMPORTED_REASON = "imported: what it asks for was asked long ago"
NEEDED_SETTINGS = {
    "github": "GITHUB_TOKEN and github.repository",
    "webhook": "webhook.url",
    "email": "email.host, email.sender and email.to",
    "message": "a carrier's keys and the number to send from",
    "mcp": "mcp.tool and mcp.command or mcp.url",
    "agent": "agent.command",
}


def make_sinks(settings: Settings, clock: Clock) -> dict[str, Sink]:
    """The sinks whose settings are complete."""
    sinks: list[Sink] = [TasksSink(settings, clock), PeopleSink(settings, clock)]
    if settings.github.token and settings.github.repository:
        sinks.append(GitHubSink(settings.github, clock))
    if settings.webhook.url:
        sinks.append(WebhookSink(settings.webhook, clock))
    if settings.email.host and settings.email.sender and settings.email.to:
        sinks.append(EmailSink(settings.email, clock))
    if carrier := make_carrier(settings):
        sinks.append(MessageSink(carrier, settings.owner, clock))
    if settings.mcp.tool and (settings.mcp.command or settings.mcp.url):
        sinks.append(McpSink(settings.mcp))
    if settings.agent.command:
        sinks.append(AgentSink(settings.agent, settings.home))
    return {sink.name: sink for sink in sinks}


class SinkRouter:
    """Picks the sinks of a request by its kind."""

    def __init__(self, settings: Settings, sinks: Mapping[str, Sink]) -> None:
        self._sinks = sinks
        self._routes = settings.work.routes
        used = {f"routes.{kind}": names for kind, names in self._routes.items()}
        used |= {"notice": settings.work.notice, "reminders": settings.work.reminders}
        for setting, names in used.items():
            for name in split_names(names):
                if name not in sinks:
                    needed = NEEDED_SETTINGS[name]
                    raise ConfigError(
                        f"work.{setting}: {name} is not set up; it needs {needed}"
                    )

    def route(self, kind: str) -> tuple[str, ...]:
        return split_names(self._routes.get(kind, "")) or (self._default(kind),)

    def leaves_machine(self, names: tuple[str, ...]) -> bool:
        return any(self._sinks[name].leaves_machine for name in names)

    def _default(self, kind: str) -> str:
        if kind == "note":
            return "people"
        if kind == "issue" and "github" in self._sinks:
            return "github"
        return "agent" if kind != "reminder" and "agent" in self._sinks else "tasks"


def split_names(names: str) -> tuple[str, ...]:
    """`github+webhook` as the settings and the ledger write it."""
    return tuple(names.split("+")) if names else ()


@dataclass(frozen=True)
class WorkContext:
    """What the steps of follow-up work share, and the steps themselves."""

    settings: Settings
    reader: Reader
    clock: Clock
    archive: Archive
    runs: RunStore
    followups: FollowUpStore
    deliveries: DeliveryStore
    sinks: Mapping[str, Sink]
    corrections: CorrectionStore
    webhooks: Webhooks

    @cached_property
    def policy(self) -> TrustPolicy:
        return TrustPolicy(self.settings)

    @cached_property
    def router(self) -> SinkRouter:
        return SinkRouter(self.settings, self.sinks)

    def check(self) -> None:
        """Raises ConfigError if policy or routes cannot be used."""
        _ = (self.policy, self.router)

    def read(self, conversation: str) -> JoinedConversation:
        rows = self.runs.list_legs(conversation)
        return join_legs(conversation, [read_whole(self.archive, row) for row in rows])

    def record_followups(self, conversation_id: str, run: int) -> list[str]:
        """Records requests and promises; returns the ids of the requests to deliver now."""
        self.runs.mark_running(conversation_id, run, self.clock.now())
        fault_point("work.before_gather")
        conversation = self.read(conversation_id)
        if not self._skip_reason(conversation):
            self._record_drafts(conversation, self.runs.get(conversation_id))
        fault_point("work.after_gather")
        rows = self.followups.of_conversation(conversation_id)
        return [
            row.id
            for row in rows
            if row.kind == "request" and row.state in ("open", "doing")
        ]

    def finish_run(self, conversation_id: str, run: int) -> None:
        """Settles promises, writes the page of the conversation and ends the run."""
        conversation = self.read(conversation_id)
        self._note_legs(conversation)
        reason = self._skip_reason(conversation)
        if not reason:
            self._settle(conversation)
        fault_point("work.after_settle")
        self.runs.finish(conversation_id, run, "done", reason, self.clock.now())
        fault_point("work.after_close")

    def record_rebuilt(
        self, conversation_id: str, known_legs: Mapping[str, int] | None = None
    ) -> int:
        """Puts what a lost ledger held back, as far as the archive tells. Delivers nothing.

        A conversation whose legs are all known is not read again. Returns how many requests and
        promises it has.
        """
        conversation = self.read(conversation_id)
        self._note_legs(conversation)
        if self._skip_reason(conversation):
            return 0
        run = self.runs.get(conversation_id)
        if run.legs != known_legs:
            self._record_drafts(conversation, run, is_rebuilt=True)
        self._write_page(conversation)
        return len(self.followups.of_conversation(conversation_id))

    def _note_legs(self, conversation: JoinedConversation) -> None:
        turns = {
            leg.id: conversation.count_caller_turns(leg.id) for leg in conversation.legs
        }
        self.runs.note_legs(conversation.id, turns)

    def fail_run(self, conversation_id: str, run: int, reason: str) -> None:
        log.warning("a follow-up run failed", conversation=conversation_id)
        self.runs.finish(conversation_id, run, "failed", reason, self.clock.now())

    def settle_promises(self, conversation_id: str) -> None:
        """Brings promises to the state of the requests behind them, then writes the page."""
        self._settle(self.read(conversation_id))

    def _settle(self, conversation: JoinedConversation) -> None:
        rows = self.followups.of_conversation(conversation.id)
        requests = [row for row in rows if row.kind == "request"]
        for promise in rows:
            is_settled = promise.state == "refused" or promise.sink == PERSON
            if promise.kind == "promise" and not is_settled:
                self._settle_promise(promise, requests)
        self._write_page(conversation)

    def _write_page(self, conversation: JoinedConversation) -> None:
        rows = self.followups.of_conversation(conversation.id)
        archives = [
            str(leg.archive_name) for leg in self.runs.list_legs(conversation.id)
        ]
        write_entry(self.settings, conversation.id, conversation.legs, archives, rows)

    def _settle_promise(self, promise: FollowUp, requests: list[FollowUp]) -> None:
        is_late = self.is_overdue(promise)
        new = judge_promise(promise, requests, is_late=is_late)
        old = (promise.state, promise.reason, promise.fulfilled_by, promise.sink)
        if (new.state, new.reason, new.fulfilled_by, new.sink) == old:
            return
        values = (
            ("fulfilled_by", new.fulfilled_by),
            ("link", new.link),
            ("sink", new.sink),
        )
        transition = FollowUpTransition(
            new.state, FOLLOWUP_ACTOR, new.reason, values=values
        )
        self.followups.change_state(
            promise.id, transition, self.clock.now(), only_from=(promise.state,)
        )

    def is_overdue(self, promise: FollowUp) -> bool:
        """Never that of another agent, who may keep it where we cannot see it."""
        if self.runs.is_handed_in(promise.conversation):
            return False
        zone = self.settings.zone
        today = self.clock.now().astimezone(zone).date()
        return not promise.due or is_overdue(promise, today, zone)

    def archive_paths(self, conversation: str) -> tuple[str, ...]:
        url = self.settings.archive.url.rstrip("/")
        folder = f"{url or self.settings.home}/archive"
        legs = self.runs.list_legs(conversation)
        return tuple(f"{folder}/{leg.archive_name}" for leg in legs)

    def _skip_reason(self, conversation: JoinedConversation) -> str:
        """Why a conversation has no follow-up work; empty if it may have some."""
        if not self.settings.work.enabled or not self.settings.post_call_extraction:
            return WORK_OFF_REASON
        if conversation.legs[0].direction == "outbound":
            return OUTBOUND_REASON
        if conversation.legs[0].source == IMPORTED:
            return IMPORTED_REASON
        if conversation.merged_call.is_silent and not conversation.noted_requests:
            return SILENT_REASON
        return ""

    def _record_drafts(
        self,
        conversation: JoinedConversation,
        run: FollowUpRun,
        *,
        is_rebuilt: bool = False,
    ) -> None:
        """Of a conversation that `is_rebuilt`, rows as of its end, of which nobody is told."""
        reading = self.reader.find_requests(conversation.merged_call).value
        self.reader.forget(conversation.merged_call.id)
        trusts = self._trusts(conversation, run)
        code = self.settings.work.passcode
        mask = PasscodeMask(code.get_secret_value()) if code else str
        zone = self.settings.zone
        requests = draft_requests(conversation, reading, zone, mask)
        promises = draft_promises(conversation, reading, zone)
        first = conversation.legs[0]
        last = conversation.legs[-1]
        ended_at = max(leg.ended_at for leg in conversation.legs)
        now = ended_at if is_rebuilt else self.clock.now()
        earlier = self.followups.count_since(
            last.caller, self._midnight(now), apart_from=conversation.id
        )
        numbers = {
            id(draft): earlier + number for number, draft in enumerate(requests, 1)
        }

        def judge_draft(draft: FollowUpDraft) -> JudgedDraft:
            trust = lowest_trust(trusts, draft.turn_refs)
            return self._judge(draft, trust, numbers.get(id(draft), 0))

        origin = DraftOrigin(conversation.id, first.id, last.agent_id, last.caller)
        for _ in range(MAX_PLANS):
            known = self.followups.of_conversation(conversation.id)
            plan = plan_followups(
                [*requests, *promises],
                known,
                origin,
                judge_draft,
                now,
                self._index_corrections(known),
            )
            if is_rebuilt:
                plan = settle_rebuilt(plan, known, self.clock.now())
            if self.followups.record(
                plan.new_rows,
                plan.changes,
                plan.reminders,
                now,
                seen=known,
                writes_events=not is_rebuilt,
            ):
                return
        raise NotWaiting(f"the follow-ups of {conversation.id} change all the time")

    def _index_corrections(
        self, known: Sequence[FollowUp]
    ) -> dict[str, CorrectedFollowUp]:
        if not known:
            return {}
        keys = [row.key for row in known]
        chains = self.corrections.list_chains(known[0].agent_id, FOLLOWUPS, keys)
        return index_corrections(chains)

    def make_request(self, draft: FollowUpDraft, origin: DraftOrigin) -> FollowUp:
        """A request that a person found in a call; it is held until a person approves it."""
        judged = self._judge(draft, "unknown", 0)
        row = make_row(judged, origin, self.clock.now())
        return replace(row, state="held", reason=ADDED_REASON)

    def _judge(self, draft: FollowUpDraft, trust: Trust, today: int) -> JudgedDraft:
        if draft.kind == "promise":
            return JudgedDraft(draft, trust, (), PolicyRuling("do"))
        sinks = self.router.route(draft.request_kind)
        leaves_machine = self.router.leaves_machine(sinks)
        ruling = self.policy.rule(
            trust, draft.request_kind, leaves_machine=leaves_machine, today=today
        )
        return JudgedDraft(draft, trust, sinks, ruling, self.remind_at(draft.due))

    def _trusts(
        self, conversation: JoinedConversation, run: FollowUpRun
    ) -> dict[str, Trust]:
        """The trust of each leg, by call id."""
        correct: frozenset[str] = frozenset()
        if passcode := self.settings.work.passcode:
            limit = self.settings.work.passcode_tries
            own, total = self.runs.wrong_passcodes_of(
                run.caller, self.clock.now() - DAY, apart_from=(run.conversation,)
            )
            allowed = 0 if total >= limit * 10 else max(0, limit - own)
            tries = find_tries(conversation.legs, passcode.get_secret_value(), allowed)
            self.runs.note_wrong_passcodes(conversation.id, tries.wrong)
            correct = tries.correct_leg_ids
        return {
            leg.id: self.policy.trust(leg, leg.id in correct)
            for leg in conversation.legs
        }

    def _midnight(self, now: datetime) -> datetime:
        now = now.astimezone(self.settings.zone)
        return now.replace(hour=0, minute=0, second=0, microsecond=0)

    def remind_at(self, due: str | None) -> datetime | None:
        if due is None or not self.settings.work.reminders:
            return None
        if "T" in due:
            return parse_instant(due)
        hour = time(self.settings.work.reminder_hour)
        return datetime.combine(date.fromisoformat(due), hour, self.settings.zone)
