"""Two agents on the emulated exchange: what one says the other hears, in virtual time, whatever
the webhooks do.
"""

import asyncio
import io
import wave
from array import array
from collections.abc import Callable
from urllib.parse import parse_qs

import httpx2
import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st
from twilio.request_validator import RequestValidator

from aftercall.lab.carrier import DeliveryFaults
from aftercall.lab.exchange import VOICEMAIL_GREETING, LabDial, LabNumber, PhoneNetwork
from aftercall.lab.leg import Leg
from aftercall.lab.twilio import APOLOGY

TOKEN = "token"
AGENT, TESTER = "https://agent.example/voice", "https://tester.example/voice"
EVERYTHING = frozenset({"initiated", "ringing", "answered", "completed"})

Answer = Callable[[str, dict[str, str]], str]
"""Host and form in, TwiML out."""


def gather(says: str = "", **attributes: object) -> str:
    extra = "".join(f' {name}="{value}"' for name, value in attributes.items())
    return f'<Gather input="speech" action="/voice"{extra}><Say>{says}</Say></Gather>'


class Box:
    def __init__(self, agent: Answer, tester: Answer, **options: object) -> None:
        self.forms: list[tuple[str, dict[str, str]]] = []
        self._answers = {"agent.example": agent, "tester.example": tester}
        numbers = {
            "+15550101": LabNumber(AGENT, "https://agent.example/status"),
            "+15550102": LabNumber(outcome="busy"),
            "+15550103": LabNumber(outcome="no-answer"),
            "+15550104": LabNumber(outcome="failed"),
            "+15550105": LabNumber(outcome="voicemail"),
        }
        self.exchange = PhoneNetwork(
            TOKEN,
            numbers=numbers,
            transport=httpx2.MockTransport(self._answer),
            **options,  # type: ignore[arg-type]
        )

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        form = {
            name: values[0]
            for name, values in parse_qs(
                request.content.decode(), keep_blank_values=True
            ).items()
        }
        assert RequestValidator(TOKEN).validate(
            str(request.url), form, request.headers["X-Twilio-Signature"]
        )
        host, path = request.url.host, request.url.path
        self.forms.append((host + path, form))
        if path != "/voice":
            return httpx2.Response(204)
        return httpx2.Response(
            200,
            text=f"<Response>{self._answers[host](host, form)}</Response>",
            headers={"Content-Type": "text/xml"},
        )

    async def call(self, to: str = "+15550101", **fields: object) -> Leg:
        async with self.exchange as exchange:
            dial = LabDial(
                to,
                "+15550100",
                TESTER,
                "https://tester.example/status",
                EVERYTHING,
                **fields,  # type: ignore[arg-type]
            )
            leg = exchange.dial(dial)
            await exchange.drain()
        return leg

    def statuses(self, host: str = "tester.example") -> list[str]:
        return [
            form["CallStatus"] for path, form in self.forms if path == f"{host}/status"
        ]

    def heard_by(self, host: str) -> list[str]:
        return [
            form["SpeechResult"]
            for path, form in self.forms
            if path == f"{host}/voice" and "SpeechResult" in form
        ]


def receptionist(host: str, form: dict[str, str]) -> str:
    if "bye" in form.get("SpeechResult", ""):
        return "<Say>Goodbye then.</Say><Hangup/>"
    if "SpeechResult" in form:
        return (
            gather("I have taken that down. Anything else?")
            + "<Redirect>/voice</Redirect>"
        )
    return gather("Hello, how can I help you today?") + "<Redirect>/voice</Redirect>"


def script(*lines: str) -> Answer:
    rest = list(lines)

    def answer(host: str, form: dict[str, str]) -> str:
        if "SpeechResult" not in form or not rest:
            return gather(timeout=30)
        return f"<Say>{rest.pop(0)}</Say>{gather(timeout=30)}"

    return answer


async def test_what_one_leg_says_is_what_the_other_hears() -> None:
    box = Box(
        receptionist, script("Please open a bug about the gallery.", "No thanks, bye.")
    )
    leg = await box.call()
    assert box.heard_by("agent.example") == [
        "Please open a bug about the gallery.",
        "No thanks, bye.",
    ]
    assert box.heard_by("tester.example") == [
        "Hello, how can I help you today?",
        "I have taken that down. Anything else?",
    ]
    assert leg.heard[-1] == "Goodbye then."
    assert box.statuses() == ["initiated", "ringing", "in-progress", "completed"]
    assert box.statuses("agent.example") == ["completed"]
    assert {
        form["Direction"] for path, form in box.forms if path.startswith("agent")
    } == {"inbound"}
    assert len({form["CallSid"] for _, form in box.forms}) == 2


async def test_time_is_the_time_that_speaking_takes() -> None:
    box = Box(receptionist, script("bye"))
    await box.call()
    durations = [
        int(form["CallDuration"])
        for path, form in box.forms
        if form.get("CallDuration") and path.startswith("tester")
    ]
    assert durations == [6]  # 7 words, a pause, one word, a pause, two words


async def test_a_caller_who_speaks_over_the_agent_is_heard_and_the_agent_breaks_off() -> (
    None
):
    def interrupt(host: str, form: dict[str, str]) -> str:
        return (
            ""
            if "SpeechResult" in form
            else f"<Pause length='1'/><Say>Wait a moment bye</Say>{gather(timeout=3)}"
        )

    box = Box(receptionist, interrupt)
    leg = await box.call()
    assert box.heard_by("agent.example") == ["Wait a moment bye"]
    # the tester was speaking itself and missed it; the agent stopped after a second
    assert leg.heard[0] == "Hello, how"


async def test_an_agent_that_takes_no_barge_in_speaks_to_its_end_and_listens_then() -> (
    None
):
    def agent(host: str, form: dict[str, str]) -> str:
        return (
            ""
            if "SpeechResult" in form
            else gather("Please hear me out first", bargeIn="false")
        )

    def tester(host: str, form: dict[str, str]) -> str:
        return (
            "<Pause length='0.8'/><Say>one two three four five</Say><Pause length='5'/>"
        )

    box = Box(agent, tester)
    leg = await box.call()
    assert leg.heard == ["Please hear me out first"]
    assert box.heard_by("agent.example") == ["four five"], (
        "what was said over the prompt is lost"
    )


async def test_who_listens_late_has_missed_the_beginning() -> None:
    box = Box(
        receptionist,
        lambda host, form: (
            "<Hangup/>"
            if "SpeechResult" in form
            else f"<Pause length='1'/>{gather(timeout=9)}"
        ),
    )
    await box.call()
    assert box.heard_by("tester.example") == ["can I help you today?"]


async def test_silence_falls_through_and_a_document_that_ends_hangs_up() -> None:
    box = Box(
        lambda host, form: gather("Hello?"), lambda host, form: gather(timeout=60)
    )
    leg = await box.call()
    assert leg.state == "completed"
    assert leg.heard == ["Hello?"]


@pytest.mark.parametrize(
    ("to", "statuses"),
    [
        ("+15550102", ["initiated", "ringing", "busy"]),
        ("+15550103", ["initiated", "ringing", "no-answer"]),
        ("+15550104", ["initiated", "failed"]),
        ("+15550199", ["initiated", "failed"]),
    ],
)
async def test_a_number_that_does_not_answer_is_told_as_twilio_tells_it(
    to: str, statuses: list[str]
) -> None:
    box = Box(receptionist, script())
    leg = await box.call(to)
    assert box.statuses() == statuses
    assert [path for path, _ in box.forms if path.endswith("/voice")] == []
    assert leg.is_over


async def test_voice_mail_speaks_and_is_told_as_a_machine() -> None:
    box = Box(
        receptionist,
        lambda host, form: (
            "<Hangup/>" if "SpeechResult" in form else gather(timeout=20)
        ),
    )
    await box.call("+15550105", detects_machines=True)
    assert box.heard_by("tester.example") == [VOICEMAIL_GREETING]
    assert {
        form["AnsweredBy"] for path, form in box.forms if path == "tester.example/voice"
    } == {"machine_start"}


async def test_an_agent_that_rejects_the_call_was_busy() -> None:
    box = Box(lambda host, form: '<Reject reason="busy"/>', script())
    await box.call()
    assert box.statuses() == ["initiated", "ringing", "busy"]
    assert box.statuses("agent.example") == ["busy"]


async def test_an_agent_whose_answer_cannot_be_read_is_heard_to_apologise() -> None:
    box = Box(lambda host, form: "<Dance/>", script())
    leg = await box.call()
    assert leg.heard == [APOLOGY]
    assert [
        other.fault.code for other in box.exchange.legs.values() if other.fault
    ] == [12200]


async def test_callbacks_come_twice_and_out_of_order_when_asked() -> None:
    box = Box(
        receptionist,
        script("bye"),
        delivery_faults=DeliveryFaults(
            duplicated_kinds=frozenset({"completed"}),
            delay_s_by_kind={"initiated": 0.05},
        ),
    )
    await box.call()
    told = box.statuses()
    assert sorted(told) == sorted(
        ["initiated", "ringing", "in-progress", "completed", "completed"]
    )
    assert told[0] != "initiated"
    assert [
        form["SequenceNumber"]
        for path, form in box.forms
        if path == "tester.example/status" and form["CallStatus"] == "initiated"
    ] == ["0"]


@pytest.mark.parametrize(
    ("habits", "times"),
    [
        (DeliveryFaults(), 1),
        (DeliveryFaults(duplicated_kinds=frozenset({"recording"})), 2),
        (DeliveryFaults(delay_s_by_kind={"recording": 0.05}), 1),
    ],
)
async def test_a_recording_is_told_once_twice_or_after_the_end(
    habits: DeliveryFaults, times: int
) -> None:
    box = Box(receptionist, script("bye"), delivery_faults=habits)
    leg = await box.call(
        is_recorded=True, recording_url="https://tester.example/recording"
    )
    told = [
        (path, form.get("RecordingStatus"), form["CallSid"])
        for path, form in box.forms
        if path.endswith(("/recording", "tester.example/status"))
    ]
    assert told.count(("tester.example/recording", "completed", leg.sid)) == times
    assert (told[-1][1] == "completed") is bool(habits.delay_s_by_kind)


async def test_a_silent_call_has_no_recording_and_says_so() -> None:
    box = Box(receptionist, script("bye"))
    async with box.exchange as exchange:
        leg = exchange.dial(
            LabDial(
                "+15550101",
                "+15550100",
                TESTER,
                is_recorded=True,
                recording_url="https://tester.example/recording",
            )
        )
        exchange.recordings.by_sid.clear()
        await exchange.drain()
    (form,) = [form for path, form in box.forms if path == "tester.example/recording"]
    assert (form["RecordingStatus"], form["ErrorCode"], form["RecordingSid"]) == (
        "absent",
        "16102",
        leg.recordings[0],
    )


async def test_a_call_is_no_longer_than_whoever_made_it_allows() -> None:
    box = Box(
        receptionist,
        lambda host, form: f"<Say>and another thing</Say>{gather(timeout=30)}",
    )
    leg = await box.call(limit_s=300)
    assert leg.state == "completed"
    (duration,) = [
        int(form["CallDuration"])
        for path, form in box.forms
        if form.get("CallDuration") and path.startswith("tester")
    ]
    assert 298 <= duration <= 300


async def test_keys_reach_an_agent_that_takes_them() -> None:
    def menu(host: str, form: dict[str, str]) -> str:
        if "Digits" in form:
            return f"<Say>You pressed {form['Digits']}</Say>"
        return (
            '<Gather input="speech dtmf" action="/voice" timeout="9"><Say>Press one for '
            "sales</Say></Gather>"
        )

    box = Box(
        menu,
        lambda host, form: "<Pause length='3'/><Play digits='12'/><Pause length='9'/>",
    )
    leg = await box.call()
    assert leg.heard == ["Press one for sales", "You pressed 12"]


async def test_the_recording_hums_when_somebody_speaks_and_is_silent_when_nobody_does() -> (
    None
):
    box = Box(receptionist, script("bye"))
    leg = await box.call(
        is_recorded=True, recording_url="https://tester.example/recording"
    )
    with wave.open(
        io.BytesIO(box.exchange.recordings.by_sid[leg.recordings[0]].audio)
    ) as sound:
        samples = array("h", sound.readframes(sound.getnframes()))
        assert sound.getnframes() == 6 * sound.getframerate()
    loud = [
        [
            max(map(abs, samples[side::2][at * 800 : at * 800 + 800])) > 1000
            for at in range(60)
        ]
        for side in (0, 1)
    ]
    # "bye", a second after the greeting
    assert [at for at in range(60) if loud[0][at]] == list(range(38, 42))
    # seven words, then two
    assert [at for at in range(60) if loud[1][at]] == [
        *range(28),
        *range(52, 60),
    ]


VERBS = st.lists(
    st.sampled_from(
        [
            "<Say>one two three</Say>",
            "<Say/>",
            "<Pause length='2'/>",
            gather("four five"),
            gather(timeout=2),
            gather(timeout=7, speechTimeout=3),
        ]
    ),
    max_size=5,
)


@hypothesis.settings(max_examples=60)
@given(
    ours=st.lists(VERBS, min_size=1, max_size=3),
    theirs=st.lists(VERBS, min_size=1, max_size=3),
)
def test_whatever_two_agents_do_the_call_ends_and_nothing_is_heard_that_was_not_said(
    ours: list[list[str]], theirs: list[list[str]]
) -> None:
    def player(documents: list[list[str]]) -> Answer:
        rest = ["".join(verbs) for verbs in documents]
        return lambda host, form: rest.pop(0) if rest else "<Hangup/>"

    async def play() -> None:
        box = Box(player(theirs), player(ours))
        leg = await box.call()
        assert leg.state == "completed"
        said = {
            "agent.example": leg.heard,
            "tester.example": [
                " ".join(part.words) for part in leg.end.said if part.words
            ],
        }
        for listener, speaker in (
            ("agent.example", "tester.example"),
            ("tester.example", "agent.example"),
        ):
            for text in box.heard_by(listener):
                assert text in " ".join(said[speaker])

    asyncio.run(asyncio.wait_for(play(), 20))


async def test_a_recogniser_may_hear_wrong_and_not_know_how_sure_it_is() -> None:
    box = Box(
        receptionist,
        script("bye"),
        recognise=lambda text: (text.replace("bye", "pie bye"), None),
    )
    await box.call()
    assert box.heard_by("agent.example") == ["pie bye"]
    assert all("Confidence" not in form for _, form in box.forms)
