"""The webhooks of Bland, ElevenLabs, Retell and Vapi."""

import json
import re
from collections.abc import Collection, Sequence
from datetime import datetime

from pydantic import SecretStr

from aftercall.clock import parse_instant
from aftercall.errors import ConfigError
from aftercall.hosted.platform import (
    Platform,
    PlatformReport,
    PlatformToolCall,
    PlatformTurn,
    Variables,
    from_milliseconds,
    get_object,
    get_objects,
    make_live_call,
    offset,
    parse_time,
    read_own_tool_call,
    sid_of,
    speaker_of,
    text_of,
)
from aftercall.model.calls import Call, LiveCall, Speaker, is_sid
from aftercall.model.json_fields import Json
from aftercall.rest import Headers

_BLAND_SPEAKERS: dict[str, Speaker] = {
    "assistant": "agent",
    "robot": "agent",
    "user": "caller",
}


_BLAND_CONTEXT = ("call_id", "from", "to", "inbound")


class Bland(Platform):
    """One post after the call. No time is signed, so only the call's id reveals a repeat."""

    name = "bland"
    setting = "BLAND_WEBHOOK_SECRET"
    start_setting = "BLAND_START_SECRET"

    def is_genuine(self, headers: Headers, raw: bytes, now: datetime) -> bool:
        return self._key.matches(headers.get("x-webhook-signature", ""), raw)

    def is_running(self, event: Json) -> bool:
        return event.get("completed") is False and is_sid(event.get("call_id"))

    def read_running(self, event: Json, agent_id: str, now: datetime) -> LiveCall:
        """Of dynamic data and of tools: fields that the how-to tells to send."""
        parties = (event.get("from"), event.get("to"))
        is_inbound = event.get("inbound") in (None, True, "true", "True", "")
        return make_live_call(
            self.name,
            event.get("call_id"),
            agent_id,
            parties if is_inbound else parties[::-1],
            now,
            is_inbound=is_inbound,
        )

    def read_tool_calls(self, event: Json, name: str) -> list[PlatformToolCall]:
        return read_own_tool_call(event, name, _BLAND_CONTEXT)

    def read_call(self, event: Json, agent_id: str) -> Call | None:
        if event.get("completed") is False:
            return None
        start = parse_time(
            event.get("started_at") or event.get("created_at"), "created_at"
        )
        is_inbound = event.get("inbound") is True
        ended_by = event.get("call_ended_by")
        return PlatformReport(
            source=self.name,
            sid=sid_of(event, "call_id"),
            is_inbound=is_inbound,
            customer=event.get("from" if is_inbound else "to"),
            agent_number=event.get("to" if is_inbound else "from"),
            started_at=start,
            ended_at=_bland_end(event, start),
            end_reason=f"{ended_by}_hung_up" if ended_by else "completed",
            turns=tuple(
                PlatformTurn(
                    speaker, text_of(turn.get("text")), _bland_time(turn, start)
                )
                for turn in get_objects(event, "transcripts")
                if (speaker := speaker_of(turn.get("user"), _BLAND_SPEAKERS))
            ),
            details={
                "platform_summary": event.get("summary"),
                "variables": get_object(event, "variables"),
            },
        ).to_call(agent_id)


def _bland_end(event: Json, start: datetime) -> datetime:
    """The end, or the start plus a length in minutes."""
    if event.get("end_at"):
        return parse_time(event["end_at"], "end_at")
    minutes = event.get("call_length")
    if isinstance(minutes, bool) or not isinstance(minutes, int | float):
        return start
    return offset(start, minutes * 60)


def _bland_time(turn: Json, start: datetime) -> datetime:
    if not turn.get("created_at"):
        return start
    return parse_time(turn["created_at"], "transcripts.created_at")


ELEVENLABS_SIGNATURE_MAX_AGE_S = 1800
_TIME = re.compile(r"\d{1,12}")
_DIGEST = re.compile(r"[0-9a-fA-F]{64}")


_ELEVENLABS_CONTEXT = (
    "conversation_id",
    "caller_id",
    "called_number",
    "agent_id",
    "call_sid",
)


class ElevenLabs(Platform):
    """ElevenLabs' webhooks, read and answered."""

    name = "elevenlabs"
    setting = "ELEVENLABS_WEBHOOK_SECRET"
    start_setting = "ELEVENLABS_START_SECRET"

    def __init__(
        self,
        secret: SecretStr | None,
        agents: Collection[str] = (),
        start_secret: SecretStr | None = None,
    ) -> None:
        """One webhook serves all agents of an account; `agents` selects some, empty means all."""
        super().__init__(secret, start_secret)
        self._agents = frozenset(agents)

    def is_genuine(self, headers: Headers, raw: bytes, now: datetime) -> bool:
        """Takes the parts in any order, with unknown schemes among them, as ElevenLabs does."""
        pieces = headers.get("elevenlabs-signature", "").split(",")
        given = dict(piece.strip().partition("=")[::2] for piece in pieces)
        at = given.get("t", "")
        signature = given.get("v0", "")
        if not _TIME.fullmatch(at) or not _DIGEST.fullmatch(signature):
            return False
        if abs(now.timestamp() - int(at)) > ELEVENLABS_SIGNATURE_MAX_AGE_S:
            return False
        return self._key.matches(signature, at.encode() + b"." + raw)

    def is_ours(self, data: Json) -> bool:
        return not self._agents or text_of(data.get("agent_id")) in self._agents

    def read_running(self, event: Json, agent_id: str, now: datetime) -> LiveCall:
        """The report names a call by its conversation, so that id alone makes it a call."""
        parties = (event.get("caller_id"), event.get("called_number"))
        sid = event.get("conversation_id")
        return make_live_call(self.name, sid, agent_id, parties, now)

    def read_tool_calls(self, event: Json, name: str) -> list[PlatformToolCall]:
        return read_own_tool_call(event, name, _ELEVENLABS_CONTEXT)

    def answer_start(self, variables: Variables) -> Json:
        return {
            "type": "conversation_initiation_client_data",
            "dynamic_variables": dict(variables),
        }

    def read_call(self, event: Json, agent_id: str) -> Call | None:
        """Ignores other events: audio, and calls that never began."""
        if event.get("type") != "post_call_transcription":
            return None
        data = get_object(event, "data")
        if not self.is_ours(data):
            return None
        metadata = get_object(data, "metadata")
        analysis = get_object(data, "analysis")
        phone = get_object(metadata, "phone_call")
        start = parse_time(
            metadata.get("start_time_unix_secs"), "metadata.start_time_unix_secs"
        )
        end = offset(start, metadata.get("call_duration_secs"))
        said = tuple(
            _elevenlabs_turn(turn, start) for turn in get_objects(data, "transcript")
        )
        client_data = get_object(data, "conversation_initiation_client_data")
        return PlatformReport(
            source=self.name,
            sid=sid_of(data, "conversation_id"),
            is_inbound=phone.get("direction") != "outbound",
            customer=phone.get("external_number"),
            agent_number=phone.get("agent_number"),
            started_at=start,
            ended_at=max(end, start, *(turn.at for turn in said)),
            end_reason=metadata.get("termination_reason") or "completed",
            turns=said,
            details={
                "platform_agent_id": data.get("agent_id"),
                "call_sid": phone.get("call_sid"),
                "platform_summary": analysis.get("transcript_summary"),
                "dynamic_variables": get_object(client_data, "dynamic_variables"),
            },
        ).to_call(agent_id)


def _elevenlabs_turn(turn: Json, start: datetime) -> PlatformTurn:
    speaker: Speaker = "agent" if turn.get("role") == "agent" else "caller"
    at = offset(start, turn.get("time_in_call_secs"))
    return PlatformTurn(speaker, text_of(turn.get("message")), at)


RETELL_SIGNATURE_MAX_AGE_S = 300
_HEADER = re.compile(r"v=(\d{1,15}),d=([0-9a-fA-F]{64})")
_RETELL_SPEAKERS: dict[str, Speaker] = {"agent": "agent", "user": "caller"}


class Retell(Platform):
    """Retell's webhooks, read and answered."""

    name = "retell"
    setting = "RETELL_API_KEY"

    def is_genuine(self, headers: Headers, raw: bytes, now: datetime) -> bool:
        header = _HEADER.fullmatch(
            headers.get("x-retell-signature", "").replace(" ", "")
        )
        if header is None:
            return False
        if abs(now.timestamp() - int(header[1]) / 1000) > RETELL_SIGNATURE_MAX_AGE_S:
            return False
        return self._key.matches(header[2], raw + header[1].encode())

    def is_start(self, event: Json) -> bool:
        return event.get("event") == "call_inbound"

    def is_running(self, event: Json) -> bool:
        """Words so far are left to the report: they are corrected until then."""
        is_sign = event.get("event") in ("call_started", "transcript_updated")
        return is_sign and bool(get_object(event, "call"))

    def read_running(self, event: Json, agent_id: str, now: datetime) -> LiveCall:
        """At its start a call has no id yet."""
        call = get_object(event, "call_inbound") or get_object(event, "call")
        started = call.get("start_timestamp")
        is_inbound = call.get("direction") != "outbound"
        parties = (call.get("from_number"), call.get("to_number"))
        return make_live_call(
            self.name,
            call.get("call_id"),
            agent_id,
            parties if is_inbound else parties[::-1],
            min(from_milliseconds(started, "call.start_timestamp"), now)
            if started
            else now,
            is_inbound=is_inbound,
        )

    def read_tool_calls(self, event: Json, name: str) -> list[PlatformToolCall]:
        """A custom function; Retell gives a use no id, so the same words are the same use."""
        tool = event.get("name")
        arguments = event.get("args")
        if not isinstance(tool, str) or not isinstance(arguments, dict):
            return []
        text = json.dumps(arguments, sort_keys=True)
        return [PlatformToolCall(f"{tool} {text}", tool, text)]

    def answer_start(self, variables: Variables) -> Json:
        """Retell's variables are text."""
        texts = {
            name: str(value).lower() if isinstance(value, bool) else value
            for name, value in variables.items()
        }
        return {"call_inbound": {"dynamic_variables": texts}}

    def read_call(self, event: Json, agent_id: str) -> Call | None:
        if event.get("event") not in ("call_ended", "call_analyzed"):
            return None
        call = get_object(event, "call")
        ended = from_milliseconds(call.get("end_timestamp"), "call.end_timestamp")
        start = ended
        if call.get("start_timestamp"):
            start = from_milliseconds(call["start_timestamp"], "call.start_timestamp")
        is_inbound = call.get("direction") != "outbound"
        return PlatformReport(
            source=self.name,
            sid=sid_of(call, "call_id"),
            is_inbound=is_inbound,
            customer=call.get("from_number" if is_inbound else "to_number"),
            agent_number=call.get("to_number" if is_inbound else "from_number"),
            started_at=start,
            ended_at=ended,
            end_reason=call.get("disconnection_reason"),
            turns=tuple(
                PlatformTurn(
                    speaker, text_of(turn.get("content")), _retell_time(turn, start)
                )
                for turn in get_objects(call, "transcript_object")
                if (speaker := speaker_of(turn.get("role"), _RETELL_SPEAKERS))
            ),
            details={
                "platform_agent_id": call.get("agent_id"),
                "call_sid": get_object(call, "telephony_identifier").get(
                    "twilio_call_sid"
                ),
                "platform_summary": get_object(call, "call_analysis").get(
                    "call_summary"
                ),
            },
        ).to_call(agent_id)


def _retell_time(turn: Json, start: datetime) -> datetime:
    words = get_objects(turn, "words")
    return offset(start, words[0].get("start")) if words else start


VAPI_SIGNATURE_MAX_AGE_S = 300
_MILLISECONDS_FROM = 100_000_000_000  # as seconds this is the year 5138
_VAPI_SPEAKERS: dict[str, Speaker] = {
    "bot": "agent",
    "assistant": "agent",
    "user": "caller",
}


_VAPI_RUNNING = ("ringing", "in-progress", "forwarding")
_VAPI_SIGNS = ("transcript", "conversation-update", "speech-update", "user-interrupted")


class Vapi(Platform):
    """Vapi's webhooks, read and answered."""

    name = "vapi"
    setting = "VAPI_WEBHOOK_SECRET"

    def __init__(self, secret: SecretStr | None, assistant: str | None = None) -> None:
        """`assistant` takes the calls of numbers that have none of their own."""
        super().__init__(secret)
        self._assistant = assistant

    def is_genuine(self, headers: Headers, raw: bytes, now: datetime) -> bool:
        if "x-vapi-secret" in headers:
            return self._key.matches_secret(headers["x-vapi-secret"])
        if "x-signature" in headers:
            at = headers.get("x-timestamp", "")
            signed = at.encode() + b"." + raw
            return _is_recent(at, now) and self._key.matches(
                headers["x-signature"], signed
            )
        return self._key.matches_bearer(headers)

    def is_start(self, event: Json) -> bool:
        return get_object(event, "message").get("type") == "assistant-request"

    def is_running(self, event: Json) -> bool:
        """Words so far are left to the report: Vapi cuts them into turns only there."""
        message = get_object(event, "message")
        if not is_sid(get_object(message, "call").get("id")):
            return False  # a chat
        if message.get("type") == "status-update":
            return message.get("status") in _VAPI_RUNNING
        return text_of(message.get("type")).partition("[")[0] in _VAPI_SIGNS

    def read_running(self, event: Json, agent_id: str, now: datetime) -> LiveCall:
        message = get_object(event, "message")
        call = get_object(message, "call")
        customer = get_object(message, "customer") or get_object(call, "customer")
        line = get_object(message, "phoneNumber") or get_object(call, "phoneNumber")
        started = call.get("startedAt") or call.get("createdAt")
        return make_live_call(
            self.name,
            call.get("id"),
            agent_id,
            (customer.get("number"), line.get("number")),
            min(parse_time(started, "call.startedAt"), now) if started else now,
            is_inbound=call.get("type") != "outboundPhoneCall",
        )

    def read_tool_calls(self, event: Json, name: str) -> list[PlatformToolCall]:
        message = get_object(event, "message")
        if message.get("type") != "tool-calls":
            return []
        return [_vapi_tool_call(item) for item in get_objects(message, "toolCallList")]

    def answer_start(self, variables: Variables) -> Json:
        overrides: Json = {"variableValues": dict(variables)}
        if variables.get("first_words"):
            overrides["firstMessage"] = variables["first_words"]
        if self._assistant is None:
            raise ConfigError("vapi: set VAPI_ASSISTANT_ID, the assistant that answers")
        return {"assistantId": self._assistant, "assistantOverrides": overrides}

    def answer_tools(self, answers: Sequence[tuple[PlatformToolCall, str]]) -> Json:
        """One line each: Vapi takes no line breaks in a result."""
        return {
            "results": [
                {
                    "name": used.name,
                    "toolCallId": used.id,
                    "result": " ".join(text.split()),
                }
                for used, text in answers
            ]
        }

    def read_call(self, event: Json, agent_id: str) -> Call | None:
        message = get_object(event, "message")
        if message.get("type") != "end-of-call-report":
            return None
        call = get_object(message, "call")
        artifact = get_object(message, "artifact")
        start = parse_time(
            message.get("startedAt") or call.get("startedAt"), "message.startedAt"
        )
        return PlatformReport(
            source=self.name,
            sid=sid_of(call, "id"),
            is_inbound=call.get("type") != "outboundPhoneCall",
            customer=get_object(message, "customer").get("number"),
            agent_number=get_object(message, "phoneNumber").get("number"),
            started_at=start,
            ended_at=parse_time(
                message.get("endedAt") or call.get("endedAt"), "message.endedAt"
            ),
            end_reason=message.get("endedReason"),
            turns=tuple(
                PlatformTurn(
                    speaker, text_of(turn.get("message")), _vapi_time(turn, start)
                )
                for turn in get_objects(artifact, "messages")
                if (speaker := speaker_of(turn.get("role"), _VAPI_SPEAKERS))
            ),
            details={
                "call_sid": call.get("phoneCallProviderId"),
                "platform_summary": get_object(message, "analysis").get("summary"),
            },
        ).to_call(agent_id)


def _vapi_tool_call(item: Json) -> PlatformToolCall:
    """Arguments are an object in the docs and JSON text in the SDK's types; take both."""
    function = get_object(item, "function") or item
    given = function.get("arguments")
    arguments = given if isinstance(given, str) else json.dumps(given or {})
    return PlatformToolCall(
        sid_of(item, "id"), text_of(function.get("name")), arguments
    )


def _is_recent(timestamp: str, now: datetime) -> bool:
    """Vapi does not say whether its timestamp is in seconds, in milliseconds or in ISO form."""
    try:
        number = float(timestamp)
    except ValueError:
        try:
            at_s = parse_instant(timestamp).timestamp()
        except ValueError:
            return False
    else:
        at_s = number / 1000 if number >= _MILLISECONDS_FROM else number
    return abs(now.timestamp() - at_s) <= VAPI_SIGNATURE_MAX_AGE_S


def _vapi_time(turn: Json, start: datetime) -> datetime:
    return (
        start
        if turn.get("time") is None
        else from_milliseconds(turn["time"], "message.time")
    )
