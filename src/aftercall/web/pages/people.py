"""People: callers, what is known of them, their pinned topics, and their next briefing."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from aftercall.briefing.render import render
from aftercall.errors import RefusedInput
from aftercall.memory.fact_store import FactFilter
from aftercall.memory.pins.board import hash_note
from aftercall.model.facts import MemoryKey, PinState, memory_key
from aftercall.model.people import split_party
from aftercall.web.auth import Who
from aftercall.web.page_store import (
    CallFilter,
    PersonRow,
    parse_caller,
    require_number,
    require_party,
)
from aftercall.web.pages.context import FilterText, FormText, PageContext
from aftercall.web.routes import add_section
from aftercall.workspace import files, user_md
from aftercall.workspace.paths import (
    Workspace,
    WorkspacePerson,
    make_conflict_path,
)

PAGE_SIZE = 50
MIN_DIGITS = 3
MAX_CALLS = 20
MAX_FACTS = 50
MAX_FOLLOWUPS = 20
MAX_PROFILE_CHARS = 200_000
PINS_ANCHOR = "pins-title"
NO_MEMORY = "no memory is kept here (memory scope `none`)"


def add_routes(context: PageContext) -> None:
    """Callers: the list, one person, and what may be changed."""
    router = context.add_section("/people")
    _add_changes(router, context)
    _add_pins(router, context)

    @router.get("", response_class=HTMLResponse)
    def get_people(
        request: Request,
        q: FilterText = "",
        page: Annotated[int, Query(ge=1, le=10_000)] = 1,
    ) -> HTMLResponse:
        """Found by name or number, newest call first."""
        people = list_people(context, q, PAGE_SIZE, (page - 1) * PAGE_SIZE)
        return context.view.render_page(
            request,
            "people.html",
            people=people,
            q=q.strip(),
            page=page,
            is_last=len(people) < PAGE_SIZE,
        )

    @router.get("/{caller}", response_class=HTMLResponse)
    def get_person(request: Request, caller: str) -> HTMLResponse:
        return _show_person(context, request, require_party(caller))


@dataclass(frozen=True)
class PersonLine:
    """A caller in a list: the name, the last summary, and what is open."""

    row: PersonRow
    names: list[str]
    """Of all who call from this number."""
    last_words: str
    to_do: int


def list_people(
    context: PageContext, q: str, limit: int, offset: int = 0
) -> list[PersonLine]:
    """Callers whose name or number holds the words; all of them without words."""
    words = q.strip()
    only = context.find_named(words) if words else None
    digits = re.sub(r"[\s()./-]", "", words).lstrip("+0")
    rows = context.store.list_people(
        limit=limit,
        offset=offset,
        only=only,
        digits=digits if digits.isdigit() and len(digits) >= MIN_DIGITS else "",
    )
    steps = context.store.list_steps([row.last_call for row in rows])
    summaries = context.hide_private(steps)
    live = context.store.list_live_ids()
    to_do = context.store.count_to_do(callers=[row.caller for row in rows])
    return [
        PersonLine(
            row,
            context.find_names(row.caller),
            "On the phone now."
            if row.last_call in live
            else summaries[row.last_call] or "Not read yet.",
            to_do[row.caller],
        )
        for row in rows
    ]


def _add_changes(router: APIRouter, context: PageContext) -> None:
    """What changes a person needs an operator or an admin."""
    app = context.app
    operate = context.require("operator")
    admin = context.require("admin")

    @router.post("/{caller}/profile", dependencies=operate)
    async def post_profile(
        who: Who,
        request: Request,
        caller: str,
        text: FormText,
        was: FormText,
    ) -> Response:
        """Saves the markdown; if the file has changed meanwhile, saves nothing and shows both."""
        known = require_party(caller)
        person = _find_files(context, known)
        is_saved = await run_in_threadpool(
            _save_profile, person, text.replace("\r\n", "\n"), was, who
        )
        if not is_saved:
            return await run_in_threadpool(
                _show_person, context, request, known, typed=text
            )
        await run_in_threadpool(app.audit.record, who, "edited", "a profile")
        return context.answer_done(
            request.url_for("get_person", caller=known).path, "saved"
        )

    @router.post("/{caller}/export", dependencies=admin)
    async def post_export(who: Who, caller: str) -> Response:
        """Everything about the caller as a zip file; secrets stay masked."""
        pack = partial(app.exporter.pack, require_number(caller), who=who)
        packed = await run_in_threadpool(pack)
        headers = {"Content-Disposition": 'attachment; filename="caller.zip"'}
        return Response(packed, media_type="application/zip", headers=headers)

    @router.post("/{caller}/erase", dependencies=admin)
    async def post_erase(
        who: Who, request: Request, caller: str, typed: FormText
    ) -> Response:
        """Needs the number typed as confirmation."""
        known = require_number(caller)
        if parse_caller(typed) != known:
            raise RefusedInput(
                "typed", "is not the number of this caller; nothing was erased"
            )
        receipt = await run_in_threadpool(app.eraser.erase, known, who)
        return context.view.render_page(request, "erased.html", receipt=receipt)


def _add_pins(parent: APIRouter, context: PageContext) -> None:
    """Pins: what the agent is always told."""
    app = context.app
    pins = context.app.pins
    router = add_section(parent, dependencies=context.require("operator"))

    @router.post("/{caller}/pins")
    async def post_pin(
        who: Who, request: Request, caller: str, topic: FormText
    ) -> Response:
        """Pins a topic: the agent is told of it in every briefing."""
        known = require_party(caller)
        audit = app.audit.make_writer(who, "edited", "a pin")
        await run_in_threadpool(
            pins.pin_topic, _require_key(context, known), topic, audit
        )
        return _redirect_to_pins(request, known)

    @router.post("/{caller}/pins/{pin_id}/{decision}")
    async def post_decision(
        who: Who, request: Request, caller: str, pin_id: str, decision: str
    ) -> Response:
        """Pins it, or takes it out of what the agent is told."""
        known = require_party(caller)
        if decision not in ("pinned", "unpinned"):
            raise RefusedInput("decision", "is not pinned or unpinned")
        state: PinState = "pinned" if decision == "pinned" else "unpinned"
        await run_in_threadpool(_check_pin, context, known, pin_id)
        audit = app.audit.make_writer(who, "edited", pin_id)
        await run_in_threadpool(pins.set_state, pin_id, state, audit)
        return _redirect_to_pins(request, known)

    @router.post("/{caller}/pins/{pin_id}")
    async def post_note(
        who: Who,
        request: Request,
        caller: str,
        pin_id: str,
        was: FormText,
        note: FormText = "",
        title: FormText = "",
    ) -> Response:
        """Saves the note; if it has changed meanwhile, saves nothing and shows both."""
        known = require_party(caller)
        await run_in_threadpool(_check_pin, context, known, pin_id)
        typed = note.replace("\r\n", "\n")
        audit = app.audit.make_writer(who, "edited", pin_id)
        saved = await run_in_threadpool(
            pins.edit, pin_id, typed, title=title, was=was, audit=audit
        )
        if saved is None:
            return await run_in_threadpool(
                _show_person, context, request, known, pin_typed={pin_id: typed}
            )
        return _redirect_to_pins(request, known)


def _show_person(
    context: PageContext,
    request: Request,
    caller: str,
    typed: str | None = None,
    pin_typed: Mapping[str, str] | None = None,
) -> HTMLResponse:
    """`typed` and `pin_typed` hold input that was not saved because of an edit meanwhile."""
    app = context.app
    settings = context.app.settings
    number, person = split_party(caller)
    person_files = _find_files(context, caller)
    profile = files.read(person_files.user) or ""
    call_filter = CallFilter(party=caller) if person else CallFilter(caller=number)
    calls = context.store.list_calls(call_filter, limit=MAX_CALLS)
    key = memory_key(settings, settings.agent_id, caller)
    facts = []
    pages = []
    if key is not None:
        wanted = FactFilter(
            key=key, include_retired=True, limit=MAX_FACTS, include_group=True
        )
        facts = app.facts.page(wanted)
        pages = app.pins.list_pages(key)
    party = caller if person else None
    asked = app.work.followups.page(
        limit=MAX_FOLLOWUPS, caller=number, party=party, only_alone=True
    )
    return context.view.render_page(
        request,
        "person.html",
        status=200 if typed is None and not pin_typed else 409,
        caller=caller,
        name=context.find_name(caller),
        number=number,
        others=[] if person else context.find_other_speakers(number),
        facts=facts,
        followups=asked,
        **context.describe_rows(asked),
        profile=profile,
        conflicts=_list_conflicts(person_files),
        known=user_md.parse(profile),
        mark=_hash_text(profile),
        typed=typed,
        briefing=_split_briefing(render(app.composer.preview(caller), settings.zone)),
        lines=context.make_listings(calls),
        pins=[(page, hash_note(page.pin)) for page in pages],
        pin_typed=pin_typed or {},
        has_pins=key is not None,
    )


def _list_conflicts(person: WorkspacePerson) -> list[tuple[str, str]]:
    """The pages that keep what could not be merged, by name."""
    paths = [make_conflict_path(page) for page in (person.user, person.greeting)]
    return [(path.name, text) for path in paths if (text := files.read(path))]


def _split_briefing(text: str) -> list[tuple[str, str]]:
    """The lines between the tags, each as a label and what it says."""
    parts = [line.partition(": ") for line in text.splitlines()[2:-1]]
    return [(label, said) if said else ("", label) for label, _, said in parts]


def _save_profile(person: WorkspacePerson, text: str, was: str, who: str) -> bool:
    """Writes unless the file has changed since the page was shown; compares under the file's
    lock.
    """
    if len(text) > MAX_PROFILE_CHARS:
        raise RefusedInput("text", f"is longer than {MAX_PROFILE_CHARS:,} characters")
    is_unchanged = True

    def replace(now: str | None) -> str | None:
        nonlocal is_unchanged
        is_unchanged = _hash_text(now or "") == was
        return text if is_unchanged else now

    files.edit(person.user, replace, author=who)
    return is_unchanged


def _hash_text(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def _find_files(context: PageContext, caller: str) -> WorkspacePerson:
    person = Workspace.from_settings(context.app.settings).find_person(caller)
    if person is None:
        raise RefusedInput("caller", NO_MEMORY)
    return person


def _redirect_to_pins(request: Request, caller: str) -> Response:
    path = request.url_for("get_person", caller=caller).path
    return RedirectResponse(f"{path}#{PINS_ANCHOR}", 303)


def _check_pin(context: PageContext, caller: str, pin_id: str) -> None:
    if context.app.pins.get(pin_id).pin.key != _require_key(context, caller):
        raise RefusedInput("pin", "is not this caller's")


def _require_key(context: PageContext, caller: str) -> MemoryKey:
    key = memory_key(context.app.settings, context.app.settings.agent_id, caller)
    if key is None:
        raise RefusedInput("caller", NO_MEMORY)
    return key
