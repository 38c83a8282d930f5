"""The pages around the data: login, settings, the softphone, and the API reference."""

import json
import re
from functools import partial
from itertools import groupby
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from aftercall.config import (
    PAGE_FILE,
    PAGE_ORIGIN,
    PAGE_SETTINGS,
    LoadedConfig,
    change_page_settings,
    describe_settings,
    read_page_settings,
)
from aftercall.disk import replace_synced
from aftercall.doctor import run_checks
from aftercall.errors import RefusedInput
from aftercall.log import get_logger
from aftercall.model.json_fields import Json
from aftercall.service_checks import list_webhooks
from aftercall.web.auth import SESSION_COOKIE, Who, get_session
from aftercall.web.page_store import CallFilter
from aftercall.web.pages.context import FormText, PageContext, to_own_path
from aftercall.web.routes import add_section
from aftercall.web.users import ROLES, PageUser, hash_password
from aftercall.workspace import files
from aftercall.workspace.paths import find_root
from aftercall.workspace.revisions import RevisionStore

TOKEN_PATHS = ("/api/", "/v1/")  # what the API page can try
LOGIN_REFUSED = "That is neither the token nor the password."
INVITATION_REFUSED = (
    "This invitation was used or is too old; ask for a new one on the settings page."
)
LINK_REFUSED = (
    "This link was used or is too old; `aftercall token --link` prints a new one."
)

log = get_logger("pages")


def add_routes(context: PageContext) -> None:
    _add_login(context)
    _add_users(context)
    _add_site(context)


def _add_login(context: PageContext) -> None:
    """Login, logout, and the links that log in once."""
    auth = context.view.auth
    router = add_section(context.pages, dependencies=[Depends(auth.load_session)])

    def show_login(
        request: Request, to: str, problem: str = "", status: int = 200
    ) -> HTMLResponse:
        return context.view.render_page(
            request, "login.html", status=status, to=to, problem=problem
        )

    @router.get("/login", response_class=HTMLResponse)
    async def get_login(request: Request, to: str = "/", code: str = "") -> Response:
        """The form; with the code of a link, the login itself."""
        target = to_own_path(to)
        if not code:
            return show_login(request, target)
        session_id = await run_in_threadpool(auth.sessions.use_link, code)
        if session_id is None:
            log.warning("login link refused")
            return show_login(request, target, LINK_REFUSED, 401)
        response = RedirectResponse(target, 303)
        auth.set_login_cookies(request, response, session_id)
        return response

    @router.post("/login", dependencies=[Depends(auth.check_csrf)])
    async def post_login(
        request: Request,
        secret: Annotated[str, Form(max_length=1_000)],
        name: Annotated[str, Form(max_length=200)] = "",
        to: FormText = "/",
    ) -> Response:
        """A password, or the name and password of an invited person."""
        target = to_own_path(to)
        session_id = await auth.log_in(request, secret, name)
        if session_id is None:
            log.warning("login refused")
            return show_login(request, target, LOGIN_REFUSED, 401)
        response = RedirectResponse(target, 303)
        auth.set_login_cookies(request, response, session_id)
        return response

    @router.post("/logout", dependencies=[Depends(auth.check_csrf)])
    async def post_logout(request: Request) -> RedirectResponse:
        await run_in_threadpool(auth.sessions.end, get_session(request).id)
        return _redirect_logged_out()

    @router.post("/logout/everywhere", dependencies=context.require("admin"))
    async def post_logout_everywhere() -> RedirectResponse:
        await run_in_threadpool(auth.sessions.end_all)
        return _redirect_logged_out()

    _add_join_routes(router, context)


def _add_join_routes(router: APIRouter, context: PageContext) -> None:
    """An invitation is used by a form: what only looks at links does not use it up."""
    auth = context.view.auth

    async def show(request: Request, code: str, problem: str = "") -> HTMLResponse:
        login = await run_in_threadpool(auth.sessions.find_login, code, "invitation")
        status = 401 if login is None else 422 if problem else 200
        return context.view.render_page(
            request,
            "join.html",
            status=status,
            invited=login,
            code=code,
            problem=problem or ("" if login else INVITATION_REFUSED),
            roles=ROLES,
        )

    @router.get("/join", response_class=HTMLResponse)
    async def get_join(request: Request, code: str = "") -> HTMLResponse:
        return await show(request, code)

    @router.post("/join", dependencies=[Depends(auth.check_csrf)])
    async def post_join(
        request: Request,
        code: Annotated[str, Form(max_length=100)],
        password: Annotated[str, Form(max_length=1_000)],
    ) -> Response:
        """An invited person chooses a password; the link works once."""
        if await run_in_threadpool(auth.sessions.find_login, code, "invitation"):
            try:
                hashed = await run_in_threadpool(hash_password, password)
            except RefusedInput as error:
                return await show(request, code, str(error))
            use = partial(auth.sessions.use_invitation, code, hashed)
            if session_id := await run_in_threadpool(use):
                response = RedirectResponse("/", 303)
                auth.set_login_cookies(request, response, session_id)
                return response
        return await show(request, code)


def _add_users(context: PageContext) -> None:
    """People with access: invited, given a role, removed."""
    auth = context.view.auth
    router = add_section(context.pages, "/users", context.require("admin"))

    def invite(request: Request, user: PageUser) -> HTMLResponse:
        """Makes a link for a person with a role."""
        code = auth.sessions.make_invitation(user.id)
        public = context.app.settings.public_url or ""
        base = public if public.startswith("https:") else str(request.base_url)
        link = f"{base.rstrip('/')}/join?code={code}"
        return context.view.render_page(
            request, "invited.html", user=user, link=link, roles=ROLES
        )

    @router.post("", response_class=HTMLResponse)
    async def post_user(
        who: Who,
        request: Request,
        name: Annotated[str, Form(max_length=200)],
        role: FormText,
    ) -> HTMLResponse:
        """Adds a person with a role, and shows the link to send them."""
        user = await run_in_threadpool(auth.users.add, name, role, who)
        return await run_in_threadpool(invite, request, user)

    @router.post("/{user_id}/link", response_class=HTMLResponse)
    async def post_link(request: Request, user_id: str) -> HTMLResponse:
        """A new invitation, for a user who has lost the first or their password."""
        user = await run_in_threadpool(auth.users.get, user_id)
        return await run_in_threadpool(invite, request, user)

    @router.post("/{user_id}/role")
    async def post_role(who: Who, user_id: str, role: FormText) -> RedirectResponse:
        await run_in_threadpool(auth.users.change_role, user_id, role, who)
        return context.answer_done("/settings", "changed")

    @router.post("/{user_id}/remove")
    async def post_remove(who: Who, user_id: str) -> RedirectResponse:
        await run_in_threadpool(auth.users.remove, user_id, who)
        return context.answer_done("/settings", "removed")


def _add_site(context: PageContext) -> None:
    """Settings, checks, the audit log and the reference of the API."""
    router = context.add_section()
    settings = context.app.settings
    loaded = context.loaded or LoadedConfig(
        settings, describe_settings(settings, {}), ()
    )

    admin = context.require("admin")
    operate = context.require("operator")

    @router.get("/settings", response_class=HTMLResponse, dependencies=admin)
    def get_settings(request: Request, who: str = "") -> HTMLResponse:
        """What is set and from where; secrets are hidden."""
        sections = groupby(loaded.values, lambda value: _section(value.key))
        return context.view.render_page(
            request,
            "settings.html",
            audit=context.app.audit.list_recent(who=who),
            who=who,
            people=context.app.audit.list_people(),
            users=context.view.auth.users.list_all(),
            roles=ROLES,
            changeable=_list_changeable(loaded),
            sections=[(name, list(values)) for name, values in sections],
            webhooks=list_webhooks(settings),
            checks=list(run_checks(loaded)),
            conflicts=_read_conflicts(context),
        )

    @router.post("/settings", dependencies=admin)
    async def post_setting(
        who: Who,
        key: Annotated[str, Form(max_length=100)],
        value: Annotated[str, Form(max_length=2_000)] = "",
    ) -> RedirectResponse:
        """For the next start: settings are read once."""
        text = await run_in_threadpool(change_page_settings, settings, key, value)
        file = settings.home / PAGE_FILE
        await run_in_threadpool(replace_synced, file, text.encode())
        await run_in_threadpool(context.app.audit.record, who, "set", key)
        return context.answer_done("/settings", "saved")

    @router.get("/phone", response_class=HTMLResponse, dependencies=operate)
    def get_phone(who: Who, request: Request) -> HTMLResponse:
        """A softphone in the page, over `WS /browser/audio` and `WS /browser/call`."""
        engine = settings.voice_engine if context.app.phone.voice_parts else ""
        identity = settings.owner or _make_web_address(who)
        return context.view.render_page(
            request, "phone.html", identity=identity, engine=engine
        )

    @router.get("/docs", response_class=HTMLResponse)
    def get_docs(request: Request) -> HTMLResponse:
        """The API reference from the OpenAPI schema; loads nothing from elsewhere."""
        groups = _operations_by_tag(request.app.openapi())
        return context.view.render_page(request, "docs.html", groups=groups)


def _make_web_address(who: str) -> str:
    """As whom a person at the pages calls, so that the next call knows them."""
    name = re.sub(r"[^a-z0-9]+", "-", who.lower().removeprefix("the ")).strip("-")
    return f"web:{name or 'me'}"


def _redirect_logged_out() -> RedirectResponse:
    response = RedirectResponse("/login", 303)
    response.delete_cookie(SESSION_COOKIE)
    return response


def _read_conflicts(context: PageContext) -> list[tuple[str, str]]:
    """Every page that keeps what could not be merged."""
    root = find_root(context.app.settings)
    paths = RevisionStore(context.app.database).list_conflicts()
    return [(path, files.read(root / path) or "") for path in paths]


def _list_changeable(loaded: LoadedConfig) -> list[Json]:
    """The settings that the page changes, with what is typed there and what counts now."""
    typed = read_page_settings(loaded.settings.home)
    found = []
    for value in loaded.values:
        if value.key in PAGE_SETTINGS:
            was_typed = value.origin == PAGE_ORIGIN
            now = value.shown if was_typed else ""
            found.append(
                {
                    "value": value,
                    "typed": typed.get(value.key, ""),
                    "is_from_env": value.origin == value.env,
                    "waits": bool(typed.get(value.key)) != was_typed
                    or (was_typed and typed[value.key] != now),
                }
            )
    return found


def list_first_steps(context: PageContext) -> list[tuple[bool, str, str]]:
    """What is left to do until the first real call: done or not, what, and where.

    Nothing once a call has come from a carrier or a platform.
    """
    settings = context.app.settings
    if context.store.has_call_from_outside():
        return []
    has_carrier = any(
        (
            settings.twilio.auth_token,
            settings.telnyx.public_key,
            settings.elevenlabs.webhook_secret,
            settings.vapi.webhook_secret,
            settings.retell.api_key,
            settings.bland.webhook_secret,
        )
    )
    has_call = bool(context.store.list_calls(CallFilter(), limit=1))
    hooks = "/settings#hooks-title"
    has_address = bool(settings.public_url)
    return [
        (has_call, "Call your agent from this browser", "/phone"),
        (has_address, "Set the address that carriers see", hooks),
        (has_carrier, "Set the keys of your carrier or platform", "/settings"),
        (False, "Paste the addresses at your carrier and ring your number", hooks),
    ]


def _section(key: str) -> str:
    return key.partition(".")[0] if "." in key else ""


async def redirect_to_login(request: Request, _: Exception) -> Response:
    """After the login, the browser returns to the page it asked for."""
    wanted = request.url.path if request.method == "GET" else "/"
    return RedirectResponse(f"/login?{urlencode({'to': wanted})}", 303)


def _operations_by_tag(schema: Json) -> dict[str, list[Json]]:
    """The routes of the API in the order of its reference."""
    groups: dict[str, list[Json]] = {}
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            responses = operation["responses"].items()
            shown = {
                "id": operation["operationId"],
                "method": method.upper(),
                "path": path,
                "summary": operation.get("summary", ""),
                "description": operation.get("description", ""),
                "parameters": [
                    parameter
                    for parameter in operation.get("parameters", [])
                    if parameter["in"] in ("path", "query")
                ],
                "takes_token": path.startswith(TOKEN_PATHS),
                "example": _make_example(schema, operation),
                "answers": {code: answer["description"] for code, answer in responses},
            }
            tag = operation.get("tags", ["other"])[0]
            groups.setdefault(tag, []).append(shown)
    return groups


def _make_example(schema: Json, operation: Json) -> str:
    """A body to begin with: the required fields, empty; nothing if the route takes no JSON."""
    content = operation.get("requestBody", {}).get("content", {})
    body = content.get("application/json", {}).get("schema")
    if body is None:
        return ""
    if name := body.get("$ref"):
        body = schema["components"]["schemas"][name.rpartition("/")[2]]
    empty = {"array": [], "integer": 1, "object": {}, "boolean": False}
    fields = {
        name: empty.get(body["properties"][name].get("type", ""), "")
        for name in body.get("required", body["properties"])
    }
    return json.dumps(fields, indent=2)
