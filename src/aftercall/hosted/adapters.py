"""Bland: one post after the call. No time is signed, so only the call's id tells a repeat."""

import re
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from pydantic import SecretStr

from aftercall.hosted.platform import (
    Json,
    Platform,
    PlatformReport,
    PlatformTurn,
    from_milliseconds,
    get_object,
    get_objects,
    offset,
    parse_number,
    parse_time,
    sid_of,
    speaker_of,
    text_of,
)
from aftercall.model.calls import Call, LiveCall
from aftercall.model.turns import Speaker

_BLAND_SPEAKERS: dict[str, Speaker] = {"assistant": "agent", "robot": "agent", "user": "caller"}


class Bland(Platform):
    name = "bland"
    setting = "BLAND_WEBHOOK_SECRET"

    def is_genuine(self, headers: Mapping[str, str], raw: bytes, now: datetime) -> bool:
        return self._key.matches(headers.get("x-webhook-signature", ""), raw)

    def read_call(self, event: Json, agent_id: str) -> Call | None:
        if event.get("completed") is False:
            return None
        start = parse_time(event.get("started_at") or event.get("created_at"), "created_at")
        return PlatformReport(
            source=self.name,
            sid=sid_of(event, "call_id"),
            is_inbound=event.get("inbound") is True,
            customer=event.get("from") if event.get("inbound") is True else event.get("to"),
            agent_number=event.get("to") if event.get("inbound") is True else event.get("from"),
            started_at=start,
            ended_at=_end(event, start),
            end_reason=f"{event['call_ended_by']}_hung_up"
            if event.get("call_ended_by")
            else "completed",
            turns=tuple(
                PlatformTurn(speaker, text_of(turn.get("text")), _bland_time(turn, start))
                for turn in get_objects(event, "transcripts")
                if (speaker := speaker_of(turn.get("user"), _BLAND_SPEAKERS))
            ),
            details={
                "platform_summary": event.get("summary"),
                "variables": get_object(event, "variables"),
            },
        ).to_call(agent_id)


def _end(event: Json, start: datetime) -> datetime:
    """Told outright, or by a length in minutes."""
    if event.get("end_at"):
        return parse_time(event["end_at"], "end_at")
    minutes = event.get("call_length")
    is_length = (
        isinstance(minutes, int | float) and not isinstance(minutes, bool) and 0 <= minutes < 2_880
    )
    return start + timedelta(minutes=minutes if is_length and minutes is not None else 0)


def _bland_time(turn: Json, start: datetime) -> datetime:
    return (
        parse_time(turn["created_at"], "transcripts.created_at")
        if turn.get("created_at")
        else start
    )


ELEVENLABS_SIGNATURE_MAX_AGE_S = 1800
_TIME, _DIGEST = re.compile(r"\d{1,12}"), re.compile(r"[0-9a-fA-F]{64}")


class ElevenLabs(Platform):
    name = "elevenlabs"
    setting = "ELEVENLABS_WEBHOOK_SECRET"

    def __init__(self, secret: SecretStr | None, agents: Collection[str] = ()) -> None:
        """One webhook serves a whole workspace there: calls of other agents than these are not
        ours; with none named all are.
        """
        super().__init__(secret)
        self._agents = frozenset(agents)

    def is_genuine(self, headers: Mapping[str, str], raw: bytes, now: datetime) -> bool:
        """In any order, and beside signatures of schemes to come: so does ElevenLabs' own
        helper read it.
        """
        given = dict(
            piece.strip().partition("=")[::2]
            for piece in headers.get("elevenlabs-signature", "").split(",")
        )
        at, signature = given.get("t", ""), given.get("v0", "")
        if (
            not _TIME.fullmatch(at)
            or not _DIGEST.fullmatch(signature)
            or abs(now.timestamp() - int(at)) > ELEVENLABS_SIGNATURE_MAX_AGE_S
        ):
            return False
        return self._key.matches(signature, at.encode() + b"." + raw)

    def is_start_genuine(self, headers: Mapping[str, str]) -> bool:
        """A conversation that begins is not signed: it brings the same secret in a header, as a
        bearer token.
        """
        scheme, _, token = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self._key.matches_secret(token.strip())

    def is_ours(self, told: Json) -> bool:
        return not self._agents or text_of(told.get("agent_id")) in self._agents

    def read_start(self, event: Json, agent_id: str, now: datetime) -> LiveCall:
        """The call that is about to begin there; a number that is none is a stranger's."""
        sid = text_of(event.get("call_sid")) or text_of(event.get("conversation_id")) or "unknown"
        caller = parse_number(event.get("caller_id"), "caller", {})
        return LiveCall(
            source=self.name, sid=sid[:200], agent_id=agent_id, caller=caller, started_at=now
        )

    def read_call(self, event: Json, agent_id: str) -> Call | None:
        """Audio comes as an event of its own and is left alone; a call that never began has no
        transcript to keep.
        """
        if event.get("type") != "post_call_transcription":
            return None
        data = get_object(event, "data")
        if not self.is_ours(data):
            return None
        metadata, analysis = get_object(data, "metadata"), get_object(data, "analysis")
        phone = get_object(metadata, "phone_call")
        start = parse_time(metadata.get("start_time_unix_secs"), "metadata.start_time_unix_secs")
        said = tuple(_said(turn, start) for turn in get_objects(data, "transcript"))
        return PlatformReport(
            source=self.name,
            sid=sid_of(data, "conversation_id"),
            is_inbound=phone.get("direction") != "outbound",
            customer=phone.get("external_number"),
            agent_number=phone.get("agent_number"),
            started_at=start,
            ended_at=max(
                offset(start, metadata.get("call_duration_secs")),
                *(turn.at for turn in said),
                start,
            ),
            end_reason=metadata.get("termination_reason") or "completed",
            turns=said,
            details={
                "platform_agent_id": data.get("agent_id"),
                "call_sid": phone.get("call_sid"),
                "platform_summary": analysis.get("transcript_summary"),
                "dynamic_variables": get_object(
                    get_object(data, "conversation_initiation_client_data"), "dynamic_variables"
                ),
            },
        ).to_call(agent_id)


def _said(turn: Json, start: datetime) -> PlatformTurn:
    speaker: Speaker = "agent" if turn.get("role") == "agent" else "caller"
    return PlatformTurn(
        speaker, text_of(turn.get("message")), offset(start, turn.get("time_in_call_secs"))
    )


RETELL_SIGNATURE_MAX_AGE_S = 300
_HEADER = re.compile(r"v=(\d{1,15}),d=([0-9a-fA-F]{64})")
_RETELL_SPEAKERS: dict[str, Speaker] = {"agent": "agent", "user": "caller"}


class Retell(Platform):
    name = "retell"
    setting = "RETELL_API_KEY"

    def is_genuine(self, headers: Mapping[str, str], raw: bytes, now: datetime) -> bool:
        header = _HEADER.fullmatch(headers.get("x-retell-signature", "").replace(" ", ""))
        if (
            header is None
            or abs(now.timestamp() - int(header[1]) / 1000) > RETELL_SIGNATURE_MAX_AGE_S
        ):
            return False
        return self._key.matches(header[2], raw + header[1].encode())

    def read_call(self, event: Json, agent_id: str) -> Call | None:
        if event.get("event") not in ("call_ended", "call_analyzed"):
            return None
        call = get_object(event, "call")
        ended = from_milliseconds(call.get("end_timestamp"), "call.end_timestamp")
        start = (
            from_milliseconds(call["start_timestamp"], "call.start_timestamp")
            if call.get("start_timestamp")
            else ended
        )
        return PlatformReport(
            source=self.name,
            sid=sid_of(call, "call_id"),
            is_inbound=call.get("direction") != "outbound",
            customer=call.get("to_number")
            if call.get("direction") == "outbound"
            else call.get("from_number"),
            agent_number=call.get("from_number")
            if call.get("direction") == "outbound"
            else call.get("to_number"),
            started_at=start,
            ended_at=ended,
            end_reason=call.get("disconnection_reason"),
            turns=tuple(
                PlatformTurn(speaker, text_of(turn.get("content")), _retell_time(turn, start))
                for turn in get_objects(call, "transcript_object")
                if (speaker := speaker_of(turn.get("role"), _RETELL_SPEAKERS))
            ),
            details={
                "platform_agent_id": call.get("agent_id"),
                "call_sid": get_object(call, "telephony_identifier").get("twilio_call_sid"),
                "platform_summary": get_object(call, "call_analysis").get("call_summary"),
            },
        ).to_call(agent_id)


def _retell_time(turn: Json, start: datetime) -> datetime:
    words = get_objects(turn, "words")
    return offset(start, words[0].get("start")) if words else start


_VAPI_SPEAKERS: dict[str, Speaker] = {"bot": "agent", "assistant": "agent", "user": "caller"}


class Vapi(Platform):
    name = "vapi"
    setting = "VAPI_WEBHOOK_SECRET"

    def is_genuine(self, headers: Mapping[str, str], raw: bytes, now: datetime) -> bool:
        if "x-vapi-secret" in headers:
            return self._key.matches_secret(headers["x-vapi-secret"])
        if "x-signature" in headers:
            return self._key.matches(
                headers["x-signature"], headers.get("x-timestamp", "").encode() + b"." + raw
            )
        scheme, _, token = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self._key.matches_secret(token.strip())

    def read_call(self, event: Json, agent_id: str) -> Call | None:
        message = get_object(event, "message")
        if message.get("type") != "end-of-call-report":
            return None
        call, artifact = get_object(message, "call"), get_object(message, "artifact")
        start = parse_time(message.get("startedAt") or call.get("startedAt"), "message.startedAt")
        return PlatformReport(
            source=self.name,
            sid=sid_of(call, "id"),
            is_inbound=call.get("type") != "outboundPhoneCall",
            customer=get_object(message, "customer").get("number"),
            agent_number=get_object(message, "phoneNumber").get("number"),
            started_at=start,
            ended_at=parse_time(message.get("endedAt") or call.get("endedAt"), "message.endedAt"),
            end_reason=message.get("endedReason"),
            turns=tuple(
                PlatformTurn(speaker, text_of(turn.get("message")), _vapi_time(turn, start))
                for turn in get_objects(artifact, "messages")
                if (speaker := speaker_of(turn.get("role"), _VAPI_SPEAKERS))
            ),
            details={
                "call_sid": call.get("phoneCallProviderId"),
                "platform_summary": get_object(message, "analysis").get("summary"),
            },
        ).to_call(agent_id)


def _vapi_time(turn: Json, start: datetime) -> datetime:
    return (
        from_milliseconds(turn["time"], "message.time") if turn.get("time") is not None else start
    )
