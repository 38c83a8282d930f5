"""How pages are rendered: one environment that escapes everything, one way to answer, one set
of words for times and states.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta, tzinfo
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from aftercall import __version__
from aftercall.web.browser_auth import BrowserAuth

# Every asset is ours, no inline script or style, nobody frames us; sockets go back to where the
# page came from.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src "
    "'self'; connect-src 'self' {socket}; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
NAV = (
    ("/", "Today"),
    ("/calls", "Calls"),
    ("/people", "People"),
    ("/memory", "Memory"),
    ("/followups", "Work"),
    ("/tests", "Tests"),
    ("/phone", "Call your agent"),
    ("/settings", "Settings"),
)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class TemplateRenderer:
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
        filters = {
            "day": self.format_day,
            "clock": self.format_clock,
            "moment": self.format_moment,
            "offset": format_offset,
            "lasted": format_duration,
            "words": code_to_words,
        }
        self._templates.filters.update(filters)
        self._templates.globals.update(version=__version__, nav=NAV)

    def render_page(
        self, request: Request, template: str, *, status: int = 200, **values: Any
    ) -> HTMLResponse:
        """A whole page; the visit's cookie goes along, so that its forms can be believed."""
        visit = self.auth.read_session(request)
        text = self._templates.get_template(template).render(
            values
            | {
                "path": request.url.path,
                "csrf": self.auth.make_csrf_token(visit),
                "is_logged_in": visit.is_logged_in,
            }
        )
        response = HTMLResponse(
            text,
            status,
            headers=HEADERS | {"Content-Security-Policy": make_content_policy(request)},
        )
        self.auth.set_session_cookie(response, visit, is_https=request.url.scheme == "https")
        return response

    def render_fragment(self, template: str, values: Mapping[str, Any]) -> str:
        """A piece of a page, for what is sent while the page is open."""
        return self._templates.get_template(template).render(values)

    def format_day(self, at: datetime) -> str:
        local = at.astimezone(self._zone)
        return f"{local:%a} {local.day} {local:%b %Y}"

    def format_clock(self, at: datetime) -> str:
        return f"{at.astimezone(self._zone):%H:%M}"

    def format_moment(self, at: datetime) -> str:
        return f"{self.format_day(at)}, {self.format_clock(at)}"


def make_content_policy(request: Request) -> str:
    socket = "wss" if request.url.scheme == "https" else "ws"
    return _POLICY.format(socket=f"{socket}://{request.headers.get('host', '')}")


def format_offset(at: datetime, start: datetime) -> str:
    """How far into the call: `1:05`."""
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
