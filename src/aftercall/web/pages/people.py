"""People: who calls, what is known of them, and what their next call will be told."""

import shutil
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from aftercall.briefing.render import render
from aftercall.errors import RefusedInput
from aftercall.memory.key import memory_key
from aftercall.memory.pins.board import mark_of
from aftercall.memory.store import Wanted
from aftercall.model.people import split_party
from aftercall.web.pages.desk import WHO, Desk
from aftercall.web.queries import parse_caller, parse_party
from aftercall.web.store import Filter
from aftercall.workspace import files
from aftercall.workspace.paths import Person, Workspace

PAGE = 50
LONGEST_PROFILE = 200_000


def make_router(desk: Desk) -> APIRouter:
    router = APIRouter(prefix="/people", dependencies=[Depends(desk.view.door.admit)], include_in_schema=False)

    @router.get("", response_class=HTMLResponse)
    def get_people(request: Request, page: Annotated[int, Query(ge=1, le=10_000)] = 1) -> HTMLResponse:
        people = desk.store.people(limit=PAGE, offset=(page - 1) * PAGE)
        named = [(person, desk.name_of(person.caller), desk.guests_at(person.caller)) for person in people]
        return desk.view.page(request, "people.html", people=named, page=page, is_last=len(people) < PAGE)

    @router.get("/{caller}", response_class=HTMLResponse)
    def get_person(request: Request, caller: str) -> HTMLResponse:
        return show_person(desk, request, known_caller(caller))

    @router.post("/{caller}/profile", dependencies=[Depends(desk.view.door.admit_change)])
    async def post_profile(request: Request, caller: str, text: Annotated[str, Form()], was: Annotated[str, Form()]) -> Response:
        """The markdown as it was typed; if the file changed meanwhile, nothing is written and both are shown."""
        known = known_caller(caller)
        person = _files_of(desk, known)
        written = await run_in_threadpool(_save, person, text.replace("\r\n", "\n"), was)
        if not written:
            return await run_in_threadpool(show_person, desk, request, known, typed=text)
        await run_in_threadpool(desk.app.audit.note, WHO, "edited", "a profile")
        return RedirectResponse(request.url_for("get_person", caller=known).path + "?saved=1", 303)

    @router.post("/{caller}/export", dependencies=[Depends(desk.view.door.admit_change)])
    async def post_export(caller: str) -> Response:
        """Everything about them as one archive to download; secrets stay closed."""
        packed = await run_in_threadpool(_pack, desk, _known_number(caller))
        return Response(packed, media_type="application/zip", headers={"Content-Disposition": 'attachment; filename="caller.zip"'})

    @router.post("/{caller}/erase", dependencies=[Depends(desk.view.door.admit_change)])
    async def post_erase(request: Request, caller: str, typed: Annotated[str, Form()]) -> Response:
        """Whoever types the number means it."""
        known = _known_number(caller)
        if parse_caller(typed) != known:
            raise RefusedInput("typed", "is not the number of this caller; nothing was erased")
        receipt = await run_in_threadpool(desk.app.eraser.erase, known)
        return desk.view.page(request, "erased.html", receipt=receipt)

    return router


def _pack(desk: Desk, caller: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        made = desk.app.exporter.export(caller, Path(folder) / "caller")
        return Path(shutil.make_archive(f"{folder}/packed", "zip", made.folder)).read_bytes()


def show_person(
    desk: Desk, request: Request, caller: str, typed: str | None = None, pin_typed: Mapping[str, str] | None = None
) -> HTMLResponse:
    """`typed` and `pin_typed` are words that could not be saved, because somebody else wrote meanwhile."""
    profile = files.read(_files_of(desk, caller).user) or ""
    briefing = render(desk.app.composer.preview(caller), desk.app.settings.zone)
    number, person = split_party(caller)
    calls = desk.lines(desk.store.calls(Filter(party=caller) if person else Filter(caller=number), limit=20))
    key = memory_key(desk.app.settings, desk.app.settings.agent_id, caller)
    facts = desk.app.facts.page(Wanted(key=key, with_retired=True, limit=50, of_group=True)) if key else []
    followups = desk.app.work.followups.page(limit=20, caller=number, party=caller if person else None)
    values = {
        "number": number,
        "guests": [] if person else desk.guests_at(number),
        "facts": facts,
        "followups": followups,
        "profile": profile,
        "mark": _mark(profile),
        "typed": typed,
        "briefing": briefing,
        "lines": calls,
        "pins": [(page, mark_of(page.pin)) for page in desk.app.pins.pages(key)] if key else [],
        "pin_typed": pin_typed or {},
        "has_pins": key is not None,
    }
    status = 200 if typed is None and not pin_typed else 409
    return desk.view.page(request, "person.html", status=status, caller=caller, name=desk.name_of(caller), **values)


def _save(person: Person, text: str, was: str) -> bool:
    """Write, unless somebody else wrote since the page was shown; the comparison happens under the file's lock."""
    if len(text) > LONGEST_PROFILE:
        raise RefusedInput("text", f"is longer than {LONGEST_PROFILE:,} characters")
    unchanged = True

    def replace(now: str | None) -> str | None:
        nonlocal unchanged
        unchanged = _mark(now or "") == was
        return text if unchanged else now

    files.edit(person.user, replace)
    return unchanged


def _mark(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def _files_of(desk: Desk, caller: str) -> Person:
    person = Workspace.of(desk.app.settings).person(caller)
    if person is None:
        raise RefusedInput("caller", "nobody is remembered here (memory scope `none`)")
    return person


def _known_number(caller: str) -> str:
    """Calls are kept by number, so that is what is exported and erased."""
    known = known_caller(caller)
    if split_party(known)[1]:
        raise RefusedInput("caller", "is one of those who speak from a phone; their calls are exported and erased with its number")
    return known


def known_caller(caller: str) -> str:
    """A number, or a person at one."""
    known = parse_party(caller)
    if known is None:
        raise RefusedInput("caller", "is withheld; nobody is remembered for it")
    return known
