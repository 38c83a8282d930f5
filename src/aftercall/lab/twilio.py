"""An emulated Twilio: rings your webhook with real signatures, plays the TwiML that comes back,
and tells how the call ended.

The caller's side is yours: what they hear, what they say, when they hang up.
"""

import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self
from urllib.parse import urljoin

import httpx2
from websockets.exceptions import InvalidHandshake

from aftercall.clock import Clock, SystemClock
from aftercall.lab.carriers import TwilioSide
from aftercall.lab.media import MediaPhone
from aftercall.lab.twiml import (
    BAD_STREAM,
    Connect,
    Gather,
    HangUp,
    Redirect,
    Reject,
    TwimlFault,
    TwimlSay,
    Verb,
    parse_twiml,
)
from aftercall.lab.webhook_sender import HTTP_FAILED, TwilioWebhookClient

MAX_REDIRECTS = 20
APOLOGY = "We are sorry, an application error has occurred. Goodbye."


@dataclass
class LabCall:
    """One call as its caller lives it."""

    sid: str
    caller: str
    callee: str
    voice_url: str
    status_url: str | None
    started_s: float
    heard: list[str] = field(default_factory=list)
    state: str = "ringing"
    fault: TwimlFault | None = None
    active_gather: Gather | None = None
    remaining_verbs: list[Verb] = field(default_factory=list)
    phone: MediaPhone | None = None

    @property
    def is_over(self) -> bool:
        return self.state not in ("ringing", "in-progress")


class EmulatedTwilio:
    def __init__(
        self,
        auth_token: str,
        account_sid: str = "AC" + "0" * 32,
        clock: Clock | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
        speed: float = 1.0,
    ) -> None:
        """With a `transport` (an ASGI app's, say) no socket is opened for webhooks.

        `speed` is that of streamed audio.
        """
        self._account = account_sid
        self._clock = clock or SystemClock()
        self._speed = speed
        self._webhook_client = TwilioWebhookClient(auth_token, transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._webhook_client.close()

    async def ring(
        self,
        voice_url: str,
        *,
        caller: str,
        callee: str = "+15550101",
        status_url: str | None = None,
    ) -> LabCall:
        """Someone dials; returns when the agent has said its first words and listens, or the
        call is over.
        """
        sid = "CA" + secrets.token_hex(16)
        call = LabCall(sid, caller, callee, voice_url, status_url, self._clock.monotonic())
        await self._fetch_and_play(call, voice_url, {})
        return call

    async def say(self, call: LabCall, text: str, confidence: float = 0.9) -> None:
        """The caller speaks while the agent listens."""
        if call.active_gather is None:
            raise RuntimeError("the agent is not listening")
        await self._fetch_and_play(
            call,
            call.active_gather.action or call.voice_url,
            {"SpeechResult": text, "Confidence": f"{confidence}"},
        )

    async def stay_silent(self, call: LabCall) -> None:
        """The caller says nothing until the agent gives up waiting."""
        if call.active_gather is None:
            raise RuntimeError("the agent is not listening")
        if call.active_gather.action_on_empty:
            await self._fetch_and_play(
                call, call.active_gather.action or call.voice_url, {"SpeechResult": ""}
            )
        else:
            await self._play(call, call.remaining_verbs)

    async def hang_up(
        self, call: LabCall, *, sends_stop: bool = True, closes_socket: bool = True
    ) -> None:
        """A streamed call ends with a stop frame and its socket closed, or with only one of the
        two.
        """
        if call.phone is not None and not call.is_over:
            await call.phone.hang_up(sends_stop=sends_stop, closes_socket=closes_socket)
        if not call.is_over:
            await self._end(call, "completed")

    async def wait_for_hang_up(self, call: LabCall) -> None:
        """The agent hangs up a streamed call by closing its socket; what the TwiML says after
        that is played.
        """
        if call.phone is not None and not call.is_over:
            await call.phone.wait_closed()
            call.heard += call.phone.heard
            await self._play(call, call.remaining_verbs)

    def sign(self, url: str, form: dict[str, str]) -> str:
        return self._webhook_client.sign(url, form)

    async def post(self, call: LabCall, url: str, fields: dict[str, str]) -> httpx2.Response:
        """One webhook, signed; you may send one again to see that it changes nothing."""
        return await self._webhook_client.post(url, self._form(call, fields))

    def _form(self, call: LabCall, fields: dict[str, str]) -> dict[str, str]:
        return {
            "CallSid": call.sid,
            "AccountSid": self._account,
            "ApiVersion": "2010-04-01",
            "From": call.caller,
            "To": call.callee,
            "Direction": "inbound",
            "CallStatus": call.state,
        } | fields

    async def _fetch_and_play(
        self, call: LabCall, url: str, fields: dict[str, str], redirects: int = 0
    ) -> None:
        """Ask the agent what to do, and do it."""
        try:
            verbs = parse_twiml(
                await self._fetch(call, urljoin(call.voice_url, url), fields, redirects)
            )
        except TwimlFault as fault:
            call.fault = fault
            call.heard.append(APOLOGY)
            await self._end(call, "failed" if call.state == "ringing" else "completed")
            return
        if call.state == "ringing" and not any(isinstance(verb, Reject) for verb in verbs[:1]):
            call.state = "in-progress"
        await self._play(call, verbs, redirects)

    async def _fetch(self, call: LabCall, url: str, fields: dict[str, str], redirects: int) -> str:
        if redirects > MAX_REDIRECTS:
            raise TwimlFault(HTTP_FAILED, f"more than {MAX_REDIRECTS} redirects in a row")
        return await self._webhook_client.fetch_twiml(url, self._form(call, fields))

    async def _play(self, call: LabCall, verbs: list[Verb], redirects: int = 0) -> None:
        call.active_gather = None
        for number, verb in enumerate(verbs):
            match verb:
                case TwimlSay(text):
                    call.heard.append(text)
                case Gather(says=says):
                    call.heard += [say.text for say in says]
                    call.active_gather, call.remaining_verbs = verb, verbs[number + 1 :]
                    return
                case Connect(url, parameters):
                    call.remaining_verbs = verbs[number + 1 :]
                    await self._stream(call, url, dict(parameters))
                    return
                case Redirect(url):
                    await self._fetch_and_play(call, url, {}, redirects + 1)
                    return
                case Reject(reason):
                    await self._end(call, "busy" if reason == "busy" else "no-answer")
                    return
                case HangUp():
                    break
        await self._end(call, "completed")  # a document that comes to its end hangs up

    async def _stream(self, call: LabCall, url: str, parameters: dict[str, str]) -> None:
        side = TwilioSide(call.sid, self._account)
        headers = {"x-twilio-signature": self.sign(url, {})}
        try:
            call.phone = await MediaPhone.dial(
                url,
                side,
                parameters=parameters,
                headers=headers,
                speed=self._speed,
                clock=self._clock,
            )
        except (OSError, InvalidHandshake) as error:
            call.fault = TwimlFault(
                BAD_STREAM, f"the media socket refused ({type(error).__name__})"
            )
            await self._play(call, call.remaining_verbs)

    async def _end(self, call: LabCall, state: str) -> None:
        call.state, call.active_gather = state, None
        if call.status_url is None:
            return
        seconds = int(self._clock.monotonic() - call.started_s)
        with suppress(httpx2.HTTPError):  # Twilio does not try a status callback again
            await self.post(
                call, call.status_url, {"CallDuration": str(seconds), "SequenceNumber": "3"}
            )
