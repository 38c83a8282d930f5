"""The numbers of the emulated phone network: what answers at each."""

from dataclasses import dataclass
from typing import Literal, get_args

from aftercall.errors import RefusedInput

Outcome = Literal["busy", "no-answer", "failed", "voicemail"]


@dataclass(frozen=True)
class LabNumber:
    """A number that an agent answers (`voice_url`), or one with a fixed outcome."""

    voice_url: str = ""
    status_url: str = ""
    outcome: Outcome | None = None


def parse_number(spec: str) -> tuple[str, LabNumber]:
    """`+15550101=http://127.0.0.1:8080/twilio/voice` or `+15550109=busy`."""
    number, mark, what = spec.partition("=")
    if not mark or not number.startswith("+"):
        raise RefusedInput(
            "--number", "is NUMBER=ADDRESS or NUMBER=OUTCOME, and a number begins with +"
        )
    for outcome in get_args(Outcome):
        if what == outcome:
            return number, LabNumber(outcome=outcome)
    if not what.startswith(("http://", "https://")):
        raise RefusedInput(
            "--number", f"knows addresses (http://…) and outcomes ({', '.join(get_args(Outcome))})"
        )
    status = what.removesuffix("/voice") + "/status" if what.endswith("/voice") else ""
    return number, LabNumber(voice_url=what, status_url=status)
