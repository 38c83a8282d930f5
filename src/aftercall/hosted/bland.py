"""Bland: one post after the call. No time is signed, so only the call's id tells a repeat."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from aftercall.hosted.platform import Json, Platform, Report, Said, instant, items, part, sid_of, speaker_of, text_of
from aftercall.model.calls import Call
from aftercall.model.turns import Speaker

_SPEAKERS: dict[str, Speaker] = {"assistant": "agent", "robot": "agent", "user": "caller"}


class Bland(Platform):
    name = "bland"
    setting = "BLAND_WEBHOOK_SECRET"

    def is_genuine(self, headers: Mapping[str, str], raw: bytes, now: datetime) -> bool:
        return self._key.matches(headers.get("x-webhook-signature", ""), raw)

    def read_call(self, event: Json, agent_id: str) -> Call | None:
        if event.get("completed") is False:
            return None
        start = instant(event.get("started_at") or event.get("created_at"), "created_at")
        return Report(
            source=self.name,
            sid=sid_of(event, "call_id"),
            is_inbound=event.get("inbound") is True,
            customer=event.get("from") if event.get("inbound") is True else event.get("to"),
            line=event.get("to") if event.get("inbound") is True else event.get("from"),
            started_at=start,
            ended_at=_end(event, start),
            end_reason=f"{event['call_ended_by']}_hung_up" if event.get("call_ended_by") else "completed",
            said=tuple(
                Said(speaker, text_of(turn.get("text")), _when(turn, start))
                for turn in items(event, "transcripts")
                if (speaker := speaker_of(turn.get("user"), _SPEAKERS))
            ),
            details={"platform_summary": event.get("summary"), "variables": part(event, "variables")},
        ).to_call(agent_id)


def _end(event: Json, start: datetime) -> datetime:
    """Told outright, or by a length in minutes."""
    if event.get("end_at"):
        return instant(event["end_at"], "end_at")
    minutes = event.get("call_length")
    is_length = isinstance(minutes, int | float) and not isinstance(minutes, bool) and 0 <= minutes < 2_880
    return start + timedelta(minutes=minutes if is_length and minutes is not None else 0)


def _when(turn: Json, start: datetime) -> datetime:
    return instant(turn["created_at"], "transcripts.created_at") if turn.get("created_at") else start
