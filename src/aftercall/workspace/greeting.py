"""NEXT_GREETING.txt: the sentence that opens a caller's next call. Left after a call, taken once, gone after 30 days."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from aftercall.clock import Clock
from aftercall.errors import WorkspaceError
from aftercall.log import get_logger
from aftercall.model.salutation import addressed_name, use_present_name
from aftercall.workspace import files, user_md
from aftercall.workspace.paths import Person
from aftercall.workspace.spoken import cut, first_sentence, strip_unspoken
from aftercall.workspace.user_md import UserProfile
from aftercall.workspace.values import bare_value, readable

LONGEST = 200
LIFETIME = timedelta(days=30)

T = TypeVar("T")

_log = get_logger("workspace")


def clean_greeting(text: str) -> str | None:
    """One sentence of at most 200 characters without quotes or emoji; None if nothing is left to say."""
    spoken = strip_unspoken(bare_value(text.lstrip("#> \t\r\n"))[: 10 * LONGEST])
    greeting = cut(first_sentence(spoken), LONGEST)
    return greeting if any(mark.isalnum() for mark in greeting) else None


def leave(person: Person, text: str, now: datetime) -> str | None:
    """Keep a greeting for the next call, in place of one that was never used. The file's date is the greeting's."""
    greeting = clean_greeting(text)
    if greeting:
        files.put(person.greeting, greeting + "\n", now)
    return greeting


def take(person: Person, now: datetime) -> str | None:
    """The greeting that was left, which is gone from then on, used or expired; of two calls at once, one gets it."""
    taken = files.claim(person.greeting)
    if taken is None:
        return None
    text, left_at = taken
    return clean_greeting(readable(text)) if now - left_at <= LIFETIME else None


def look(person: Person, now: datetime) -> str | None:
    """What `take` would give, left where it is."""
    text = files.read(person.greeting)
    if text is None or now - datetime.fromtimestamp(person.greeting.stat().st_mtime, UTC) > LIFETIME:
        return None
    return clean_greeting(readable(text))


def choose(left: str | None, profile: UserProfile, configured: str) -> str:
    """What was left for this call, else a hello by name, else what everybody hears. A name that was corrected since is used."""
    if left:
        return use_present_name(left, addressed_name(left), profile.name, profile.call_name)
    name = strip_unspoken(profile.spoken_name or "").rstrip(" .,;:!?")
    return f"Hey {cut(name, LONGEST - len('Hey !'))}!" if name else configured


def greet(person: Person | None, configured: str, clock: Clock, *, takes: bool = True) -> str:
    """The opening line of a call. A workspace in trouble costs the caller the personal touch, never the greeting."""
    if person is None:
        return configured
    left = _try(lambda: (take if takes else look)(person, clock.now()))
    profile = _try(lambda: user_md.parse(files.read(person.user)))
    return choose(left, profile or UserProfile(), configured)


def _try(step: Callable[[], T]) -> T | None:
    try:
        return step()
    except WorkspaceError as error:
        _log.warning("greeting without the workspace", code=error.code)
        return None
