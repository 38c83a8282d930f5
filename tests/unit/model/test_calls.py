"""A finished call on the way in: understood, or refused whole with the field named."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.errors import RefusedInput
from aftercall.journal.archive import make_base_name
from aftercall.model.calls import Call, encode_call, parse_call, parse_call_json
from fakes import make_call

GOOD: dict[str, Any] = {
    "source": "twilio",
    "sid": "CA0123456789abcdef",
    "caller": "+15550100",
    "started_at": "2026-02-13T15:41:12.120Z",
    "ended_at": 1771000934.87,
    "turns": [
        {
            "speaker": "bot",
            "text": "Hey! What can I do for you?",
            "at": "2026-02-13T16:41:13.020+01:00",
        },
        {
            "speaker": "user",
            "text": "A chicken recipe",
            "at": 1771000880,
            "confidence": 0.97,
        },
    ],
}

DEEP = json.loads("[" * 100 + "]" * 100)


def with_change(path: str, value: Any) -> dict[str, Any]:
    call = copy.deepcopy(GOOD)
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    place: Any = call
    for part in way:
        place = place[part]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return call


def test_what_may_be_left_out_is_filled_in() -> None:
    call = parse_call(GOOD)
    assert call.conversation == call.id
    assert (
        call.agent_id,
        call.direction,
        call.verified,
        call.resumes,
        call.schema_,
    ) == (
        "main",
        "inbound",
        False,
        None,
        1,
    )
    assert [(turn.seq, turn.speaker) for turn in call.turns] == [
        (1, "agent"),
        (2, "caller"),
    ]


def test_times_are_understood_in_both_forms_and_kept_in_utc() -> None:
    call = parse_call(GOOD)
    dumped = call.model_dump(mode="json")
    assert dumped["ended_at"] == "2026-02-13T16:42:14.870Z"
    assert dumped["turns"][0]["at"] == "2026-02-13T15:41:13.020Z"


@pytest.mark.parametrize("word", ["bot", "assistant", "agent", "ai", "AI", " Agent "])
def test_the_agents_names(word: str) -> None:
    assert parse_call(with_change("turns.0.speaker", word)).turns[0].speaker == "agent"


@pytest.mark.parametrize("word", ["user", "caller", "human", "Human"])
def test_the_callers_names(word: str) -> None:
    assert parse_call(with_change("turns.1.speaker", word)).turns[1].speaker == "caller"


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("source", ..., "source: is missing"),
        ("source", "Twilio!", "source: does not match"),
        ("sid", ..., "sid: is missing"),
        ("sid", 7, "sid: is not text"),
        ("sid", "a/b", "sid: may hold only"),
        ("sid", "..", "sid: may hold only"),
        ("sid", "a..b", "sid: may hold only"),
        ("sid", "x" * 201, "sid: may hold only"),
        ("sid", "", "sid: may hold only"),
        ("id", "a/../b", "id: may hold only"),
        ("agent_id", "../etc", "agent_id: may hold only"),
        ("conversation", "a b", "conversation: may hold only"),
        ("direction", "sideways", "direction: is not 'inbound' or 'outbound'"),
        ("caller", 15550100, "caller: is not text"),
        ("caller", "Bob", "caller: is not a phone number"),
        ("verified", "yes", "verified: is not true or false"),
        ("started_at", ..., "started_at: is missing"),
        ("started_at", "yesterday", "started_at: is not a time"),
        ("started_at", "2026-02-13T15:41:12", "started_at: has no time zone"),
        ("started_at", True, "started_at: is not a time"),
        (
            "started_at",
            1771000872000,
            "started_at: lies outside the years 2000 to 2100 \\(epoch times are in seconds\\)",
        ),
        ("started_at", 1e300, "started_at: lies outside"),
        ("started_at", "9999-12-31T23:59:59-12:00", "started_at: lies outside"),
        ("ended_at", "2026-02-13T15:41:12Z", "ended_at: lies before started_at"),
        ("ended_at", "2026-03-13T15:41:12Z", "ended_at: lies more than 48 hours"),
        ("end_reason", "Hung up!", "end_reason: does not match"),
        ("schema", 2, "schema: is not 1"),
        ("schema", "1", "schema: is not 1"),
        ("resumes", "a/b", "resumes: may hold only"),
        ("turns", ..., "turns: is missing"),
        ("turns", "hello", "turns: is not a list"),
        ("turns.0", "hello", r"turns\[0\]: is not an object"),
        ("turns.0.speaker", "ghost", r"turns\[0\].speaker: is not one of"),
        ("turns.0.text", ..., r"turns\[0\].text: is missing"),
        ("turns.0.text", 3, r"turns\[0\].text: is not text"),
        ("turns.0.text", "x" * 10_000_000, r"turns\[0\].text: is longer than 100,000"),
        ("turns.0.at", ..., r"turns\[0\].at: is missing"),
        (
            "turns.0.at",
            "2026-02-13T15:00:00Z",
            r"turns\[0\].at: lies before started_at",
        ),
        (
            "turns.1.at",
            "2026-02-13T15:41:12.500Z",
            r"turns\[1\].at: lies before turns\[0\].at",
        ),
        ("turns.1.at", "2026-02-14T15:41:12Z", r"turns\[1\].at: lies after ended_at"),
        ("turns.1.seq", 5, r"turns\[1\].seq: is 5 where 2 is next"),
        ("turns.1.confidence", 1.5, r"turns\[1\].confidence: "),
        ("turns.1.mood", "good", r"turns\[1\].mood: is not a known field"),
        ("metadata", [], "metadata: is not an object"),
        ("metadata", {"blob": "x" * 70_000}, "metadata: is 70,0.. bytes long"),
        (
            "metadata",
            {"n": float("nan")},
            "metadata: holds a number that is not finite",
        ),
        ("metadata", {"n": DEEP}, "metadata: is nested more than 64 deep"),
        ("colour", "red", "colour: is not a known field"),
    ],
)
def test_a_field_that_does_not_fit_is_named(path: str, value: Any, said: str) -> None:
    with pytest.raises(RefusedInput, match=f"^{said}"):
        parse_call(with_change(path, value))


def test_the_error_never_repeats_what_was_said() -> None:
    with pytest.raises(RefusedInput) as refused:
        parse_call(
            with_change(
                "turns.0", {"speaker": "canary", "text": "canary", "at": "canary"}
            )
        )
    assert "canary" not in str(refused.value)


def test_too_much_speech_altogether_is_refused() -> None:
    turns = [
        {"speaker": "user", "text": "x" * 99_000, "at": GOOD["started_at"]}
        for _ in range(60)
    ]
    with pytest.raises(RefusedInput, match="turns: hold more than"):
        parse_call(with_change("turns", turns))


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"\xff\xfe", "call: is not valid UTF-8 \\(byte 0\\)"),
        (b'{"source": ', "call: is not valid JSON \\(line 1"),
        (b"[]", "call: is not a JSON object"),
        (b'{"call": {}, "gold": {}}', "call: is a labelled call"),
        (b"[" * 100_000, "call: is not valid JSON"),
        (b"", "call: is not valid JSON"),
    ],
)
def test_bytes_that_are_no_call_are_refused(raw: bytes, said: str) -> None:
    with pytest.raises(RefusedInput, match=f"^{said}"):
        parse_call_json(raw)


def test_nul_and_lone_surrogates_are_replaced_and_the_words_kept() -> None:
    call = parse_call_json(
        json.dumps(with_change("turns.1.text", "a\0b\ud800c")).encode()
    )
    assert call.turns[1].text == "a\ufffdb\ufffdc"
    odd = {"na\0me": [{"half": "x\ud83d"}]}
    call = parse_call_json(json.dumps(with_change("metadata", odd)).encode())
    assert call.metadata == {"na\ufffdme": [{"half": "x\ufffd"}]}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=10), inner, max_size=4)
    ),
    max_leaves=10,
)


@given(
    st.dictionaries(st.sampled_from([*Call.model_fields, "schema", "odd"]), json_values)
)
def test_any_object_is_a_call_or_refused(data: dict[str, Any]) -> None:
    with pytest.raises(RefusedInput):
        parse_call(data)


@given(
    st.sampled_from(
        [
            *GOOD,
            "turns.0.at",
            "turns.1.text",
            "turns.0.speaker",
            "metadata",
            "caller",
            "id",
        ]
    ),
    json_values,
)
def test_any_value_in_any_field_is_taken_or_refused(path: str, value: Any) -> None:
    try:
        call = parse_call(with_change(path, value))
    except RefusedInput:
        return
    assert Call.model_validate(json.loads(encode_call(call))) == call


said = st.lists(
    st.tuples(st.sampled_from(["agent", "caller"]), st.text(max_size=200)), max_size=20
)


@given(
    said,
    st.from_regex(r"[A-Za-z0-9_+=][A-Za-z0-9_.:@=+~-]{0,199}", fullmatch=True).filter(
        lambda sid: ".." not in sid
    ),
)
def test_a_sealed_call_reads_back_as_it_was_and_its_name_is_safe(
    turns: list[tuple[str, str]], sid: str
) -> None:
    call = make_call(turns, sid=sid)
    assert Call.model_validate(json.loads(encode_call(call))) == call
    name = make_base_name(call)
    assert len(name) < 200
    assert "/" not in name
    assert not name.startswith(".")
