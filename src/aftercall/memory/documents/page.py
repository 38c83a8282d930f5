"""The page of a call: what was discussed and decided, what is to be done, and where the next call begins."""

from collections.abc import Iterable
from datetime import datetime, tzinfo

from aftercall.model.calls import Call
from aftercall.model.documents import MAX_CONTENT, Document, id_from
from aftercall.model.people import split_party
from aftercall.model.reading import Summary

SOURCE = "voice-call"
NEXT_CALL = "### Context for Next Call"
PLATFORM = "elevenlabs"  # whose own id of a call, its `conversation_id`, is the session's
TAGS = ("voice-session", "aftercall", "phone-call")


def make_page(call: Call, summary: Summary, name: str | None, zone: tzinfo, now: datetime) -> Document:
    """The document of a call. Its title tells no number: titles are shown where pages are not."""
    title = f"Voice Call Summary — {_local(call.started_at, zone)}"
    return Document(
        id=id_from("call", call.id),
        title=title,
        content=_content(call, summary, name, title)[:MAX_CONTENT],
        source=SOURCE,
        tags=TAGS,
        metadata={
            "session_id": session_of(call),
            "call_id": call.id,
            "started_at": call.started_at.isoformat(),
            "direction": call.direction,
        },
        agent_id=call.agent_id,
        caller=call.caller if call.direction == "inbound" else call.callee,
        call_id=call.id,
        made_at=now,
        changed_at=now,
    )


def context_of(content: str) -> str:
    """What a page says the next call should know; whoever wrote to it last is believed."""
    _, heading, below = f"\n{content}".rpartition(f"\n{NEXT_CALL}\n")
    return _line(below.partition("\n#")[0]) if heading else ""


def session_of(call: Call) -> str:
    return f"voice-session:{_line(call.sid) if call.source == PLATFORM else call.id}"


def _content(call: Call, summary: Summary, name: str | None, title: str) -> str:
    number = split_party((call.caller if call.direction == "inbound" else call.callee) or "withheld")[0]
    minutes, seconds = divmod(round(call.duration_s), 60)
    head = [
        f"## {title}",
        "",
        f"**Session:** {session_of(call)}",
        f"**Duration:** {minutes}m {seconds}s",
        f"**Caller:** {_line(name)} ({number})" if name else f"**Caller:** {number}",
    ]
    sections = [
        _section("Topics Discussed", summary.topics or (summary.text,)),
        _section("Key Decisions", summary.decisions),
        _section("Action Items", summary.actions, "- [ ] "),
        _section("Important Facts", summary.facts),
        [NEXT_CALL, _line(summary.context)] if _line(summary.context) else [],
    ]
    return "\n".join(head + [line for section in sections if section for line in ("", *section)]) + "\n"


def _section(heading: str, items: Iterable[str], bullet: str = "- ") -> list[str]:
    lines = [f"{bullet}{_line(item)}" for item in items if _line(item)]
    return [f"### {heading}", *lines] if lines else []


def _line(text: str | None) -> str:
    """One line: what was said cannot begin a heading or a list of its own."""
    return " ".join((text or "").split())


def _local(instant: datetime, zone: tzinfo) -> str:
    local = instant.astimezone(zone)
    return f"{local:%Y-%m-%d} {local.hour % 12 or 12}:{local:%M} {'AM' if local.hour < 12 else 'PM'}"
