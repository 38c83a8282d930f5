"""An emulated Twilio: signs its webhooks, plays the TwiML that comes back, opens media streams.

`EmulatedTwilio` rings an agent without a phone network: your test speaks for the caller, and
speech takes no time. Calls between two numbers are in exchange.py.
"""

import secrets
from base64 import b64encode
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha1
from hmac import digest
from urllib.parse import urljoin

import httpx2
from websockets.exceptions import InvalidHandshake

from aftercall.clock import Clock
from aftercall.lab.carrier import NO_DELIVERY_FAULTS, DeliveryFaults, EmulatedCarrier
from aftercall.lab.media import MediaPhone
from aftercall.lab.twiml import (
    BAD_STREAM,
    HTTP_FAILED,
    INVALID_CONTENT_TYPE,
    Connect,
    Form,
    Gather,
    HangUp,
    Redirect,
    Reject,
    TwimlFault,
    TwimlSay,
    Verb,
    parse_twiml,
)
from aftercall.phone.carrier_frames import TwilioFrames

MAX_REDIRECTS = 20
APOLOGY = "We are sorry, an application error has occurred. Goodbye."
NO_ACCOUNT = "AC" + "0" * 32
_TWIML_TYPES = ("text/xml", "application/xml")


class TwilioCarrier(EmulatedCarrier):
    """One emulated Twilio account: its webhooks and its media streams."""

    def __init__(
        self,
        auth_token: str,
        account_sid: str = NO_ACCOUNT,
        *,
        address: str = "http://lab.invalid",
        delivery_faults: DeliveryFaults = NO_DELIVERY_FAULTS,
        clock: Clock | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__(address, delivery_faults, clock, transport)
        self.auth_token = auth_token
        self.account_sid = account_sid

    def sign(self, url: str, form: Form) -> str:
        signed = url + "".join(name + form[name] for name in sorted(form))
        return b64encode(
            digest(self.auth_token.encode(), signed.encode(), sha1)
        ).decode()

    async def post_form(self, url: str, form: Form) -> httpx2.Response:
        headers = {"X-Twilio-Signature": self.sign(url, form)}
        return await self.http.post(url, data=form, headers=headers)

    async def send_callback(self, url: str, form: Form) -> None:
        """Twilio does not retry a callback."""
        with suppress(httpx2.HTTPError):
            await self.post_form(url, form)

    async def fetch_verbs(self, url: str, form: Form, redirects: int) -> list[Verb]:
        """Asks a webhook for TwiML. `redirects` counts those in a row that led here."""
        if redirects > MAX_REDIRECTS:
            raise TwimlFault(
                HTTP_FAILED, f"more than {MAX_REDIRECTS} redirects in a row"
            )
        try:
            answer = await self.post_form(url, form)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            reason = f"no answer from the webhook {url} ({type(error).__name__})"
            raise TwimlFault(HTTP_FAILED, reason) from None
        if answer.status_code != 200:
            raise TwimlFault(HTTP_FAILED, f"the webhook answered {answer.status_code}")
        if answer.headers.get("content-type", "").partition(";")[0] not in _TWIML_TYPES:
            raise TwimlFault(
                INVALID_CONTENT_TYPE, "the webhook's answer is not text/xml"
            )
        return parse_twiml(answer.text)

    async def open_stream(
        self, sid: str, stream: Connect, speed: float = 1.0
    ) -> MediaPhone:
        try:
            return await MediaPhone.dial(
                stream.url,
                TwilioFrames(sid, self.account_sid),
                parameters=dict(stream.parameters),
                headers={"x-twilio-signature": self.sign(stream.url, {})},
                speed=speed,
                clock=self.clock,
            )
        except (OSError, InvalidHandshake) as error:
            reason = f"the media socket refused ({type(error).__name__})"
            raise TwimlFault(BAD_STREAM, reason) from None


@dataclass
class LabCall:
    """A call from its caller's side."""

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

    @property
    def answer_url(self) -> str:
        """Where the agent wants to hear what the caller says."""
        if self.active_gather is None:
            raise RuntimeError("the agent is not listening")
        return self.active_gather.action or self.voice_url


class EmulatedTwilio(TwilioCarrier):
    """Twilio as our server meets it: signed webhooks, TwiML, media streams."""

    def __init__(
        self,
        auth_token: str,
        *,
        transport: httpx2.AsyncBaseTransport | None = None,
        speed: float = 1.0,
    ) -> None:
        """`speed` is that of streamed audio."""
        super().__init__(auth_token, transport=transport)
        self._speed = speed

    async def ring(
        self,
        voice_url: str,
        *,
        caller: str,
        callee: str = "+15550101",
        status_url: str | None = None,
    ) -> LabCall:
        """Returns when the agent has spoken and listens, or the call is over."""
        sid = "CA" + secrets.token_hex(16)
        call = LabCall(
            sid, caller, callee, voice_url, status_url, self.clock.monotonic()
        )
        await self._fetch_and_play(call, voice_url, {})
        return call

    async def say(self, call: LabCall, text: str, confidence: float = 0.9) -> None:
        """The caller speaks while the agent listens."""
        fields = {"SpeechResult": text, "Confidence": f"{confidence}"}
        await self._fetch_and_play(call, call.answer_url, fields)

    async def stay_silent(self, call: LabCall) -> None:
        """The caller says nothing until the agent's timeout."""
        url = call.answer_url
        if call.active_gather is not None and call.active_gather.action_on_empty:
            await self._fetch_and_play(call, url, {"SpeechResult": ""})
        else:
            await self._play(call, call.remaining_verbs)

    async def hang_up(
        self, call: LabCall, *, sends_stop: bool = True, closes_socket: bool = True
    ) -> None:
        """A stream gets a stop frame and its socket is closed, or only one of the two."""
        if call.is_over:
            return
        if call.phone is not None:
            await call.phone.hang_up(sends_stop=sends_stop, closes_socket=closes_socket)
        await self._end(call, "completed")

    async def wait_for_hang_up(self, call: LabCall) -> None:
        """Waits until the agent closes the stream, then plays the TwiML after it."""
        if call.phone is not None and not call.is_over:
            await call.phone.wait_closed()
            call.heard += call.phone.heard
            await self._play(call, call.remaining_verbs)

    async def post(self, call: LabCall, url: str, fields: Form) -> httpx2.Response:
        """Posts one signed webhook. Tests use it to send one again."""
        return await self.post_form(url, self._make_form(call, fields))

    def _make_form(self, call: LabCall, fields: Form) -> Form:
        return {
            "CallSid": call.sid,
            "AccountSid": self.account_sid,
            "ApiVersion": "2010-04-01",
            "From": call.caller,
            "To": call.callee,
            "Direction": "inbound",
            "CallStatus": call.state,
        } | fields

    async def _fetch_and_play(
        self, call: LabCall, url: str, fields: Form, redirects: int = 0
    ) -> None:
        form = self._make_form(call, fields)
        try:
            verbs = await self.fetch_verbs(
                urljoin(call.voice_url, url), form, redirects
            )
        except TwimlFault as fault:
            call.fault = fault
            call.heard.append(APOLOGY)
            await self._end(call, "failed" if call.state == "ringing" else "completed")
            return
        if call.state == "ringing" and not any(
            isinstance(verb, Reject) for verb in verbs[:1]
        ):
            call.state = "in-progress"
        await self._play(call, verbs, redirects)

    async def _play(self, call: LabCall, verbs: list[Verb], redirects: int = 0) -> None:
        call.active_gather = None
        for number, verb in enumerate(verbs):
            match verb:
                case TwimlSay(text):
                    call.heard.append(text)
                case Gather(says=says):
                    call.heard += [say.text for say in says]
                    call.active_gather = verb
                    call.remaining_verbs = verbs[number + 1 :]
                    return
                case Connect():
                    call.remaining_verbs = verbs[number + 1 :]
                    await self._stream(call, verb)
                    return
                case Redirect(url):
                    await self._fetch_and_play(call, url, {}, redirects + 1)
                    return
                case Reject(reason):
                    await self._end(call, "busy" if reason == "busy" else "no-answer")
                    return
                case HangUp():
                    break
        await self._end(call, "completed")  # a document hangs up at its end

    async def _stream(self, call: LabCall, stream: Connect) -> None:
        try:
            call.phone = await self.open_stream(call.sid, stream, self._speed)
        except TwimlFault as fault:
            call.fault = fault
            await self._play(call, call.remaining_verbs)

    async def _end(self, call: LabCall, state: str) -> None:
        call.state = state
        call.active_gather = None
        if call.status_url is None:
            return
        seconds = int(self.clock.monotonic() - call.started_s)
        fields = {"CallDuration": str(seconds), "SequenceNumber": "3"}
        await self.send_callback(call.status_url, self._make_form(call, fields))
