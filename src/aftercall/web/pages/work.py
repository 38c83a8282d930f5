"""Work: requests and promises, what became of them, and what waits for a decision.

Decisions are taken one by one or for many at once. Each answer says what was done, links to what
was made, and offers to undo it.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, tzinfo
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Depends, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool

from aftercall.clock import parse_instant
from aftercall.db.corrections import FOLLOWUPS
from aftercall.errors import AftercallError, NotFound
from aftercall.journal.view import read_whole
from aftercall.memory.fact_store import correction_json
from aftercall.memory.visibility import redact_turns
from aftercall.model.calls import Turn
from aftercall.model.followups import TO_DO, FollowUp, Standing
from aftercall.model.json_fields import Json
from aftercall.model.reading import REQUEST_KINDS
from aftercall.web.auth import Who
from aftercall.web.page_store import (
    TROUBLE_STATES,
    WAITING_STATES,
    parse_caller,
    parse_skip,
)
from aftercall.web.pages.context import MAX_DONE, Done, FormIds, FormText, PageContext
from aftercall.work import deliver

if TYPE_CHECKING:
    from aftercall.app import App

PREVIEW_ROWS = 15
PAGE_ROWS = 50
QUEUE_ROWS = 10
TURNS_AROUND = 2
DAYS = ("in trouble", "today", "day has passed", "tomorrow", "later", "no day")
TABS: dict[str, tuple[Standing, ...]] = {
    "to do": TO_DO,
    "to decide": WAITING_STATES,
    "to approve": ("held",),
    "may be requests": ("unclear",),
    "in trouble": TROUBLE_STATES,
    "under way": ("open", "doing"),
    "outcome unknown": ("unknown",),
    "passed on or done": ("passed on", "done"),
    "let go": ("refused", "withdrawn", "expired"),
}
OVERVIEW = ("to approve", "to do", "may be requests", "under way", "passed on or done")
Decision = Literal[
    "approve", "reject", "retry", "done", "withdraw", "yes", "due", "undo"
]
_IN_CORRECTIONS: tuple[Decision, ...] = ("withdraw", "yes", "due")
SENTENCES = {
    "approve": "Approved",
    "reject": "Rejected or settled",
    "retry": "To be tried again",
    "undo": "Undone",
    "done": "Marked as done",
    "corrected": "Put right",
    "resent": "Sent again",
    "rerun": "Run again",
    "saved": "Saved",
    "pinned": "Pinned",
    "unpinned": "Unpinned",
    "changed": "Changed",
    "removed": "Removed",
    "started": "The test run is starting",
    "scheduled": "Scheduled",
}


class WorkQuery:
    """The filters of the list, which are its address; an empty field does not filter."""

    def __init__(
        self,
        state: Annotated[list[Standing], Query()] = [],  # noqa: B006 - FastAPI copies it
        caller: str = "",
        before: Annotated[str, Query(max_length=60)] = "",
    ) -> None:
        self.states = tuple(state)
        self.caller = caller.strip()
        self.before = before

    @property
    def tab(self) -> str:
        """The tab that has these states, if one has."""
        return next((name for name, one in TABS.items() if one == self.states), "")


@dataclass(frozen=True)
class FollowUpPage:
    """A part of a list; `rest` is the cursor of the next part, if there is one."""

    items: list[FollowUp]
    rest: str = ""
    promises: Mapping[str, list[FollowUp]] = field(default_factory=dict)
    """By the item that they stand with."""

    @classmethod
    def from_rows(
        cls, rows: Sequence[FollowUp], kept: Sequence[FollowUp], rest: str
    ) -> "FollowUpPage":
        """`kept`: promises that are no rows of their own."""
        page = cls([], rest, defaultdict(list))
        requests = [row for row in rows if row.kind == "request"]
        for row in (*rows, *kept):
            owner = _find_owner(row, requests) if row.kind == "promise" else None
            if owner:
                page.promises[owner.id].append(row)
            elif row in rows:
                page.items.append(row)
        return page

    def split_by_day(self, today: date, zone: tzinfo) -> dict[str, "FollowUpPage"]:
        """What is to be done, by the day that it or the first of its promises is due.

        Empty days are left out. The list goes on after the last of them.
        """
        days: dict[str, list[FollowUp]] = {name: [] for name in DAYS}
        for row in self.items:
            together = (row, *self.promises.get(row.id, ()))
            due = min((one.due for one in together if one.due), default="")
            in_trouble = any(one.state in TROUBLE_STATES for one in together)
            name = DAYS[0] if in_trouble else _name_day(due, today, zone)
            days[name].append(row)
        found = {
            f"to do: {name}": replace(self, items=rows, rest="")
            for name, rows in days.items()
            if rows
        }
        if not found:
            return {"to do": self}
        name, last = found.popitem()
        found[name] = replace(last, rest=self.rest)
        return found


def add_routes(context: PageContext) -> None:
    """Requests and promises, and the hands on them."""
    router = context.add_section("/followups")
    work = context.app.work

    @router.get("", response_class=HTMLResponse)
    def get_work(
        request: Request, asked: Annotated[WorkQuery, Depends()]
    ) -> HTMLResponse:
        """The list of one state, with counts of the others."""
        lists = _list_work(context, asked)
        rows = [row for part in lists.values() for row in part.items]
        counts = context.store.count_followups(parse_caller(asked.caller or None))
        tabs = [
            (name, states, sum(counts.get(state, 0) for state in states))
            for name, states in TABS.items()
        ]
        return context.view.render_page(
            request,
            "work.html",
            asked=asked,
            lists=lists,
            tabs=tabs,
            states_of=TABS | {f"to do: {day}": TO_DO for day in DAYS},
            counts=counts,
            dead=work.deliveries.dead(MAX_DONE),
            **context.describe_rows(rows),
        )

    @router.get("/unclear", response_class=HTMLResponse)
    def get_unclear(request: Request) -> HTMLResponse:
        """Is this a request? One after the other, with the words beside it."""
        rows = work.followups.page(limit=QUEUE_ROWS, state="unclear")[::-1]
        return context.view.render_page(
            request,
            "unclear.html",
            rows=rows,
            count=context.store.count_followups().get("unclear", 0),
            around=_read_around(context.app, rows[0]) if rows else [],
            **context.describe_rows(rows),
        )

    _add_item_routes(router, context)
    _add_decision_routes(router, context)


def _add_item_routes(router: APIRouter, context: PageContext) -> None:
    """One request or promise: shown, dated, edited."""
    work = context.app.work

    @router.get("/{followup_id}", response_class=HTMLResponse)
    def get_followup(request: Request, followup_id: str) -> HTMLResponse:
        """One request with its words, its history and what was made of it."""
        row = work.followups.get(followup_id)
        chains = work.corrections.list_chains(row.agent_id, FOLLOWUPS, [row.key])
        newest = [chain[-1] for chain in chains]
        return context.view.render_page(
            request,
            "followup.html",
            row=row,
            kinds=REQUEST_KINDS,
            corrections=[correction_json(one) for one in newest],
            is_removed=any(one.is_removal for one in newest),
            history=work.followups.history(followup_id),
            deliveries=work.deliveries.of_followup(followup_id),
            around=_read_around(context.app, row),
            **context.describe_rows([row]),
        )

    @router.get("/{followup_id}/standing", response_class=HTMLResponse)
    def get_standing(request: Request, followup_id: str) -> HTMLResponse:
        """What became of it, alone; a message polls it until it is done."""
        row = work.followups.get(followup_id)
        return context.view.render_page(request, "parts/standing.html", row=row)


def _add_decision_routes(router: APIRouter, context: PageContext) -> None:
    """Decisions about one or many, and their undo."""
    operate = context.require("operator")
    app = context.app
    work = context.app.work

    @router.post("/deliveries/resend", dependencies=operate)
    async def post_resend(who: Who, key: FormIds) -> RedirectResponse:
        for one in key:
            await run_in_threadpool(deliver.resend, work, one)
            await run_in_threadpool(app.audit.record, who, "resent", one)
        return context.answer_done("/followups", "resent")

    @router.post("/decide", dependencies=operate)
    async def post_decision(
        who: Who,
        decision: Annotated[Decision, Form()],
        of: FormIds = [],  # noqa: B006 - FastAPI copies it
        due: Annotated[str, Form(max_length=40)] = "",
        back: FormText = "/followups",
    ) -> RedirectResponse:
        """One decision about one or many; what cannot be decided so is counted."""
        decide = _get_decision(app, decision, who, due)
        done, refused = await run_in_threadpool(_decide_all, decide, of)
        deed = "corrected" if decision in _IN_CORRECTIONS else decision
        return context.answer_done(back, deed, done, refused)

    @router.post("/{followup_id}/edit", dependencies=operate)
    async def post_edit(
        who: Who,
        followup_id: str,
        title: Annotated[str, Form(min_length=1, max_length=200)],
        kind: FormText = "",
        due: Annotated[str, Form(max_length=40)] = "",
        person: Annotated[str, Form(max_length=200)] = "",
    ) -> RedirectResponse:
        """Corrects each field that was changed."""
        new = {"request": title, "due": due, "kind": kind, "person": person}
        edit = partial(_edit, app, followup_id, new, who)
        made = await run_in_threadpool(edit)
        return context.answer_done(f"/followups/{followup_id}", "corrected", made)


def _get_decision(
    app: "App", decision: Decision, who: str, due: str
) -> Callable[[str], str]:
    """A function that decides about one follow-up; returns the id of what was made or changed."""
    if decision == "approve":
        return lambda of: deliver.approve(app.work, of, who, can_undo=True).id
    if decision == "undo":
        return lambda of: deliver.undo(app.work, of, who).id
    if decision in ("reject", "retry"):
        act = deliver.reject if decision == "reject" else deliver.retry
        return lambda of: act(app.work, of, who).id
    correct = app.corrections.correct
    if decision == "done":
        return lambda of: correct("done", of, "done", who).id
    if decision == "due":
        return lambda of: correct("due", of, due or None, who).id
    if decision == "withdraw":
        return lambda of: correct("request", of, None, who).id
    return lambda of: correct("request", of, app.work.followups.get(of).title, who).id


def _decide_all(
    decide: Callable[[str], str], ids: Sequence[str]
) -> tuple[list[str], int]:
    """Each decision is a transaction of its own. A single one that fails says why."""
    if len(ids) == 1:
        return [decide(ids[0])], 0
    done = []
    refused = 0
    for followup_id in dict.fromkeys(ids):
        try:
            done.append(decide(followup_id))
        except AftercallError as error:
            if error.retryable:
                raise
            refused += 1
    return done, refused


def _edit(app: "App", followup_id: str, new: dict[str, str], who: str) -> list[str]:
    """Corrects the fields that differ, each in a transaction of its own.

    Returns the ids of the corrections. A field that is refused leaves those before it corrected.
    """
    made = []
    what: Any
    for what, typed in new.items():
        row = app.work.followups.get(followup_id)
        value = " ".join(typed.split()) or None
        is_kind_of_promise = what == "kind" and row.kind == "promise"
        if value != getattr(row, FOLLOWUPS[what]) and not is_kind_of_promise:
            made.append(app.corrections.correct(what, followup_id, value, who).id)
    return made


def _list_work(context: PageContext, asked: WorkQuery) -> dict[str, FollowUpPage]:
    """One list if a state is asked for, else the first rows of every list that matters now."""
    caller = parse_caller(asked.caller or None)
    read = partial(context.app.work.followups.page, caller=caller, only_alone=True)

    def make_page(found: list[FollowUp], limit: int, rest: str) -> FollowUpPage:
        rows = found[:limit]
        kept = context.store.list_kept_promises(rows)
        return FollowUpPage.from_rows(rows, kept, rest if len(found) > limit else "")

    def read_page(name: str, limit: int) -> dict[str, FollowUpPage]:
        states = TABS.get(name, asked.states)
        found = read(limit=limit + 1, standings=states, before=asked.before or None)
        rest = found[:limit][-1].id if found else ""
        return {name: make_page(found, limit, rest)}

    def read_to_do() -> dict[str, FollowUpPage]:
        now = context.get_local_now()
        skip = parse_skip(asked.before)
        found = context.store.list_to_do(
            now, limit=PAGE_ROWS + 1, caller=caller, skip=skip
        )
        page = make_page(found, PAGE_ROWS, str(skip + PAGE_ROWS))
        return page.split_by_day(now.date(), context.app.settings.zone)

    if asked.states:
        name = asked.tab or ", ".join(asked.states)
        return read_to_do() if name == "to do" else read_page(name, PAGE_ROWS)
    lists: dict[str, FollowUpPage] = {}
    for name in OVERVIEW:
        lists |= read_to_do() if name == "to do" else read_page(name, PREVIEW_ROWS)
    return lists


def _find_owner(promise: FollowUp, requests: Sequence[FollowUp]) -> FollowUp | None:
    """The request that keeps it; else the last one before it in the conversation, or the first.

    "I'll give him that message" says nothing alone: a reader needs what was asked for before it.
    """
    if promise.fulfilled_by:
        return next((row for row in requests if row.id == promise.fulfilled_by), None)
    asked = [row for row in requests if row.conversation == promise.conversation]
    earlier = [row for row in asked if row.turns <= promise.turns]
    return max(earlier or asked[:1], key=attrgetter("turns"), default=None)


def _name_day(due: str, today: date, zone: tzinfo) -> str:
    if not due:
        return "no day"
    is_instant = "T" in due
    local = parse_instant(due).astimezone(zone).date() if is_instant else None
    days = ((local or date.fromisoformat(due)) - today).days
    return {0: "today", 1: "tomorrow"}.get(days, "later" if days > 0 else DAYS[2])


def _read_around(app: "App", row: FollowUp) -> list[Turn]:
    """The turns it was read from, with those around them; none if the words are gone.

    Masked as in the whole call: a secret may be told before what is shown of it here.
    """
    call = app.store.get(row.call_id)
    own = [seq for call_id, seq in row.turns if call_id == row.call_id and seq]
    if call.archive_name is None or not own:
        return []
    secrets = app.facts.list_confided_words(row.call_id)
    turns = redact_turns(read_whole(app.archive, call).turns, secrets)
    return [
        turn
        for turn in turns
        if any(abs(turn.seq - seq) <= TURNS_AROUND for seq in own)
    ]


def describe_done(app: "App", done: Done) -> Json:
    """The message about what a person has just done: to what, what was made, how to undo it."""
    message = {
        "sentence": SENTENCES.get(done.deed, "Done"),
        "rows": [],
        "corrections": [],
        "refused": done.refused,
        "undo": "",
        "ids": done.ids,
    }
    if not done.ids:
        return message
    if done.deed in ("corrected", "done"):
        made = _find_all(app.corrections.store.get, done.ids)
        message["corrections"] = [
            correction_json(one) | {"row": app.work.followups.find(one.key)}
            for one in made
        ]
        message["undo"] = "/corrections/undo" if made else ""
    elif done.deed in ("approve", "reject", "retry", "undo"):
        message["rows"] = _find_all(app.work.followups.get, done.ids)
        if done.deed in ("approve", "reject"):
            message["undo"] = "/followups/decide"
    return message


def _find_all(get: Callable[[str], Any], ids: Sequence[str]) -> list[Any]:
    """Those that are still there."""
    found = []
    for each in ids:
        with suppress(NotFound):
            found.append(get(each))
    return found
