"""Form bodies as Twilio posts them, read once: what the signature covers is what is believed."""

from urllib.parse import parse_qsl

from aftercall.errors import RefusedInput

FORM_TYPE = "application/x-www-form-urlencoded"
MAX_BODY = 262_144
MAX_FIELDS = 500

Fields = tuple[tuple[str, str], ...]


def read_form(body: bytes) -> Fields:
    """Every field in order, empty ones too: they are signed like the others."""
    if len(body) > MAX_BODY:
        raise RefusedInput("body", "is too long for a form")
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
    except ValueError:
        raise RefusedInput("body", "is not a form in UTF-8, or has too many fields") from None
    return tuple(pairs)
