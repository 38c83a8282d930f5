"""Retell: `call_ended` and `call_analyzed` tell of the same call; whichever comes first is kept, the other is known."""

import re
from collections.abc import Mapping
from datetime import datetime

from aftercall.hosted.platform import Json, Platform, Report, Said, from_milliseconds, items, offset, part, sid_of, speaker_of, text_of
from aftercall.model.calls import Call
from aftercall.model.turns import Speaker

WINDOW_S = 300
_HEADER = re.compile(r"v=(\d{1,15}),d=([0-9a-fA-F]{64})")
_SPEAKERS: dict[str, Speaker] = {"agent": "agent", "user": "caller"}


class Retell(Platform):
    name = "retell"
    setting = "RETELL_API_KEY"

    def is_genuine(self, headers: Mapping[str, str], raw: bytes, now: datetime) -> bool:
        header = _HEADER.fullmatch(headers.get("x-retell-signature", "").replace(" ", ""))
        if header is None or abs(now.timestamp() - int(header[1]) / 1000) > WINDOW_S:
            return False
        return self._key.matches(header[2], raw + header[1].encode())

    def read_call(self, event: Json, agent_id: str) -> Call | None:
        if event.get("event") not in ("call_ended", "call_analyzed"):
            return None
        call = part(event, "call")
        ended = from_milliseconds(call.get("end_timestamp"), "call.end_timestamp")
        start = from_milliseconds(call["start_timestamp"], "call.start_timestamp") if call.get("start_timestamp") else ended
        return Report(
            source=self.name,
            sid=sid_of(call, "call_id"),
            is_inbound=call.get("direction") != "outbound",
            customer=call.get("to_number") if call.get("direction") == "outbound" else call.get("from_number"),
            line=call.get("from_number") if call.get("direction") == "outbound" else call.get("to_number"),
            started_at=start,
            ended_at=ended,
            end_reason=call.get("disconnection_reason"),
            said=tuple(
                Said(speaker, text_of(turn.get("content")), _when(turn, start))
                for turn in items(call, "transcript_object")
                if (speaker := speaker_of(turn.get("role"), _SPEAKERS))
            ),
            details={
                "platform_agent_id": call.get("agent_id"),
                "call_sid": part(call, "telephony_identifier").get("twilio_call_sid"),
                "platform_summary": part(call, "call_analysis").get("call_summary"),
            },
        ).to_call(agent_id)


def _when(turn: Json, start: datetime) -> datetime:
    words = items(turn, "words")
    return offset(start, words[0].get("start")) if words else start
