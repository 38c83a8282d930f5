"""Search everywhere: what was said, facts, requests and promises, and people.

People are found by a name or a part of their number, requests by their title, everything else
by the words of memory's search.

The filters are the address, and each shows as a chip that can be taken off.
"""

import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import Depends, Query, Request
from fastapi.responses import HTMLResponse

from aftercall.errors import RefusedInput
from aftercall.memory.fact_store import parse_as_of
from aftercall.memory.ranking import parse_query
from aftercall.memory.search import make_key_scope
from aftercall.memory.words import split_words, to_term
from aftercall.model.facts import memory_key
from aftercall.model.passages import Kind
from aftercall.web.page_store import parse_party
from aftercall.web.pages.context import PageContext
from aftercall.web.pages.people import list_people

MAX_HITS = 30
MAX_OTHERS = 8  # people and requests above the hits
SearchPart = Literal["", "people", "requests", "said", "facts"]
PARTS: dict[SearchPart, str] = {
    "": "everything",
    "people": "people",
    "requests": "requests and promises",
    "said": "what was said",
    "facts": "facts",
}
KINDS: dict[str, tuple[Kind, ...]] = {
    "": (),
    "said": ("turn", "summary"),
    "facts": ("fact",),
}
_WORD = re.compile(r"[\w'’]+")


@dataclass(frozen=True)
class TextPart:
    """A piece of a text; `is_hit` if it is one of the words looked for."""

    text: str
    is_hit: bool


def mark_words(text: str, query: str) -> list[TextPart]:
    """The text in pieces: words that match the query in any of their forms, and the rest."""
    terms = set(parse_query(query).terms)
    parts: list[TextPart] = []
    end = 0
    for match in _WORD.finditer(text):
        if any(to_term(word) in terms for word in split_words(match.group().lower())):
            parts += [
                TextPart(text[end : match.start()], is_hit=False),
                TextPart(match.group(), is_hit=True),
            ]
            end = match.end()
    return [part for part in (*parts, TextPart(text[end:], is_hit=False)) if part.text]


class EverythingQuery:
    """The words and the filters; an empty one does not filter."""

    def __init__(
        self,
        q: Annotated[str, Query(max_length=10_000)] = "",
        part: SearchPart = "",
        caller: Annotated[str, Query(max_length=200)] = "",
        since: Annotated[str, Query(max_length=40)] = "",
        until: Annotated[str, Query(max_length=40)] = "",
    ) -> None:
        self.q, self.part = q.strip(), part
        self.caller, self.since, self.until = caller.strip(), since, until

    def link(self, **changed: str) -> str:
        """The address with other filters."""
        fields = vars(self) | changed
        return f"/search?{urlencode({name: value for name, value in fields.items() if value})}"

    @property
    def chips(self) -> list[tuple[str, str]]:
        """What is filtered, and the address without it."""
        words = {"caller": "of ", "since": "since ", "until": "until "}
        return [
            (word + value, self.link(**{name: ""}))
            for name, word in words.items()
            if (value := getattr(self, name))
        ]


def add_routes(context: PageContext) -> None:
    """One search over words, facts, requests, people."""
    router = context.add_section("/search")

    @router.get("", response_class=HTMLResponse)
    def get_search(
        request: Request, asked: Annotated[EverythingQuery, Depends()]
    ) -> HTMLResponse:
        """Hits by kind, with the words marked."""
        found: dict[str, Any] = {"hits": [], "people": [], "rows": [], "problem": ""}
        if asked.q:
            try:
                found |= _search(context, asked)
            except RefusedInput as error:
                found["problem"] = str(error)
        return context.view.render_page(
            request,
            "search.html",
            asked=asked,
            find=asked.q,
            parts=PARTS,
            mark=partial(mark_words, query=asked.q),
            **found,
        )


def _search(context: PageContext, asked: EverythingQuery) -> dict[str, Any]:
    """A number counts as the words of its caller, so it finds what they said last."""
    app, settings = context.app, context.app.settings
    caller = parse_party(asked.caller or None)
    found: dict[str, Any] = {}
    if asked.part in ("", "people") and not caller:
        found["people"] = list_people(context, asked.q, MAX_OTHERS)
    if asked.part in ("", "requests"):
        limit = MAX_HITS if asked.part else MAX_OTHERS
        rows = app.work.followups.page(
            limit=limit, title=asked.q, caller=caller and caller.split("#")[0]
        )
        found["rows"] = rows
        found["times"] = context.store.list_call_times({row.call_id for row in rows})
    if asked.part in KINDS:
        key = memory_key(settings, settings.agent_id, caller) if caller else None
        scope = replace(
            make_key_scope(settings, settings.agent_id, key),
            kinds=KINDS[asked.part],
            since=_find_end("since", asked.since, context, days_before=1),
            before=_find_end("until", asked.until, context),
        )
        found["hits"] = app.search.find(asked.q, scope, limit=MAX_HITS)
    return found


def _find_end(
    name: str, text: str, context: PageContext, days_before: int = 0
) -> datetime | None:
    """The end of a day; `days_before`: of one that many days earlier."""
    if not text:
        return None
    end = parse_as_of(name, text, context.app.settings.zone)
    return end - timedelta(days=days_before)
