"""`message`: a text message through the carrier, to the owner or to a verified caller."""

from base64 import b64encode
from datetime import timedelta
from typing import Protocol
from urllib.parse import quote

import httpx2

from aftercall.clock import Clock
from aftercall.errors import SinkRefused
from aftercall.model.followups import SinkReceipt, SinkWork
from aftercall.settings import Settings
from aftercall.settings.providers import TelnyxSettings, TwilioSettings
from aftercall.work.sinks.http import HttpRequest, send

MAX_MESSAGE_CHARS = 480


class MessageSender(Protocol):
    can_repeat: bool

    def find(self, to: str, text: str, clock: Clock) -> str | None:
        """The id of the same message if it was sent before and the carrier can tell."""
        ...

    def post(self, to: str, text: str) -> str: ...


class TwilioMessages:
    can_repeat = True

    def __init__(
        self, settings: TwilioSettings, sender: str, transport: httpx2.BaseTransport | None = None
    ) -> None:
        token = settings.auth_token.get_secret_value() if settings.auth_token else ""
        credentials = b64encode(f"{settings.account_sid}:{token}".encode()).decode()
        self._headers = {"Authorization": f"Basic {credentials}"}
        api, account = settings.api_url.rstrip("/"), quote(settings.account_sid or "")
        self._url = f"{api}/2010-04-01/Accounts/{account}/Messages.json"
        self._sender = sender
        self._transport = transport

    def find(self, to: str, text: str, clock: Clock) -> str | None:
        since = f"{clock.now() - timedelta(days=1):%Y-%m-%d}"
        query = {"To": to, "DateSent>": since, "PageSize": "200"}
        request = HttpRequest("GET", self._url, self._headers, query=query)
        for message in send("message", request, self._transport).json().get("messages", []):
            if message.get("body") == text and message.get("status") != "failed":
                return str(message["sid"])
        return None

    def post(self, to: str, text: str) -> str:
        form = {"To": to, "From": self._sender, "Body": text}
        request = HttpRequest("POST", self._url, self._headers, form=form)
        return str(send("message", request, self._transport).json()["sid"])


class TelnyxMessages:
    can_repeat = False  # Telnyx has no list of sent messages

    def __init__(
        self, settings: TelnyxSettings, sender: str, transport: httpx2.BaseTransport | None = None
    ) -> None:
        key = settings.api_key.get_secret_value() if settings.api_key else ""
        self._headers = {"Authorization": f"Bearer {key}"}
        self._url = f"{settings.api_url.rstrip('/')}/v2/messages"
        self._sender = sender
        self._transport = transport

    def find(self, to: str, text: str, clock: Clock) -> str | None:
        return None

    def post(self, to: str, text: str) -> str:
        content = {"from": self._sender, "to": to, "text": text}
        request = HttpRequest("POST", self._url, self._headers, json=content)
        answer = send("message", request, self._transport, can_repeat=False)
        return str(answer.json()["data"]["id"])


class MessageSink:
    name = "message"
    leaves_machine = True

    def __init__(self, carrier: MessageSender, owner: str | None, clock: Clock) -> None:
        self.can_repeat = carrier.can_repeat
        self._carrier = carrier
        self._owner = owner
        self._clock = clock

    def describe_dry_run(self, work: SinkWork) -> str:
        to = "the caller" if work.may_contact_caller else "the owner"
        return f"would send a text message to {to}"

    def deliver(self, work: SinkWork) -> SinkReceipt:
        to = work.caller if work.may_contact_caller else self._owner
        if not to or not to.startswith("+"):
            raise SinkRefused("message: there is no number to send it to; set owner")
        text = _write(work)
        sid = self._carrier.find(to, text, self._clock) or self._carrier.post(to, text)
        return SinkReceipt(response=sid)


def _write(work: SinkWork) -> str:
    """The reference makes each text unique, so a sent message is found again."""
    reference = f" (ref {work.key[:8]})"
    content = f"{work.title}. {work.details}" if work.purpose == "notice" else work.title
    text = " ".join(content.split())
    room = MAX_MESSAGE_CHARS - len(reference)
    return (text if len(text) <= room else text[: room - 1] + "…") + reference


def make_carrier(settings: Settings) -> MessageSender | None:
    """The configured carrier, else the one whose keys are set."""
    chosen, twilio, telnyx = settings.message.carrier, settings.twilio, settings.telnyx
    sender = settings.message.sender or twilio.phone_number
    if chosen in (None, "twilio") and twilio.account_sid and twilio.auth_token and sender:
        return TwilioMessages(twilio, sender)
    if chosen in (None, "telnyx") and telnyx.api_key and settings.message.sender:
        return TelnyxMessages(telnyx, settings.message.sender)
    return None
