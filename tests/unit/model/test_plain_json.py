"""JSON from outside: what is refused before it is parsed, and what is made storable."""

import json
from typing import Any

import pytest

from aftercall.errors import RefusedInput
from aftercall.model.plain_json import MAX_DEPTH, MAX_VALUES, clean_json, parse_json


def test_a_body_of_countless_values_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(RefusedInput, match="holds more than 300,000 values"):
        parse_json(b"[" + b"[]," * MAX_VALUES)  # is not even JSON


def test_megabytes_in_one_value_are_taken() -> None:
    audio = "QUJD" * 2_000_000
    assert parse_json(json.dumps({"audio": audio}).encode()) == {"audio": audio}


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b'{"text": "Hi \xf0\x9f"}', {"text": "Hi \ufffd"}),
        (b'{"text": "Hi \\ud83d"}', {"text": "Hi \ufffd"}),
        (b'{"te\\u0000xt": "a\\u0000b"}', {"te\ufffdxt": "a\ufffdb"}),
        ('{"text": "Grüße 😀"}'.encode(), {"text": "Grüße 😀"}),
    ],
)
def test_what_no_store_can_hold_is_replaced(raw: bytes, expected: Any) -> None:
    assert parse_json(raw) == expected


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "is not valid JSON"),
        (b"[" * 100_000, "is not valid JSON"),
        (b"[" * 100 + b"]" * 100, "is nested more than 64 deep"),
        (b'{"a": NaN}', "is not finite"),
        (b'{"a": 1e999}', "is not finite"),
        (b'{"a": %s}' % (b"9" * 5_000), "digits"),
    ],
)
def test_what_cannot_be_shown_again_is_refused(raw: bytes, said: str) -> None:
    with pytest.raises(RefusedInput, match=f"^body: .*{said}"):
        parse_json(raw)


def test_nesting_is_allowed_within_reason() -> None:
    value: Any = "leaf"
    for _ in range(MAX_DEPTH):
        value = {"inner": value}
    assert clean_json(value) == value
