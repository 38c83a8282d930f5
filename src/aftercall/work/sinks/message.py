"""Sinks that tell a person.

`message` is a text message through the carrier, to the owner or to a verified caller. `email` goes
to the owner over SMTP, never to an address that was only spoken.
"""

import asyncio
import smtplib
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Protocol, TypeVar

import httpx2

from aftercall.carrier.control import TwilioRest
from aftercall.clock import Clock, SystemClock
from aftercall.errors import (
    CarrierError,
    CarrierUnreachable,
    OutcomeUnknown,
    SinkError,
    SinkRefused,
    SinkUnavailable,
)
from aftercall.model.followups import SinkReceipt, SinkWork
from aftercall.rest import describe_network_error
from aftercall.settings import Settings
from aftercall.settings.providers import (
    EmailSettings,
    TelnyxSettings,
    TwilioSettings,
    make_key_headers,
)
from aftercall.work.sinks.http import HttpRequest, send

MAX_MESSAGE_CHARS = 480

T = TypeVar("T")


class MessageSender(Protocol):
    can_repeat: bool

    def find(self, to: str, text: str, clock: Clock) -> str | None:
        """The id of the same message if it was sent before and the carrier can tell."""
        ...

    def post(self, to: str, text: str) -> str: ...


class TwilioMessages:
    """Text messages by Twilio."""

    can_repeat = True

    def __init__(
        self,
        settings: TwilioSettings,
        sender: str,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._settings = settings
        self._sender = sender
        self._transport = transport

    def find(self, to: str, text: str, clock: Clock) -> str | None:
        since = (clock.now() - timedelta(days=1)).date()
        return self._run(lambda twilio: twilio.find_message(to, text, since))

    def post(self, to: str, text: str) -> str:
        return self._run(lambda twilio: twilio.send_message(self._sender, to, text))

    def _run(self, use: Callable[[TwilioRest], Awaitable[T]]) -> T:
        async def run() -> T:
            twilio = TwilioRest(self._settings, SystemClock(), self._transport)
            try:
                return await use(twilio)
            finally:
                await twilio.close()

        try:
            return asyncio.run(run())
        except CarrierUnreachable as error:
            raise SinkUnavailable(f"message: {error}; it is tried again") from None
        except CarrierError as error:
            raise SinkRefused(
                f"message: {error}; check the account and its token"
            ) from None


class TelnyxMessages:
    """Text messages by Telnyx."""

    can_repeat = False  # Telnyx has no list of sent messages

    def __init__(
        self,
        settings: TelnyxSettings,
        sender: str,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self._headers = make_key_headers("telnyx", settings.api_key)
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
    content = (
        f"{work.title}. {work.details}" if work.purpose == "notice" else work.title
    )
    text = " ".join(content.split())
    room = MAX_MESSAGE_CHARS - len(reference)
    return (text if len(text) <= room else text[: room - 1] + "…") + reference


def make_carrier(settings: Settings) -> MessageSender | None:
    """The configured carrier, else the one whose keys are set."""
    chosen = settings.message.carrier
    twilio = settings.twilio
    telnyx = settings.telnyx
    if chosen in (None, "twilio") and twilio.account_sid and twilio.auth_token:
        sender = settings.message.sender or twilio.phone_number
        if sender:
            return TwilioMessages(twilio, sender)
    if chosen in (None, "telnyx") and telnyx.api_key:
        sender = settings.message.sender or telnyx.phone_number
        if sender:
            return TelnyxMessages(telnyx, sender)
    return None


TIMEOUT_S = 30.0
MAX_SUBJECT_CHARS = 200


class EmailSink:
    """Sends a request as an email."""

    name = "email"
    leaves_machine = True
    can_repeat = False  # SMTP cannot tell whether a message was accepted before

    def __init__(self, settings: EmailSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock

    def describe_dry_run(self, work: SinkWork) -> str:
        return f"would send an email to {self._settings.to}"

    def deliver(self, work: SinkWork) -> SinkReceipt:
        message = self._write(work)
        server = self._connect()
        try:
            server.send_message(message)
        except smtplib.SMTPRecipientsRefused as error:
            codes = [code for code, _ in error.recipients.values()]
            raise _refusal(codes) from None
        except (smtplib.SMTPSenderRefused, smtplib.SMTPDataError) as error:
            raise _refusal([error.smtp_code]) from None
        except (OSError, smtplib.SMTPException):
            raise OutcomeUnknown(
                "email: the connection broke while sending; check whether it arrived"
            ) from None
        finally:
            with suppress(OSError, smtplib.SMTPException):
                server.quit()
        return SinkReceipt(response=f"sent to {self._settings.to}")

    def check(self) -> None:
        """Logs in and sends nothing. Raises SinkError if that fails."""
        server = self._connect()
        with suppress(OSError, smtplib.SMTPException):
            server.quit()

    def _connect(self) -> smtplib.SMTP:
        """A connection that is logged in. Only a wrong password is refused for good."""
        host = self._settings.host or ""
        port = self._settings.port
        try:
            if self._settings.security == "tls":
                server: smtplib.SMTP = smtplib.SMTP_SSL(
                    host, port, timeout=TIMEOUT_S, context=ssl.create_default_context()
                )
            else:
                server = smtplib.SMTP(host, port, timeout=TIMEOUT_S)
        except (OSError, smtplib.SMTPException) as error:
            raise SinkUnavailable(
                f"email: no connection to {host}:{port} ({describe_network_error(error)})"
            ) from None
        try:
            if self._settings.security == "starttls":
                server.starttls(context=ssl.create_default_context())
            if self._settings.username and self._settings.password:
                server.login(
                    self._settings.username, self._settings.password.get_secret_value()
                )
        except smtplib.SMTPAuthenticationError:
            server.close()
            raise SinkRefused(
                "email: the server refuses the user or the password; check email.username and "
                "email.password"
            ) from None
        except (OSError, smtplib.SMTPException) as error:
            server.close()
            raise SinkUnavailable(
                f"email: {host}:{port} broke off ({describe_network_error(error)})"
            ) from None
        return server

    def _write(self, work: SinkWork) -> EmailMessage:
        message = EmailMessage()
        message["Subject"] = " ".join(work.title.split())[:MAX_SUBJECT_CHARS]
        message["From"] = self._settings.sender
        message["To"] = self._settings.to
        message["Date"] = format_datetime(self._clock.now())
        message["Message-ID"] = f"<{work.key.replace(':', '.')}@aftercall>"
        message["Auto-Submitted"] = "auto-generated"
        lines = [work.title, "", work.details]
        if work.words:
            lines += ["", "In the caller's words:", work.words]
        lines.append("")
        if work.due:
            lines.append(f"Due: {work.due}")
        lines += [
            f"Caller: {work.caller or 'withheld'} ({work.trust})",
            f"Call: {work.call_id}",
        ]
        message.set_content("\n".join(lines))
        return message


def _refusal(codes: list[int]) -> SinkError:
    if all(400 <= code < 500 for code in codes):
        return SinkUnavailable(f"email: the server said {codes[0]}; it is tried again")
    return SinkRefused(
        f"email: the server refuses it ({codes[0]}); check email.sender and email.to"
    )
