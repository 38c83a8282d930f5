"""What every page works with: the app, the page store, the templates and their filters."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from functools import cache, cached_property
from hashlib import blake2b
from importlib import resources
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from fastapi import APIRouter, Depends, Form, Query, Request
from fastapi.params import Depends as Dependency
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from aftercall import __version__
from aftercall.clock import format_duration, parse_instant
from aftercall.config import LoadedConfig
from aftercall.english.words import count_noun
from aftercall.journal.store import CallRow
from aftercall.model.followups import FollowUp
from aftercall.model.json_fields import Json
from aftercall.model.people import join_party, split_party
from aftercall.model.reading import Step
from aftercall.telemetry import KNOWN_LABELS
from aftercall.web.auth import BrowserAuth, get_session
from aftercall.web.figures import FigureStore
from aftercall.web.live_feed import LiveFeed
from aftercall.web.page_store import TROUBLE_STATES, PageStore
from aftercall.web.routes import add_section
from aftercall.web.users import Role, is_enough
from aftercall.work.requests import is_overdue
from aftercall.workspace import files, user_md
from aftercall.workspace.identity_md import find_call_name
from aftercall.workspace.paths import Workspace

if TYPE_CHECKING:
    from aftercall.app import App

WITHHELD = "withheld number"
# All assets are ours, there are no inline scripts or styles, framing is refused, and sockets
# connect only to the host of the page.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src "
    "'self'; connect-src 'self' {socket}; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_NAV: tuple[tuple[str, str, Role], ...] = (
    ("/", "Today", "viewer"),
    ("/calls", "Calls", "viewer"),
    ("/people", "People", "viewer"),
    ("/memory", "Memory", "viewer"),
    ("/followups", "Work", "viewer"),
    ("/tests", "Tests", "viewer"),
    ("/phone", "Call your agent", "operator"),
    ("/settings", "Settings", "admin"),
)
_HEADERS = {"Referrer-Policy": "same-origin"}
_HIDDEN = re.compile(r"•••(?:\W+•••)*")


# Steps of a call whose names say little to people at the pages.
STEP_TITLES = {
    "identity": "what the agent is called",
    "index": "search",
    "judge": "facts compared",
    "document": "notes",
    "pins": "topics",
}
DONE_COOKIE = "aftercall_done"
MAX_DONE = 50
FormText = Annotated[str, Form()]
FormIds = Annotated[list[str], Form(max_length=MAX_DONE)]
FilterText = Annotated[str, Query(max_length=200)]
_DONE = re.compile(r"([a-z]{1,20})\.((?:[0-9A-Z]{26},?){0,50})\.([0-9]{1,3})")


class Done(NamedTuple):
    """What a person has just done at the pages: to which things, and how many were refused.

    It travels in a cookie to the next page. It holds ids only, because cookies are sent to the
    server with every request and may end up in logs of proxies.
    """

    deed: str
    ids: tuple[str, ...] = ()
    refused: int = 0


def read_done(request: Request) -> Done | None:
    found = _DONE.fullmatch(request.cookies.get(DONE_COOKIE, ""))
    if found is None:
        return None
    return Done(found[1], tuple(filter(None, found[2].split(","))), int(found[3]))


class TemplateRenderer:
    """Renders templates; escapes every value."""

    def __init__(
        self, auth: BrowserAuth, zone: tzinfo, describe_done: Callable[[Done], Any]
    ) -> None:
        self.auth = auth
        self._describe_done = describe_done
        self._zone = zone
        self._templates = Environment(
            loader=PackageLoader("aftercall.web"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._templates.filters.update(
            day=self.format_day,
            due_day=self.format_due,
            clock=self.format_clock,
            moment=self.format_moment,
            short_moment=self.format_short_moment,
            offset=format_offset,
            lasted=format_span,
            seconds=format_duration,
            counted=count_noun,
            words=code_to_words,
            step_title=lambda name: STEP_TITLES.get(name, name),
            line_name=name_line,
            coded=mark_code,
            instant=parse_instant,
        )
        self._templates.globals.update(version=__version__, asset=find_asset)

    def render_page(
        self, request: Request, template: str, *, status: int = 200, **values: Any
    ) -> HTMLResponse:
        """A whole page; sets the session cookie that the CSRF token of its forms belongs to.

        Says once what the person at the browser has just done.
        """
        session = get_session(request)
        login = getattr(request.state, "login", None)
        role = login.role if login else None
        is_whole = not template.startswith("parts/")
        done = read_done(request) if is_whole else None
        values |= {
            "path": request.url.path,
            "csrf": self.auth.make_csrf_token(session),
            "login": session.login,
            "nav": [item for item in _NAV if is_enough(role, item[2])],
            "can_work": is_enough(role, "operator"),
            "can_admin": is_enough(role, "admin"),
            "done": self._describe_done(done) if done else None,
        }
        text = self.render_fragment(template, values)
        headers = _HEADERS | {"Content-Security-Policy": _make_content_policy(request)}
        response = HTMLResponse(text, status, headers=headers)
        if session.is_new:
            self.auth.set_session_cookie(request, response, session.id)
        if done:
            response.delete_cookie(DONE_COOKIE)
        return response

    def add_global(self, name: str, value: Callable[..., Any]) -> None:
        """A function that every template may call."""
        self._templates.globals[name] = value

    def render_error(self, request: Request, status: int, message: str) -> HTMLResponse:
        """A page for an error; asks nothing that may have failed, such as the database."""
        values = {
            "path": request.url.path,
            "csrf": "",
            "login": None,
            "nav": _NAV,
            "done": None,
            "status": status,
            "message": message,
        }
        headers = _HEADERS | {"Content-Security-Policy": _make_content_policy(request)}
        text = self.render_fragment("error.html", values)
        return HTMLResponse(text, status, headers=headers)

    def render_fragment(self, template: str, values: Json) -> str:
        """A piece of a page, for an open page to insert."""
        return self._templates.get_template(template).render(values)

    def format_day(self, at: datetime) -> str:
        local = at.astimezone(self._zone)
        return f"{local:%a} {local.day} {local:%b %Y}"

    def format_due(self, due: str) -> str:
        """A day, or an instant."""
        if "T" in due:
            return self.format_moment(parse_instant(due))
        day = date.fromisoformat(due)
        return f"{day:%a} {day.day} {day:%b %Y}"

    def format_clock(self, at: datetime) -> str:
        return f"{at.astimezone(self._zone):%H:%M}"

    def format_moment(self, at: datetime) -> str:
        return f"{self.format_day(at)}, {self.format_clock(at)}"

    def format_short_moment(self, at: datetime) -> str:
        """For the axis of a chart."""
        local = at.astimezone(self._zone)
        return f"{local.day} {local:%b %H:%M}"


@dataclass(frozen=True)
class PageContext:
    """What every page needs: who looks, in which zone, with which rights."""

    app: "App"
    pages: APIRouter
    view: TemplateRenderer
    store: PageStore
    feed: LiveFeed
    loaded: LoadedConfig | None = None

    @cached_property
    def figures(self) -> FigureStore:
        return FigureStore(self.app.database, self.app.settings.zone)

    def add_section(self, prefix: str = "") -> APIRouter:
        """A router of pages that need access."""
        return add_section(self.pages, prefix, self.require("viewer"))

    def require(self, role: Role) -> list[Dependency]:
        """The dependencies of a route that needs this role."""
        return [Depends(self.view.auth.require(role))]

    def answer_done(
        self, to: str, deed: str, ids: Sequence[str] = (), refused: int = 0
    ) -> RedirectResponse:
        """Leads to a page of ours, which says what was done."""
        response = RedirectResponse(to_own_path(to), 303)
        response.set_cookie(
            DONE_COOKIE,
            f"{deed}.{','.join(ids[:MAX_DONE])}.{min(refused, 999)}",
            max_age=60,
            httponly=True,
            samesite="lax",
            secure=self.view.auth.is_public_https,
        )
        return response

    def find_name(self, caller: str | None) -> str | None:
        """What the caller likes to be called, from their USER.md."""
        return find_call_name(self.app.settings, caller)

    def find_title(self, party: str | None) -> str:
        """A name; the number of a person who has none, or of several who have one each."""
        if party is None or split_party(party)[1]:
            return self.find_name(party) or party or WITHHELD
        name, *others = self.find_names(party) or [party]
        return party if others and not self.find_name(party) else name

    def find_names(self, number: str) -> list[str]:
        """Of all who call from a number, its owner first."""
        others = [name for _, name in self.find_other_speakers(number)]
        return [name for name in (self.find_name(number), *others) if name]

    def find_named(self, words: str) -> set[str]:
        """The numbers of people in whose USER.md a name holds these words."""
        workspace = Workspace.from_settings(self.app.settings)
        wanted = words.casefold()
        found = set()
        for number, page in workspace.list_user_pages():
            text = files.read_copy(page) or ""
            if wanted in text.casefold():
                known = user_md.parse(text)
                names = f"{known.name or ''}\n{known.call_name or ''}"
                if wanted in names.casefold():
                    found.add(number)
        return found

    def find_other_speakers(self, number: str) -> list[tuple[str, str]]:
        """Other persons who call from this number: each as a party, and by name."""
        persons = Workspace.from_settings(self.app.settings).list_other_persons(number)
        parties = [join_party(number, person) for person in persons]
        return [
            (party, self.find_name(party) or split_party(party)[1]) for party in parties
        ]

    def get_local_now(self) -> datetime:
        """In the zone of the pages, by whose days a thing is late."""
        return self.app.clock.now().astimezone(self.app.settings.zone)

    def is_overdue(self, row: FollowUp) -> bool:
        """Whether its day passed while it was known here; a call may be handed in later."""
        is_left = row.standing == "noted" or row.state in (
            "held",
            "open",
            *TROUBLE_STATES,
        )
        today = self.get_local_now().date()
        return is_left and is_overdue(row, today, self.app.settings.zone)

    def describe_rows(self, rows: Sequence[FollowUp]) -> Json:
        """What a list of follow-ups shows beside them: call times, and what it does not show."""
        return {
            "times": self.store.list_call_times({row.call_id for row in rows}),
            "guarded": self.store.list_guarded(rows),
        }

    def hide_private(self, steps: Mapping[str, Sequence[Step]]) -> dict[str, str]:
        """The summaries of some calls for a list, without what was told as private."""
        private = self.app.facts.list_words_in_calls([*steps], ("private",))
        found = {call_id: find_summary(one) for call_id, one in steps.items()}
        for words in sorted(private, key=len, reverse=True):
            for call_id, summary in found.items():
                found[call_id] = summary.replace(words, "•••") if words else summary
        return {one: _HIDDEN.sub("(private)", shown) for one, shown in found.items()}

    def make_listings(self, rows: list[CallRow]) -> list["CallListing"]:
        steps = self.store.list_steps([row.live.id for row in rows])
        names = {party: self.find_name(party) for party in {row.party for row in rows}}
        legs = [row.live.conversation for row in rows]
        to_do = self.store.count_to_do(conversations=legs)
        summaries = self.hide_private(steps)
        return [
            CallListing(
                row,
                names[row.party],
                tuple(steps[row.live.id]),
                summaries[row.live.id],
                to_do[row.live.id],
            )
            for row in rows
        ]


@dataclass(frozen=True)
class CallListing:
    """A call in a list: caller, summary, and the state of its steps."""

    row: CallRow
    name: str | None
    steps: tuple[Step, ...]
    listed: str
    """The summary as a list shows it."""
    to_do: int

    @property
    def title(self) -> str:
        return self.name or self.row.live.caller or WITHHELD

    @property
    def summary(self) -> str:
        return find_summary(self.steps)

    @property
    def told(self) -> str:
        """The summary, or why there is none."""
        waits = {"live": "On the phone now.", "working": "Being read…"}
        return self.listed or waits.get(self.status, "No summary.")

    @property
    def told_status(self) -> str:
        """How far the reading is, not the work that it found."""
        told = {"live": "on the phone", "working": "being read", "done": "read"}
        return told.get(self.status, "not wholly read: a step failed")

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


def find_summary(steps: Sequence[Step]) -> str:
    for step in steps:
        if step.name == "summary" and step.state == "done":
            return step.result or ""
    return ""


@cache
def find_asset(name: str) -> str:
    """The address of a file that we serve; another one whenever the file changes."""
    file = resources.files("aftercall.web") / "static" / name
    digest = blake2b(file.read_bytes(), digest_size=6).hexdigest()
    return f"/static/{name}?v={digest}"


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


def format_span(span: timedelta) -> str:
    return format_duration(span.total_seconds())


def mark_code(text: str) -> Markup:
    """Text with code in backticks, as HTML."""
    parts = escape(text).split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    marked = (f"<code>{one}</code>" if n % 2 else one for n, one in enumerate(parts))
    return Markup("".join(marked))  # noqa: S704 - escaped above


def name_line(source: str) -> str:
    """The carrier, platform or page of a call; a name of others means little to readers."""
    return source if source in KNOWN_LABELS["source"].split() else "handed in"


def code_to_words(code: str) -> str:
    """`caller_hung_up` → `caller hung up`"""
    return code.replace("_", " ")
