"""What every page works with: the app, the page store, the templates and their filters."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from aftercall import __version__
from aftercall.config import LoadedConfig
from aftercall.journal.store import CallRow
from aftercall.model.people import join_party, split_party
from aftercall.model.steps import Step
from aftercall.web.auth import BrowserAuth, get_session
from aftercall.web.page_store import LiveFeed, PageStore
from aftercall.workspace.identity_md import find_call_name
from aftercall.workspace.paths import Workspace

if TYPE_CHECKING:
    from aftercall.app import App

WITHHELD = "withheld number"
WHO = "the pages"
# All assets are ours, there are no inline scripts or styles, framing is refused, and sockets
# connect only to the host of the page.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src "
    "'self'; connect-src 'self' {socket}; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_NAV = (
    ("/", "Today"),
    ("/calls", "Calls"),
    ("/people", "People"),
    ("/memory", "Memory"),
    ("/followups", "Work"),
    ("/tests", "Tests"),
    ("/phone", "Call your agent"),
    ("/settings", "Settings"),
)
_HEADERS = {"Referrer-Policy": "same-origin"}


class TemplateRenderer:
    """Renders templates; escapes every value."""

    def __init__(self, auth: BrowserAuth, zone: tzinfo) -> None:
        self.auth = auth
        self._zone = zone
        self._templates = Environment(
            loader=PackageLoader("aftercall.web"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters.update(
            day=self.format_day,
            clock=self.format_clock,
            moment=self.format_moment,
            offset=format_offset,
            lasted=format_duration,
            words=code_to_words,
        )
        self._templates.globals.update(version=__version__, nav=_NAV)

    def render_page(
        self, request: Request, template: str, *, status: int = 200, **values: Any
    ) -> HTMLResponse:
        """A whole page; sets the session cookie that the CSRF token of its forms belongs to."""
        session = get_session(request)
        values |= {
            "path": request.url.path,
            "csrf": self.auth.make_csrf_token(session),
            "is_logged_in": session.is_logged_in,
        }
        text = self.render_fragment(template, values)
        headers = _HEADERS | {"Content-Security-Policy": _make_content_policy(request)}
        response = HTMLResponse(text, status, headers=headers)
        if session.is_new:
            self.auth.set_session_cookie(request, response, session.id)
        return response

    def render_fragment(self, template: str, values: Mapping[str, Any]) -> str:
        """A piece of a page, for an open page to insert."""
        return self._templates.get_template(template).render(values)

    def format_day(self, at: datetime) -> str:
        local = at.astimezone(self._zone)
        return f"{local:%a} {local.day} {local:%b %Y}"

    def format_clock(self, at: datetime) -> str:
        return f"{at.astimezone(self._zone):%H:%M}"

    def format_moment(self, at: datetime) -> str:
        return f"{self.format_day(at)}, {self.format_clock(at)}"


@dataclass(frozen=True)
class PageContext:
    app: "App"
    view: TemplateRenderer
    store: PageStore
    feed: LiveFeed
    loaded: LoadedConfig | None = None

    def make_router(self, prefix: str = "") -> APIRouter:
        """A router of pages that need access and stay out of the API reference."""
        access = [Depends(self.view.auth.require_access)]
        return APIRouter(prefix=prefix, dependencies=access, include_in_schema=False)

    def find_name(self, caller: str | None) -> str | None:
        """What the caller likes to be called, from their USER.md."""
        return find_call_name(self.app.settings, caller)

    def find_other_speakers(self, number: str) -> list[tuple[str, str]]:
        """Other persons who call from this number: each as a party, and by name."""
        persons = Workspace.from_settings(self.app.settings).list_other_persons(number)
        parties = [join_party(number, person) for person in persons]
        return [
            (party, self.find_name(party) or split_party(party)[1]) for party in parties
        ]

    def make_listings(self, rows: list[CallRow]) -> list["CallListing"]:
        steps = self.store.list_steps([row.live.id for row in rows])
        names = {party: self.find_name(party) for party in {row.party for row in rows}}
        return [
            CallListing(row, names[row.party], tuple(steps[row.live.id]))
            for row in rows
        ]


@dataclass(frozen=True)
class CallListing:
    """A call in a list: caller, summary, and the state of its steps."""

    row: CallRow
    name: str | None
    steps: tuple[Step, ...]

    @property
    def title(self) -> str:
        return self.name or self.row.live.caller or WITHHELD

    @property
    def summary(self) -> str:
        for step in self.steps:
            if step.name == "summary" and step.state == "done":
                return step.result or ""
        return ""

    @property
    def status(self) -> str:
        """One word for the state, which is also its CSS class."""
        states = {step.state for step in self.steps}
        if self.row.state == "live":
            return "live"
        if "failed" in states:
            return "failed"
        if self.row.state != "sealed" or not states or states & {"waiting", "running"}:
            return "working"
        return "done"


def to_own_path(to: str) -> str:
    """Refuses `//elsewhere` and `/\\elsewhere`, which browsers read as other hosts."""
    return to if to.startswith("/") and not to.startswith(("//", "/\\")) else "/"


def _make_content_policy(request: Request) -> str:
    """A proxy may speak https for us, so either scheme may be the page's."""
    host = request.headers.get("host", "")
    return _POLICY.format(socket=f"ws://{host} wss://{host}")


def format_offset(at: datetime, start: datetime) -> str:
    """Time into the call: `1:05`."""
    seconds = max(0, int((at - start).total_seconds()))
    return f"{seconds // 60}:{seconds % 60:02}"


def format_duration(span: timedelta) -> str:
    seconds = max(0, int(span.total_seconds()))
    if seconds >= 3600:
        return f"{seconds // 3600} h {seconds % 3600 // 60} min"
    return f"{seconds // 60} min {seconds % 60} s" if seconds >= 60 else f"{seconds} s"


def code_to_words(code: str) -> str:
    """`caller_hung_up` → `caller hung up`"""
    return code.replace("_", " ")
