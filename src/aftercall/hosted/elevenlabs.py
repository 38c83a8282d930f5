"""ElevenLabs Agents: the post-call transcription, signed with a time in the header, and the question how a call should begin."""

import re
from collections.abc import Collection, Mapping
from datetime import datetime

from pydantic import SecretStr

from aftercall.hosted.platform import Json, Platform, Report, Said, instant, items, offset, part, party, sid_of, text_of
from aftercall.model.calls import Call, LiveCall
from aftercall.model.turns import Speaker

STALE_S = 1800
_TIME, _DIGEST = re.compile(r"\d{1,12}"), re.compile(r"[0-9a-fA-F]{64}")


class ElevenLabs(Platform):
    name = "elevenlabs"
    setting = "ELEVENLABS_WEBHOOK_SECRET"

    def __init__(self, secret: SecretStr | None, agents: Collection[str] = ()) -> None:
        """One webhook serves a whole workspace there: calls of other agents than these are not ours; with none named all are."""
        super().__init__(secret)
        self._agents = frozenset(agents)

    def is_genuine(self, headers: Mapping[str, str], raw: bytes, now: datetime) -> bool:
        """In any order, and beside signatures of schemes to come: so does ElevenLabs' own helper read it."""
        given = dict(piece.strip().partition("=")[::2] for piece in headers.get("elevenlabs-signature", "").split(","))
        at, signature = given.get("t", ""), given.get("v0", "")
        if not _TIME.fullmatch(at) or not _DIGEST.fullmatch(signature) or abs(now.timestamp() - int(at)) > STALE_S:
            return False
        return self._key.matches(signature, at.encode() + b"." + raw)

    def is_start_genuine(self, headers: Mapping[str, str]) -> bool:
        """A conversation that begins is not signed: it brings the same secret in a header, as a bearer token."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self._key.is_(token.strip())

    def is_ours(self, told: Json) -> bool:
        return not self._agents or text_of(told.get("agent_id")) in self._agents

    def read_start(self, event: Json, agent_id: str, now: datetime) -> LiveCall:
        """The call that is about to begin there; a number that is none is a stranger's."""
        sid = text_of(event.get("call_sid")) or text_of(event.get("conversation_id")) or "unknown"
        caller = party(event.get("caller_id"), "caller", {})
        return LiveCall(source=self.name, sid=sid[:200], agent_id=agent_id, caller=caller, started_at=now)

    def read_call(self, event: Json, agent_id: str) -> Call | None:
        """Audio comes as an event of its own and is left alone; a call that never began has no transcript to keep."""
        if event.get("type") != "post_call_transcription":
            return None
        data = part(event, "data")
        if not self.is_ours(data):
            return None
        metadata, analysis = part(data, "metadata"), part(data, "analysis")
        phone = part(metadata, "phone_call")
        start = instant(metadata.get("start_time_unix_secs"), "metadata.start_time_unix_secs")
        said = tuple(_said(turn, start) for turn in items(data, "transcript"))
        return Report(
            source=self.name,
            sid=sid_of(data, "conversation_id"),
            is_inbound=phone.get("direction") != "outbound",
            customer=phone.get("external_number"),
            line=phone.get("agent_number"),
            started_at=start,
            ended_at=max(offset(start, metadata.get("call_duration_secs")), *(turn.at for turn in said), start),
            end_reason=metadata.get("termination_reason") or "completed",
            said=said,
            details={
                "platform_agent_id": data.get("agent_id"),
                "call_sid": phone.get("call_sid"),
                "platform_summary": analysis.get("transcript_summary"),
                "dynamic_variables": part(part(data, "conversation_initiation_client_data"), "dynamic_variables"),
            },
        ).to_call(agent_id)


def _said(turn: Json, start: datetime) -> Said:
    speaker: Speaker = "agent" if turn.get("role") == "agent" else "caller"
    return Said(speaker, text_of(turn.get("message")), offset(start, turn.get("time_in_call_secs")))
