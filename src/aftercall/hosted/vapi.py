"""Vapi: the end-of-call report. A shared secret in a header, or an HMAC over time and body, by the credential in use."""

from collections.abc import Mapping
from datetime import datetime

from aftercall.hosted.platform import Json, Platform, Report, Said, from_milliseconds, instant, items, part, sid_of, speaker_of, text_of
from aftercall.model.calls import Call
from aftercall.model.turns import Speaker

_SPEAKERS: dict[str, Speaker] = {"bot": "agent", "assistant": "agent", "user": "caller"}


class Vapi(Platform):
    name = "vapi"
    setting = "VAPI_WEBHOOK_SECRET"

    def is_genuine(self, headers: Mapping[str, str], raw: bytes, now: datetime) -> bool:
        if "x-vapi-secret" in headers:
            return self._key.is_(headers["x-vapi-secret"])
        if "x-signature" in headers:
            return self._key.matches(headers["x-signature"], headers.get("x-timestamp", "").encode() + b"." + raw)
        scheme, _, token = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self._key.is_(token.strip())

    def read_call(self, event: Json, agent_id: str) -> Call | None:
        message = part(event, "message")
        if message.get("type") != "end-of-call-report":
            return None
        call, artifact = part(message, "call"), part(message, "artifact")
        start = instant(message.get("startedAt") or call.get("startedAt"), "message.startedAt")
        return Report(
            source=self.name,
            sid=sid_of(call, "id"),
            is_inbound=call.get("type") != "outboundPhoneCall",
            customer=part(message, "customer").get("number"),
            line=part(message, "phoneNumber").get("number"),
            started_at=start,
            ended_at=instant(message.get("endedAt") or call.get("endedAt"), "message.endedAt"),
            end_reason=message.get("endedReason"),
            said=tuple(
                Said(speaker, text_of(turn.get("message")), _when(turn, start))
                for turn in items(artifact, "messages")
                if (speaker := speaker_of(turn.get("role"), _SPEAKERS))
            ),
            details={
                "call_sid": call.get("phoneCallProviderId"),
                "platform_summary": part(message, "analysis").get("summary"),
            },
        ).to_call(agent_id)


def _when(turn: Json, start: datetime) -> datetime:
    return from_milliseconds(turn["time"], "message.time") if turn.get("time") is not None else start
