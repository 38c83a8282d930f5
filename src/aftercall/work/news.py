"""What became of requests, told to the agent before the next call."""

import re

from aftercall.model.followups import FollowUp
from aftercall.model.people import normalise_caller, split_party
from aftercall.settings import Settings
from aftercall.work.store import FollowUpStore

MAX_NEWS_LINES = 10
_ISSUE = re.compile(r"/issues/(\d+)$")
_TOLD = {
    "done": "Done",
    "passed on": "Passed on",
    "noted": "Written down",
    "failed": "Could not be done",
    "refused": "Was not allowed",
    "expired": "Was never approved",
    "held": "Waits for the owner's approval",
}


class FollowUpNews:
    """What became of requests, as lines for the next call."""

    def __init__(self, settings: Settings, followups: FollowUpStore) -> None:
        self._scope = settings.memory.scope
        self._owner = normalise_caller(settings.owner)
        self._followups = followups

    def list_lines(self, agent_id: str, party: str | None) -> tuple[str, ...]:
        """Lines for one party's call. Work of others is included only if memory is shared."""
        if self._scope == "none" or (self._scope == "per_caller" and party is None):
            return ()
        is_owner = party is not None and split_party(party)[0] == self._owner
        rows = self._followups.list_news(
            agent_id,
            party if self._scope == "per_caller" else None,
            limit=MAX_NEWS_LINES,
            with_withheld=is_owner,
        )
        return tuple(_render_news(row) for row in rows)


def _render_news(row: FollowUp) -> str:
    number = _ISSUE.search(row.link or "")
    return f"{_TOLD[row.standing]}: {row.title}" + (
        f", number {number[1]}" if number else ""
    )
