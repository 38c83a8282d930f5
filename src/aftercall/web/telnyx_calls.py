"""A call on Telnyx: what each event does, and the commands that answer it.

The receptionist needs no other account: Telnyx speaks for it and writes down what the caller
says. An engine of streamed audio answers through `LiveAudio` instead; then events only begin
and end the call.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from starlette.concurrency import run_in_threadpool

from aftercall.app import App
from aftercall.bridge.switchboard import SpokenReply, Switchboard
from aftercall.bridge.turn_call import SORRY_GOODBYE
from aftercall.carrier.control import TelnyxRest
from aftercall.clock import parse_instant
from aftercall.errors import AftercallError, CallOver, CarrierError, CarrierUnreachable
from aftercall.log import get_logger
from aftercall.model.calls import Call, LiveCall
from aftercall.phone.notices import (
    CallProgress,
    CarrierCallState,
    Notice,
    RecordingNotice,
    RingNotice,
    SpeakingEnded,
    SpeechGathered,
    StreamFailed,
)
from aftercall.phone.telnyx import TelnyxControl
from aftercall.phone.telnyx_webhooks import CALL_STATE_KEY, SOURCE
from aftercall.web.recordings import store_recording_notice
from aftercall.web.speech_timeout import SilenceWatch, estimate_speaking_s
from aftercall.web.webhook_dedupe import Command, WebhookDedupe

MAX_REMEMBERED_CALLS = 5_000
STREAM_WORD, THEN_WORD = "stream", "then"
HANG_UP = "hang_up"
T = TypeVar("T")

log = get_logger("carrier")


@dataclass(frozen=True)
class StreamDestination:
    """Where the audio of a call is to go, and words that come back in the stream's start: its
    pass above all.
    """

    url: str
    words: Mapping[str, str]


class LiveAudio(Protocol):
    """Whoever answers calls with streamed audio. Implemented beside the media socket."""

    async def register_stream(self, call: LiveCall) -> StreamDestination | None:
        """How this call's audio is taken; None leaves the call to the receptionist."""
        ...

    async def end(self, sid: str, reason: str) -> None:
        """The carrier says that the call is over, whether its stream was ever opened or not."""
        ...


class TelnyxCalls:
    def __init__(
        self, app: App, switchboard: Switchboard, rest: TelnyxRest, audio: LiveAudio | None = None
    ) -> None:
        self._app = app
        self._switchboard = switchboard
        self._rest = rest
        self._audio = audio
        self._control = TelnyxControl()
        self._dedupe = WebhookDedupe()
        self._silence = SilenceWatch(app.clock, self._on_silence)
        self._rings: OrderedDict[str, RingNotice] = OrderedDict()
        self._ended_sids: OrderedDict[str, None] = OrderedDict()

    async def process_notice(self, notice: Notice) -> None:
        """Raises CarrierUnreachable when a command did not get through: delivered again, it is
        sent again.
        """
        await self._dedupe.process_once(notice.key, lambda: self._decide(notice), self._send)

    async def close(self) -> None:
        await self._silence.close()

    async def _decide(self, notice: Notice) -> list[Command]:
        match notice:
            case RingNotice():
                return await self._answer(notice)
            case CallProgress(state=CarrierCallState.ANSWERED):
                return await self._on_answered(notice)
            case CallProgress(state=state) if state.is_final:
                await self._end(notice)
            case SpeechGathered(text=text) if text.strip():
                return await self._on_speech(notice)
            case SpeakingEnded():
                return self._on_speaking_ended(notice)
            case StreamFailed():
                return await self._apologise(notice)
            case RecordingNotice():
                await run_in_threadpool(store_recording_notice, self._app, SOURCE, notice)
            case _:
                pass
        return []

    async def _answer(self, ring: RingNotice) -> list[Command]:
        if ring.direction != "inbound" or ring.sid in self._ended_sids:
            return []
        _remember(self._rings, ring.sid, ring)
        offer = await self._register_stream(ring)
        words = {CALL_STATE_KEY: ring.sid} | ({STREAM_WORD: "1", **offer.words} if offer else {})
        return [
            Command(
                ring.sid,
                self._control.answer(
                    ring.sid, cause=ring.key, stream_url=offer.url if offer else None, state=words
                ),
            )
        ]

    async def _register_stream(self, ring: RingNotice) -> StreamDestination | None:
        if self._audio is None:
            return None
        try:
            return await self._audio.register_stream(self._make_call_factory(ring)(ring.sid))
        except (
            AftercallError
        ) as error:  # the receptionist says that nothing can be written down, if that is so
            log.error("no stream for the call", error=error.code)
            return None

    async def _on_answered(self, notice: CallProgress) -> list[Command]:
        sid = notice.sid
        is_ours = sid in self._rings or notice.client_state.get(CALL_STATE_KEY) == sid
        if not is_ours or sid in self._ended_sids:
            return []
        commands = []
        if self._app.settings.recordings.enabled:
            commands.append(
                Command(sid, self._control.start_recording(sid, cause=notice.key), is_vital=False)
            )
        if STREAM_WORD in notice.client_state:
            return commands
        make_call = self._make_call_factory(
            self._rings.get(sid) or notice.ring or await self._find_ring(sid)
        )
        is_known = self._switchboard.current_turn(sid) is None and await self._find(sid) is not None
        answer = await (
            self._switchboard.answer_turn(sid, None, "", None, make_call)
            if is_known
            else self._switchboard.ring(sid, make_call)
        )
        spoken = self._app.settings.telnyx.language.partition("-")[0]
        listen = Command(
            sid, self._control.start_transcription(sid, cause=notice.key, language=spoken)
        )
        return [*commands, listen, self._speak(sid, answer, notice.key)]

    async def _on_speech(self, notice: SpeechGathered) -> list[Command]:
        sid = notice.sid
        if sid in self._ended_sids or (
            self._switchboard.current_turn(sid) is None and not await self._find(sid)
        ):
            return []
        if not notice.is_final:  # the caller is speaking: no time to ask whether they are there
            self._silence.restart(sid)
            return []
        make_call = self._make_call_factory(self._rings.get(sid) or await self._find_ring(sid))
        return [
            self._speak(
                sid,
                await self._switchboard.answer_turn(
                    sid, None, notice.text, notice.confidence, make_call
                ),
                notice.key,
            )
        ]

    def _on_speaking_ended(self, notice: SpeakingEnded) -> list[Command]:
        if notice.client_state.get(THEN_WORD) == HANG_UP:
            self._silence.stop(notice.sid)
            return [
                Command(
                    notice.sid, self._control.hang_up(notice.sid, cause=notice.key), is_vital=False
                )
            ]
        self._silence.restart(notice.sid)
        return []

    async def _apologise(self, notice: StreamFailed) -> list[Command]:
        if self._audio is not None:
            await self._audio.end(notice.sid, "stream_failed")
        return [self._speak(notice.sid, SpokenReply(SORRY_GOODBYE, 0), notice.key)]

    async def _end(self, notice: CallProgress) -> None:
        sid, reason = notice.sid, notice.state.end_reason
        _remember(self._ended_sids, sid, None)
        self._silence.stop(sid)
        is_known = self._switchboard.current_turn(sid) is not None
        await self._switchboard.end(sid, reason)
        if self._audio is not None:
            await self._audio.end(sid, reason)
        ring = self._rings.pop(sid, None) or (
            notice.ring if notice.client_state.get(CALL_STATE_KEY) == sid else None
        )
        if not is_known and ring is not None:
            await run_in_threadpool(self._store_missed_call, ring, reason)

    def _store_missed_call(self, ring: RingNotice, reason: str) -> None:
        """A caller who hung up before anybody spoke has called all the same; a call that was
        opened is known already.
        """
        now = self._app.clock.now()
        live = ring.open_call(_started(ring, now), self._app.settings.agent_id)
        self._app.journal.ingest(
            Call(**live.model_dump(), ended_at=now, end_reason=reason, turns=())
        )

    def _speak(self, sid: str, answer: SpokenReply, cause: str) -> Command:
        words, telnyx = {CALL_STATE_KEY: sid}, self._app.settings.telnyx
        if answer.reply.ends_call:
            words[THEN_WORD] = HANG_UP
        self._silence.start(
            sid, answer.turn, estimate_speaking_s(answer.reply.text), is_last=answer.reply.ends_call
        )
        text = answer.reply.text
        return Command(
            sid,
            self._control.speak(
                sid, text, cause=cause, voice=telnyx.voice, language=telnyx.language, state=words
            ),
        )

    async def _on_silence(self, sid: str, turn: int, is_last: bool) -> None:
        """Nobody has said anything for a while; or a goodbye was never told to have been spoken."""
        cause = f"silence {turn}"
        if is_last:
            command = Command(sid, self._control.hang_up(sid, cause=cause), is_vital=False)
        elif self._switchboard.current_turn(sid) == turn:
            make_call = self._make_call_factory(self._rings.get(sid) or await self._find_ring(sid))
            command = self._speak(
                sid, await self._switchboard.answer_turn(sid, turn, "", None, make_call), cause
            )
        else:
            return
        try:
            await self._send(command)
        except CarrierUnreachable:  # logged there; the next silence tries again
            self._silence.start(sid, turn, 0.0, is_last=is_last)

    async def _send(self, command: Command) -> None:
        try:
            await self._rest.client.send(command.request)
        except CallOver:
            await self._switchboard.end(command.sid, "caller_hung_up")
        except CarrierUnreachable as error:
            log.warning("a command did not get through", error=error.code, action=_action(command))
            if command.is_vital:
                raise
        except CarrierError as error:
            log.error(
                "a command was refused",
                error=error.code,
                action=_action(command),
                reason=str(error),
            )
            if command.is_vital:
                await self._give_up(command.sid)

    async def _give_up(self, sid: str) -> None:
        """The caller can hear nothing: better no call than a silent one.

        It is kept like any other.
        """
        self._silence.stop(sid)
        await self._switchboard.end(sid, "carrier_refused")
        try:
            await self._rest.hang_up(sid)
        except CarrierError as error:
            log.warning("could not hang up", error=error.code)

    def _make_call_factory(self, ring: RingNotice) -> Callable[[str], LiveCall]:
        """How the call is opened; a leg that picks up gets a sid of its own, and the carrier's
        in its metadata.
        """

        def make_call(sid: str) -> LiveCall:
            call = ring.open_call(self._app.clock.now(), self._app.settings.agent_id)
            return (
                call
                if sid == ring.sid
                else call.model_copy(
                    update={"sid": sid, "metadata": {**call.metadata, "call_sid": ring.sid}}
                )
            )

        return make_call

    async def _find(self, sid: str) -> LiveCall | None:
        row = await run_in_threadpool(self._app.store.find, SOURCE, sid)
        return row.live if row else None

    async def _find_ring(self, sid: str) -> RingNotice:
        """Who is on the line, as it was written down before this process began; whoever is not
        known is withheld.
        """
        call = await self._find(sid)
        if call is None:
            return RingNotice("", SOURCE, sid, None, None, "inbound", False, {})
        return RingNotice(
            "", SOURCE, sid, call.caller, call.callee, call.direction, call.verified, call.metadata
        )


def _remember(memory: OrderedDict[str, T], sid: str, thing: T) -> None:
    memory[sid] = thing
    while len(memory) > MAX_REMEMBERED_CALLS:
        memory.popitem(last=False)


def _started(ring: RingNotice, now: datetime) -> datetime:
    """When it began to ring, as the carrier says; now if it does not, or its clock is ahead of
    ours.
    """
    try:
        return min(now, parse_instant(ring.metadata.get("start_time")))
    except ValueError:
        return now


def _action(command: Command) -> str:
    return command.request.path.rpartition("/")[2]
