"""What sections are made of: their base class, and values with a check of their own."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    SecretStr,
)


@dataclass(frozen=True)
class Env:
    """The environment variable of a setting if it is not AFTERCALL_<SECTION>_<NAME>."""

    name: str


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


def parse_list(value: Any) -> Any:
    """The environment separates the items of a list by commas."""
    if not isinstance(value, str):
        return value
    return [item.strip() for item in value.split(",") if item.strip()]


def parse_pairs(value: Any) -> Any:
    """The environment writes pairs as `name=value`, separated by commas."""
    if not isinstance(value, str):
        return value
    pairs = [item.partition("=") for item in parse_list(value)]
    return {key.strip(): text.strip() for key, _, text in pairs}


Words = Annotated[tuple[str, ...], BeforeValidator(parse_list)]

MIN_TOKEN_CHARS = 12  # guessed over the network only
MIN_KEY_CHARS = 16  # guessed at the attacker's own speed, from what it signed
MIN_DISTINCT_CHARS = 6
MIN_PASSCODE_CHARS = 4


def _require_strength(min_chars: int) -> Callable[[SecretStr], SecretStr]:
    def check(secret: SecretStr) -> SecretStr:
        text = secret.get_secret_value()
        if len(text) < min_chars or len(set(text)) < MIN_DISTINCT_CHARS:
            raise ValueError(
                f"is too easy to guess: it needs {min_chars} characters, {MIN_DISTINCT_CHARS} "
                "of them different; `openssl rand -hex 32` prints a good one"
            )
        return secret

    return check


# What the operator makes up. Vendors choose the strength of their own secrets.
Token = Annotated[SecretStr, AfterValidator(_require_strength(MIN_TOKEN_CHARS))]
Key = Annotated[SecretStr, AfterValidator(_require_strength(MIN_KEY_CHARS))]


def _check_url(url: SecretStr) -> SecretStr:
    if not re.fullmatch(r"https?://[^\s/]\S*", url.get_secret_value()):
        raise ValueError("is not an address that begins with http:// or https://")
    return url


SecretUrl = Annotated[SecretStr, AfterValidator(_check_url)]
"""An address that is a key: whoever has its path may post there."""

_DIGIT_WORDS = "zero one two three four five six seven eight nine"
SPOKEN_DIGITS = {"oh": "0"} | {
    word: str(digit) for digit, word in enumerate(_DIGIT_WORDS.split())
}
SPOKEN_WORD = re.compile(r"[^\W_]+")


def normalise_passcode(spoken: str) -> str:
    """The letters and digits alone; `four seven` is `47`."""
    words = SPOKEN_WORD.findall(spoken.casefold())
    return "".join(SPOKEN_DIGITS.get(word, word) for word in words)


def _check_passcode(passcode: SecretStr) -> SecretStr:
    if len(normalise_passcode(passcode.get_secret_value())) < MIN_PASSCODE_CHARS:
        raise ValueError(f"needs at least {MIN_PASSCODE_CHARS} letters or digits")
    return passcode


Passcode = Annotated[SecretStr, AfterValidator(_check_passcode)]
