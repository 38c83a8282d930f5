"""Whatever the frame and whatever is asked: one request.

Whatever the words and whatever is called off: none.
"""

from hypothesis import given, settings
from hypothesis import strategies as st

from aftercall.llm.rules.reader import RulesReader
from aftercall.model.reading import Reading, Request
from unit.llm.calls import call_of

# What is asked, a word that tells it, and how the agent takes it up.
ACTS = (
    ("book a table for Friday", "table", "Friday at seven, then."),
    ("send me the brochure", "brochure", "I'll post it today."),
    ("change my delivery address", "address", "I'll change that."),
    ("order some more toner", "toner", "I'll order it."),
    ("mend the gutter", "gutter", "I'll send somebody."),
    ("remind me about the rent on Monday", "rent", "I'll remind you."),
    ("let Carla know the van is late", "carla", "I'll tell her."),
    ("have someone look at the boiler", "boiler", "I'll log it."),
    ("move my appointment to Thursday", "appointment", "Thursday at ten."),
    ("cancel my subscription", "subscription", "That's cancelled."),
)
FRAMES = (
    "Can you {}?",
    "Could you {} please?",
    "I was hoping you could {}.",
    "I was wondering if you could {}.",
    "I wonder if someone could {}.",
    "Would it be possible to {}?",
    "Any chance you could {}?",
    "Do you think you could {}?",
    "Could somebody {}?",
    "If you could {}, that'd be great.",
    "I need you to {}.",
    "I'll need you to {}.",
    "I'd be grateful if you'd {}.",
    "I must ask you to {}.",
    "Can I ask you to {}?",
    "Would you be able to {}?",
    "Can you do me a favour and {}?",
    "Don't forget to {}.",
    "Be a love and {}.",
    "So what I'm after is for you to {}.",
    "um can you uh {}",
    "hi yeah can you {} thanks",
)
FURTHER = ("Also, {}.", "Oh, and could you {}?", "And {}.")
# What is asked, its word, how the agent takes it up: each can be called off by name.
THINGS = (
    (
        "Can you order two dozen rolls for Saturday?",
        "rolls",
        "Two dozen rolls, Saturday.",
    ),
    (
        "I'd like to book the squash court for Friday at six.",
        "squash",
        "Squash court on Friday at six.",
    ),
    (
        "Could you send a plumber to look at the tap?",
        "plumber",
        "I can send someone on Thursday.",
    ),
    (
        "I want to close my savings account.",
        "savings",
        "I'll close it at the end of the month.",
    ),
    ("Remind me to ring the dentist tomorrow.", "dentist", "I'll remind you tomorrow."),
    ("Add a birthday cake to the order please.", "cake", "I've added the cake."),
    ("Put me down for the wine tasting.", "tasting", "You're down for the tasting."),
    ("I need a taxi to the station at five.", "taxi", "A taxi at five."),
)
BY_NAME = (
    "Actually, forget the {}.",
    "Scrap the {}, would you.",
    "Oh, and no {} after all.",
    "Hang on, cancel the {}, I've changed my mind.",
    "The {}, leave that.",
    "You know what, leave the {}.",
    "Don't bother with the {}.",
    "I don't need the {} any more.",
    "Let's skip the {}.",
    "On second thoughts, not the {}.",
    "Actually the {} can wait.",
    "About the {}, don't worry about it, my brother's doing it.",
    "Take the {} off again.",
    "I'll do without the {}.",
    "Hold off on the {} for now.",
    "Oh, the {}, I've sorted that myself.",
    "Knock the {} on the head.",
)
AT_ONCE = (
    "Actually, no, forget it.",
    "Oh, wait, no. Never mind.",
    "Hm, actually, leave it.",
    "No, hang on, don't, I'll do it myself.",
    "Scratch that.",
    "On second thoughts, no.",
    "Oh no, wait, my wife's already done it. Leave that.",
    "Actually let me think about it first.",
    "No, sorry, forget I asked.",
    "Let's not, actually.",
    "Well, hang on, no. I'll see.",
    "Oh, don't bother, I've just found one.",
)


def _read(script: str) -> Reading:
    return RulesReader().read(call_of(script))


def _text(request: Request) -> str:
    return f"{request.title} {request.details} {request.words}".lower()


@given(st.sampled_from(ACTS), st.sampled_from(FRAMES))
@settings(max_examples=60, deadline=None)
def test_whatever_the_frame_one_thing_asked_is_one_request(
    act: tuple[str, str, str], frame: str
) -> None:
    asked, word, reply = act
    requests = _read(
        f"A: Good morning, how can I help?\nC: {frame.format(asked)}\nA: {reply}\nC: Thanks, bye."
    ).requests
    assert len(requests) == 1
    assert word in _text(requests[0])


@given(
    st.lists(st.sampled_from(ACTS), min_size=2, max_size=2, unique=True),
    st.sampled_from(("Also, {}.", "Oh, and could you {}?", "And {}.")),
)
@settings(max_examples=40, deadline=None)
def test_two_things_asked_are_two_requests(
    acts: list[tuple[str, str, str]], further: str
) -> None:
    (first, one, reply), (second, two, answer) = acts
    script = (
        f"A: Hello?\nC: I'd like you to {first}.\nA: {reply}\nC: {further.format(second)}\nA: "
        f"{answer}\nC: Bye."
    )
    requests = _read(script).requests
    assert len(requests) == 2
    assert {
        word
        for word in (one, two)
        if any(word in _text(request) for request in requests)
    } == {
        one,
        two,
    }


@given(st.sampled_from(THINGS), st.sampled_from(BY_NAME), st.booleans())
@settings(max_examples=80, deadline=None)
def test_what_is_called_off_by_name_is_gone_and_the_rest_stays(
    thing: tuple[str, str, str], way: str, same_breath: bool
) -> None:
    asked, word, reply = thing
    turns = [
        "C: Could you email me the brochure?",
        "A: I'll email you the brochure.",
        f"C: {asked}",
        f"A: {reply}",
    ]
    turns = (
        [
            f"C: Could you email me the brochure? {asked}",
            f"A: I'll email you the brochure. {reply}",
        ]
        if same_breath
        else turns
    )
    reading = _read(
        "\n".join(
            ["A: Hello?", *turns, f"C: {way.format(word)}", "A: All right.", "C: Bye."]
        )
    )
    assert not [request for request in reading.requests if word in _text(request)]
    assert [request for request in reading.requests if "brochure" in _text(request)]


@given(st.sampled_from(THINGS), st.sampled_from(AT_ONCE), st.booleans())
@settings(max_examples=80, deadline=None)
def test_what_is_thought_better_of_at_once_is_gone_and_the_rest_stays(
    thing: tuple[str, str, str], way: str, same_breath: bool
) -> None:
    asked, word, reply = thing
    turns = (
        [f"C: {asked} {way}"]
        if same_breath
        else [f"C: {asked}", f"A: {reply}", f"C: {way}"]
    )
    script = [
        "A: Hello?",
        "C: Could you email me the brochure?",
        "A: I'll email you the brochure.",
        *turns,
        "A: All right.",
        "C: Bye.",
    ]
    reading = _read("\n".join(script))
    assert not [request for request in reading.requests if word in _text(request)]
    assert [request for request in reading.requests if "brochure" in _text(request)]
