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
from aftercall.memory.fact_store import FactFilter
from aftercall.memory.pins.board import hash_note
from aftercall.memory.visibility import memory_key
from aftercall.model.people import split_party
from aftercall.web.page_store import CallFilter
from aftercall.web.pages.context import WHO, PageContext
from aftercall.web.queries import parse_caller, parse_party
from aftercall.workspace import files
from aftercall.workspace.paths import Workspace, WorkspacePerson

PAGE_SIZE = 50
MAX_PROFILE_CHARS = 200_000


def make_router(context: PageContext) -> APIRouter:
    router = APIRouter(
        prefix="/people",
        dependencies=[Depends(context.view.auth.require_access)],
        include_in_schema=False,
    )

    @router.get("", response_class=HTMLResponse)
    def get_people(
        request: Request, page: Annotated[int, Query(ge=1, le=10_000)] = 1
    ) -> HTMLResponse:
        people = context.store.list_people(limit=PAGE_SIZE, offset=(page - 1) * PAGE_SIZE)
        named = [
            (person, context.find_name(person.caller), context.find_other_speakers(person.caller))
            for person in people
        ]
        return context.view.render_page(
            request, "people.html", people=named, page=page, is_last=len(people) < PAGE_SIZE
        )

    @router.get("/{caller}", response_class=HTMLResponse)
    def get_person(request: Request, caller: str) -> HTMLResponse:
        return show_person(context, request, parse_known_party(caller))

    @router.post(
        "/{caller}/profile", dependencies=[Depends(context.view.auth.require_change_access)]
    )
    async def post_profile(
        request: Request, caller: str, text: Annotated[str, Form()], was: Annotated[str, Form()]
    ) -> Response:
        """The markdown as it was typed; if the file changed meanwhile, nothing is written and
        both are shown.
        """
        known = parse_known_party(caller)
        person = _files_of(context, known)
        written = await run_in_threadpool(_save, person, text.replace("\r\n", "\n"), was)
        if not written:
            return await run_in_threadpool(show_person, context, request, known, typed=text)
        await run_in_threadpool(context.app.audit.record, WHO, "edited", "a profile")
        return RedirectResponse(request.url_for("get_person", caller=known).path + "?saved=1", 303)

    @router.post(
        "/{caller}/export", dependencies=[Depends(context.view.auth.require_change_access)]
    )
    async def post_export(caller: str) -> Response:
        """Everything about them as one archive to download; secrets stay closed."""
        packed = await run_in_threadpool(_pack, context, _known_number(caller))
        return Response(
            packed,
            media_type="application/zip",
            headers={"Content-Disposition": 'attachment; filename="caller.zip"'},
        )

    @router.post("/{caller}/erase", dependencies=[Depends(context.view.auth.require_change_access)])
    async def post_erase(request: Request, caller: str, typed: Annotated[str, Form()]) -> Response:
        """Whoever types the number means it."""
        known = _known_number(caller)
        if parse_caller(typed) != known:
            raise RefusedInput("typed", "is not the number of this caller; nothing was erased")
        receipt = await run_in_threadpool(context.app.eraser.erase, known)
        return context.view.render_page(request, "erased.html", receipt=receipt)

    return router


def _pack(context: PageContext, caller: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        made = context.app.exporter.export(caller, Path(folder) / "caller")
        return Path(shutil.make_archive(f"{folder}/packed", "zip", made.folder)).read_bytes()


def show_person(
    context: PageContext,
    request: Request,
    caller: str,
    typed: str | None = None,
    pin_typed: Mapping[str, str] | None = None,
) -> HTMLResponse:
    """`typed` and `pin_typed` are words that could not be saved, because somebody else wrote
    meanwhile.
    """
    profile = files.read(_files_of(context, caller).user) or ""
    briefing = render(context.app.composer.preview(caller), context.app.settings.zone)
    number, person = split_party(caller)
    calls = context.make_listings(
        context.store.list_calls(
            CallFilter(party=caller) if person else CallFilter(caller=number), limit=20
        )
    )
    key = memory_key(context.app.settings, context.app.settings.agent_id, caller)
    facts = (
        context.app.facts.page(
            FactFilter(key=key, include_retired=True, limit=50, include_group=True)
        )
        if key
        else []
    )
    followups = context.app.work.followups.page(
        limit=20, caller=number, party=caller if person else None
    )
    values = {
        "number": number,
        "guests": [] if person else context.find_other_speakers(number),
        "facts": facts,
        "followups": followups,
        "profile": profile,
        "mark": _content_hash(profile),
        "typed": typed,
        "briefing": briefing,
        "lines": calls,
        "pins": [(page, hash_note(page.pin)) for page in context.app.pins.list_pages(key)]
        if key
        else [],
        "pin_typed": pin_typed or {},
        "has_pins": key is not None,
    }
    status = 200 if typed is None and not pin_typed else 409
    return context.view.render_page(
        request,
        "person.html",
        status=status,
        caller=caller,
        name=context.find_name(caller),
        **values,
    )


def _save(person: WorkspacePerson, text: str, was: str) -> bool:
    """Write, unless somebody else wrote since the page was shown; the comparison happens under
    the file's lock.
    """
    if len(text) > MAX_PROFILE_CHARS:
        raise RefusedInput("text", f"is longer than {MAX_PROFILE_CHARS:,} characters")
    unchanged = True

    def replace(now: str | None) -> str | None:
        nonlocal unchanged
        unchanged = _content_hash(now or "") == was
        return text if unchanged else now

    files.edit(person.user, replace)
    return unchanged


def _content_hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def _files_of(context: PageContext, caller: str) -> WorkspacePerson:
    person = Workspace.from_settings(context.app.settings).find_person(caller)
    if person is None:
        raise RefusedInput("caller", "nobody is remembered here (memory scope `none`)")
    return person


def _known_number(caller: str) -> str:
    """Calls are kept by number, so that is what is exported and erased."""
    known = parse_known_party(caller)
    if split_party(known)[1]:
        raise RefusedInput(
            "caller",
            "is one of those who speak from a phone; their calls are exported and erased with "
            "its number",
        )
    return known


def parse_known_party(caller: str) -> str:
    """A number, or a person at one."""
    known = parse_party(caller)
    if known is None:
        raise RefusedInput("caller", "is withheld; nobody is remembered for it")
    return known
