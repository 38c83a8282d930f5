"""Twilio's webhooks become notices; a call is never refused for who is calling."""

from datetime import UTC, datetime
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.errors import RefusedInput
from aftercall.phone.notices import CarrierCallState, RecordingState, RingNotice
from aftercall.phone.twilio import (
    Fields,
    read_form,
    read_gathered,
    read_progress,
    read_recorded,
    read_ring,
)

CALL = "CA" + "1" * 32
RECORDING = "RE" + "2" * 32
NOW = datetime(2026, 2, 13, 15, 41, tzinfo=UTC)


def form(**fields: str) -> Fields:
    """By way of real bytes, so that reading them is tested too."""
    known = {
        "AccountSid": "AC" + "0" * 32,
        "ApiVersion": "2010-04-01",
        "CallSid": CALL,
        "CallStatus": "ringing",
        "Direction": "inbound",
    }
    return read_form(
        urlencode(
            {
                **known,
                "From": "+15550100",
                "To": "+15550101",
                "Caller": "+15550100",
                **fields,
            }
        ).encode()
    )


def test_a_ring_names_the_call_and_both_ends() -> None:
    ring = read_ring(form(FromCountry="US"))
    assert (ring.source, ring.sid, ring.caller, ring.callee, ring.direction) == (
        "twilio",
        CALL,
        "+15550100",
        "+15550101",
        "inbound",
    )
    assert ring.metadata == {"account_sid": "AC" + "0" * 32, "from_country": "US"}


@pytest.mark.parametrize(
    ("sent", "caller"),
    [
        ("+1 (555) 010-0199", "+15550100199"),
        ("client:alice", "client:alice"),
        ("sip:Bob@Example.COM", "sip:Bob@example.com"),
        ("anonymous", None),
        ("Restricted", None),
        ("+266696687", None),
        ("", None),
    ],
)
def test_a_caller_has_one_form_or_is_withheld(sent: str, caller: str | None) -> None:
    ring = read_ring(form(From=sent, Caller=sent))
    assert ring.caller == caller
    assert "caller_as_sent" not in ring.metadata


def test_a_caller_in_no_known_form_counts_as_withheld_and_is_kept_as_sent() -> None:
    ring = read_ring(form(From="whatsapp:+15550100", To="5550101"))
    assert (ring.caller, ring.callee, ring.verified) == (None, None, False)
    assert ring.metadata["caller_as_sent"] == "whatsapp:+15550100"
    assert ring.metadata["callee_as_sent"] == "5550101"


@pytest.mark.parametrize(
    ("verstat", "verified"),
    [
        ("TN-Validation-Passed-A", True),
        ("TN-Validation-Passed-B", False),
        ("TN-Validation-Passed-C", False),
        ("TN-Validation-Passed-A-Diverted", False),
        ("TN-Validation-Passed-A-Passthrough", False),
        ("TN-Validation-Failed-A", False),
        ("No-TN-Validation", False),
        ("tn-validation-passed-a", False),
        ("", False),
    ],
)
def test_a_number_is_verified_only_by_the_highest_attestation(
    verstat: str, verified: bool
) -> None:
    assert read_ring(form(StirVerstat=verstat)).verified is verified


@pytest.mark.parametrize(
    "verstat",
    [
        "TN-Validation-Failed",
        "TN-Validation-Failed-A",
        "TN-Validation-Failed-C",
        "TN-Validation-Failed-B-Diverted",
        "TN-Validation-Passed-A, TN-Validation-Failed-A",
    ],
)
def test_a_number_whose_attestation_failed_is_withheld(verstat: str) -> None:
    ring = read_ring(form(StirVerstat=verstat, CallerName="ZOE", FromCity="UTRECHT"))
    assert (ring.caller, ring.verified, ring.is_number_refused) == (None, False, True)
    assert ring.callee is not None
    assert "15550100" not in str(ring.metadata)
    assert {"caller_name", "from_city"}.isdisjoint(ring.metadata)
    assert ring.metadata["stir_verstat"] == verstat


def test_a_failed_attestation_of_our_own_call_withholds_nobody() -> None:
    ring = read_ring(
        form(Direction="outbound-api", StirVerstat="TN-Validation-Failed-A")
    )
    assert ring.caller is not None


def test_a_withheld_number_is_verified_by_nothing() -> None:
    assert not read_ring(
        form(From="anonymous", Caller="anonymous", StirVerstat="TN-Validation-Passed-A")
    ).verified


def test_a_call_of_ours_is_outbound_and_proves_nothing_about_the_caller() -> None:
    ring = read_ring(
        form(Direction="outbound-api", StirVerstat="TN-Validation-Passed-A")
    )
    assert (ring.direction, ring.verified) == ("outbound", False)


@pytest.mark.parametrize("sid", ["", "a b", "../x", "x" * 300])
def test_a_call_without_an_id_is_refused_by_the_name_of_the_field(sid: str) -> None:
    with pytest.raises(RefusedInput, match="CallSid"):
        read_ring(form(CallSid=sid))


@given(
    caller=st.text(max_size=400),
    callee=st.text(max_size=400),
    name=st.text(max_size=400),
)
def test_whoever_calls_the_call_can_be_opened(
    caller: str, callee: str, name: str
) -> None:
    fields: Fields = (
        ("CallSid", CALL),
        ("From", caller),
        ("To", callee),
        ("CallerName", name),
    )
    live = read_ring(fields).open_call(NOW)
    live.model_dump_json().encode()
    assert (live.source, live.sid, live.started_at) == ("twilio", CALL, NOW)


def test_of_repeated_fields_the_first_counts() -> None:
    assert (
        read_ring(
            (("CallSid", CALL), ("From", "+15550100"), ("From", "+15550199"))
        ).caller
        == "+15550100"
    )


@pytest.mark.parametrize(
    ("confidence", "expected"),
    [
        ({"Confidence": "0.91"}, 0.91),
        ({}, None),
        ({"Confidence": "0.0"}, None),
        ({"Confidence": ""}, None),
    ]
    + [
        ({"Confidence": word}, None)
        for word in ("high", "nan", "inf", "-1", "1.5", "1e999")
    ],
)
def test_a_confidence_that_twilio_does_not_know_is_none(
    confidence: dict[str, str], expected: float | None
) -> None:
    gathered = read_gathered(form(SpeechResult="I need an invoice", **confidence))
    assert (gathered.text, gathered.confidence, gathered.is_final) == (
        "I need an invoice",
        expected,
        True,
    )


def test_silence_is_an_answer_too() -> None:
    assert read_gathered(form(FinishedOnKey="")).text == ""


def test_the_same_word_said_twice_is_told_from_one_told_twice_by_the_retry_token() -> (
    None
):
    assert (
        read_gathered(form(SpeechResult="yes"), "t1").key
        == read_gathered(form(SpeechResult="yes"), "t1").key
    )
    assert (
        read_gathered(form(SpeechResult="yes"), "t1").key
        != read_gathered(form(SpeechResult="yes"), "t2").key
    )


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("queued", CarrierCallState.RINGING),
        ("ringing", CarrierCallState.RINGING),
        ("in-progress", CarrierCallState.ANSWERED),
        ("completed", CarrierCallState.COMPLETED),
        ("busy", CarrierCallState.BUSY),
        ("failed", CarrierCallState.FAILED),
        ("no-answer", CarrierCallState.NO_ANSWER),
        ("canceled", CarrierCallState.CANCELLED),
    ],
)
def test_every_status_of_twilio_is_a_state_of_ours(
    status: str, state: CarrierCallState
) -> None:
    progress = read_progress(form(CallStatus=status))
    assert progress.state is state
    assert progress.state.is_final is (
        status not in ("queued", "ringing", "in-progress")
    )


def test_two_states_of_one_call_are_two_notices_and_one_told_twice_is_one() -> None:
    answered, completed = (
        read_progress(form(CallStatus="in-progress")),
        read_progress(form(CallStatus="completed", CallDuration="42")),
    )
    assert answered.key != completed.key
    assert (
        completed.key
        == read_progress(
            form(CallStatus="completed", CallDuration="42", SequenceNumber="9")
        ).key
    )


def test_a_status_nobody_knows_is_refused_by_the_name_of_the_field() -> None:
    with pytest.raises(RefusedInput, match="CallStatus"):
        read_progress(form(CallStatus="daydreaming"))


@pytest.mark.parametrize(
    ("status", "state", "is_final"),
    [
        ("in-progress", RecordingState.RUNNING, False),
        ("completed", RecordingState.READY, True),
        ("absent", RecordingState.ABSENT, True),
        ("failed", RecordingState.FAILED, True),
    ],
)
def test_a_recording_that_is_absent_is_final_and_has_no_address(
    status: str, state: RecordingState, is_final: bool
) -> None:
    url = "https://api.twilio.com/2010-04-01/Accounts/AC/Recordings/RE"
    recorded = read_recorded(
        form(RecordingSid=RECORDING, RecordingStatus=status, RecordingUrl=url)
    )
    assert (recorded.state, recorded.state.is_final, recorded.call_sids) == (
        state,
        is_final,
        (CALL,),
    )
    assert recorded.url == (url if state is RecordingState.READY else None)


def test_two_states_of_one_recording_are_two_notices() -> None:
    keys = [
        read_recorded(form(RecordingSid=RECORDING, RecordingStatus=status)).key
        for status in ("in-progress", "completed", "completed")
    ]
    assert len(set(keys)) == 2


def test_a_form_that_is_no_form_is_refused_without_its_words() -> None:
    with pytest.raises(RefusedInput) as refusal:
        read_form(b"SpeechResult=canary" + b"&a=1" * 600)
    assert "canary" not in str(refusal.value)


def test_words_that_were_cut_inside_an_emoji_are_kept() -> None:
    form = read_form(f"CallSid={CALL}&SpeechResult=Hi+%F0%9F%98".encode())
    assert read_gathered(form).text == "Hi \ufffd"


def test_numbers_and_words_are_in_no_repr() -> None:
    ring: RingNotice = read_ring(form(CallerName="canary"))
    shown = repr(ring) + repr(read_gathered(form(SpeechResult="canary", Digits="1234")))
    assert not any(word in shown for word in ("+1555", "canary", "1234"))
