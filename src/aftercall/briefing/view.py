"""A briefing as API and commands show it."""

from datetime import tzinfo
from typing import Any

from aftercall.briefing.render import render
from aftercall.model.briefing import Briefing
from aftercall.model.instants import format_instant


def briefing_json(briefing: Briefing, zone: tzinfo) -> dict[str, Any]:
    return {
        "greeting": briefing.greeting,
        "caller_name": briefing.caller_name,
        "agent_name": briefing.persona.name,
        "recent": [
            {"at": format_instant(call.at), "summary": call.summary, "context": call.context, "whose": call.whose}
            for call in briefing.recent
        ],
        "facts": [
            {"id": fact.id, "text": fact.text, "since": format_instant(fact.since), "heard_by": fact.heard_by} for fact in briefing.facts
        ],
        "work": list(briefing.work),
        "pins": [{"id": pin.id, "title": pin.title, "status": pin.status, "open_items": list(pin.open_items)} for pin in briefing.pins],
        "resumes": briefing.pick_up.call_id if briefing.pick_up else None,
        "text": render(briefing, zone),
    }


def briefing_variables(briefing: Briefing, zone: tzinfo) -> dict[str, str | bool]:
    """For a platform that fills them into its own prompt: all of them, always, since one that is missing fails the call there."""
    own = [call for call in briefing.recent if not call.whose]
    return {
        "aftercall_briefing": render(briefing, zone),
        "first_words": briefing.first_words,
        "caller_name": briefing.caller_name or "",
        "is_known_caller": bool(briefing.caller_name or briefing.recent or briefing.facts),
        "last_call": own[-1].summary if own else "",
    }
