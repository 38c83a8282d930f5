"""`email`: a message to the owner over SMTP, never to an address that was only spoken."""

import smtplib
import ssl
from contextlib import suppress
from email.message import EmailMessage
from email.utils import format_datetime

from aftercall.clock import Clock
from aftercall.errors import (
    OutcomeUnknown,
    SinkError,
    SinkRefused,
    SinkUnavailable,
    describe_network_error,
)
from aftercall.model.followups import SinkReceipt, SinkWork
from aftercall.settings.providers import EmailSettings

TIMEOUT_S = 30.0
MAX_SUBJECT_CHARS = 200


class EmailSink:
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

    def _connect(self) -> smtplib.SMTP:
        host, port = self._settings.host or "", self._settings.port
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
        message["From"], message["To"] = self._settings.sender, self._settings.to
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
