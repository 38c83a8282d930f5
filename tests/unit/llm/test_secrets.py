import pytest

from aftercall.english.text import MASK
from aftercall.llm.rules.reader import RulesReader
from aftercall.model.reading import Reading
from unit.llm.calls import call_of


def _read(script: str) -> Reading:
    return RulesReader().read(call_of(script))


def _open_text(reading: Reading) -> str:
    facts = (fact for fact in reading.facts if fact.visibility != "secret")
    items = " ".join(
        item.model_dump_json()
        for item in (*reading.requests, *reading.withdrawn, *reading.promises, *facts)
    )
    return f"{reading.summary} {items}".lower()


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("My PIN is four four two one.", "four four two one"),
        ("The password is purple walrus nine.", "purple walrus nine"),
        ("The card number is 4111 1111 1111 1111.", "4111"),
        ("My member number is 778 201.", "778"),
        ("My PPS number is 7 4 1 1 9 0 2 K.", "7 4 1 1 9 0 2 k"),
        ("The safe code is nine one one seven.", "nine one one seven"),
        ("I was diagnosed with lupus last year.", "lupus"),
        ("I'm selling the company in May, don't tell anyone.", "selling the company"),
        ("Keep this between us, my marriage is over for good.", "my marriage is over"),
    ],
)
def test_a_secret_is_a_secret_fact_and_nothing_else(said: str, value: str) -> None:
    reading = _read(
        f"A: Hello?\nC: {said} Can you book me a table for Friday?\nA: I'll book it, and I "
        f"have {value}.\nC: Thanks."
    )
    assert [
        fact.visibility for fact in reading.facts if value in fact.words.lower()
    ] == ["secret"]
    assert value not in _open_text(reading)
    assert [request.kind for request in reading.requests] == ["booking"]


@pytest.mark.parametrize(
    "said",
    [
        "The boiler is showing a code, E one one nine.",
        "The dishwasher is throwing a code, F28.",
        "The part number is 77 41 20.",
        "My order number is 448812.",
    ],
)
def test_what_a_device_shows_and_numbers_of_orders_are_no_secrets(said: str) -> None:
    reading = _read(f"A: Hello?\nC: {said} Can you send somebody?\nA: I will.")
    assert not [fact for fact in reading.facts if fact.visibility == "secret"]


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("My phone is showing a code, 482913.", "482913"),
        ("The screen says my PIN is 447.", "447"),
        ("The gate code is C1234.", "c1234"),
        ("There's a gate. The code's 7719 pound.", "7719"),
    ],
)
def test_a_code_that_was_sent_or_opens_something_stays_secret(
    said: str, value: str
) -> None:
    reading = _read(f"A: Hello?\nC: {said} Can you send somebody?\nA: I will.")
    assert [fact.visibility for fact in reading.facts] == ["secret"]
    assert value not in _open_text(reading)


def test_a_confidence_covers_the_sentences_that_go_on_about_it() -> None:
    reading = _read(
        "A: Hello?\nC: This is between us, my wife and I are parting. She doesn't know I saw "
        "a lawyer about it. Could you book me a table for Friday?\nA: I'll book it."
    )
    told = " ".join(fact.words for fact in reading.facts if fact.visibility == "secret")
    assert "parting" in told
    assert "lawyer" in told
    assert "lawyer" not in _open_text(reading)
    assert [request.kind for request in reading.requests] == ["booking"]


def test_a_code_the_agent_asked_for_is_secret() -> None:
    reading = _read("A: What is your PIN?\nC: It's 90 12.\nA: Thanks, 9012.")
    assert [fact.visibility for fact in reading.facts] == ["secret"]
    assert "9012" not in _open_text(reading)


@pytest.mark.parametrize(
    "said",
    [
        "I forgot my password.",
        "I'll change the password tonight.",
        "Is the car park safe?",
        "We are 12 people.",
    ],
)
def test_talking_of_codes_reveals_none(said: str) -> None:
    assert not [
        fact
        for fact in _read(f"A: Hello?\nC: {said}").facts
        if fact.visibility == "secret"
    ]


@pytest.mark.parametrize(
    ("said", "value"),
    [
        (
            "The key box is 4 7 1 9, round the back. The key safe, I mean, is 4 7 1 9.",
            "4 7 1 9",
        ),
        ("To get in you press 5521 and then the bell.", "5521"),
        ("The alarm's 8080, turn it off first.", "8080"),
        ("Memorable word is trombone.", "trombone"),
        ("I have MS, so I can't manage stairs.", "MS"),
        ("They found a tumour last week.", "tumour"),
        ("I'm expecting but nobody at work knows yet.", "expecting"),
        (
            "I've handed in my notice, please don't tell my mother if she calls.",
            "handed in my notice",
        ),
        ("We're separating. Nobody knows, so please keep it quiet.", "separating"),
        (
            "Just so you know, and this is confidential, we're selling the firm.",
            "selling the firm",
        ),
    ],
)
def test_however_a_secret_is_told_it_is_marked(said: str, value: str) -> None:
    facts = [
        fact
        for fact in _read(f"A: Hello?\nC: {said}\nA: I see.").facts
        if value in fact.words
    ]
    assert facts
    assert {fact.visibility for fact in facts} == {"secret"}


def test_a_plea_for_silence_reaches_back_over_what_was_just_told() -> None:
    reading = _read(
        "A: Hello?\nC: I'm pregnant. It's twelve weeks. Nobody knows yet. Can you book me a "
        "table?\nA: For when?\nC: Friday."
    )
    assert {fact.visibility for fact in reading.facts if "pregnant" in fact.text} == {
        "secret"
    }
    assert "pregnant" not in _open_text(reading)


@pytest.mark.parametrize(
    "plea",
    [
        "Look, this is between us, all right? Don't go telling him I said so.",
        "This has to stay between us, please don't put it in any email.",
        "Please don't pass it on.",
    ],
)
def test_a_plea_for_silence_covers_what_follows_it_in_the_turn(plea: str) -> None:
    reading = _read(
        "A: Hello?\nC: My sister lives in Leeds.\nA: I see.\n"
        f"C: {plea} I've handed my notice in at the bank.\nA: I understand."
    )
    secret = [fact.text for fact in reading.facts if fact.visibility == "secret"]
    assert ["notice" in text for text in secret] == [True]


def test_no_detail_of_a_request_shows_where_a_secret_was() -> None:
    reading = _read(
        "A: Hello?\nC: Please order two bags of flour. My card number is 4929 1111 2222 3333, and "
        "deliver them to the back door, the code there is 4471.\nA: Two bags of flour."
    )
    assert reading.requests
    assert MASK not in " ".join(request.details for request in reading.requests)


def test_a_bare_number_is_filed_under_what_it_was_asked_as() -> None:
    reading = _read(
        "A: Could you read me the last four of your card?\nC: Eight eight two one.\nA: Thank you."
    )
    assert ["last four" in fact.text for fact in reading.facts] == [True]


@pytest.mark.parametrize(
    "said",
    [
        "The gate is on the left.",
        "Is the diabetes clinic open?",
        "We're a party of 12.",
        "Don't tell me it's raining.",
        "Press the bell twice.",
    ],
)
def test_plain_talk_holds_no_secret(said: str) -> None:
    assert not [
        fact
        for fact in _read(f"A: Hello?\nC: {said}").facts
        if fact.visibility == "secret"
    ]


@pytest.mark.parametrize(
    ("said", "value"),
    [
        (
            "I'll pay, it's 5412 7700 1938 2206, expires oh four thirty, the back's 318.",
            "2206",
        ),
        (
            "I'll pay, it's 5412 7700 1938 2206, expires oh four thirty, the back's 318.",
            "318",
        ),
        ("The door has a code, C1944.", "c1944"),
        (
            "We're moving to Oslo. But my mum doesn't know yet. Don't tell anyone.",
            "oslo",
        ),
        (
            "The suit's for his wedding. So please don't mention it to anybody who rings.",
            "wedding",
        ),
        ("I'm throwing her a surprise party.", "surprise party"),
        ("My landlord does not know that I am closing the shop.", "closing the shop"),
        ("I'm selling the boat, keep that between us, okay?", "selling the boat"),
    ],
)
def test_all_that_is_secret_in_a_turn_is_told_nowhere(said: str, value: str) -> None:
    reading = _read(
        f"A: Hello?\nC: Could you book me a table for Friday? {said}\nA: Noted."
    )
    assert value not in _open_text(reading)
    assert any(fact.visibility == "secret" for fact in reading.facts)


def test_hearing_aids_are_no_illness() -> None:
    reading = _read("A: Hello?\nC: I've got your hearing aids here.\nA: Thanks.")
    assert not any(fact.visibility == "secret" for fact in reading.facts)


def test_a_code_that_the_agent_tells_when_asked_is_hidden_too() -> None:
    reading = _read(
        "A: I'll leave your key in the key safe.\nC: And what is the code for it?\n"
        "A: It's four four eight two, star.\nC: Four four eight two star. Can I have a cot?\n"
        "A: We'll put one in the room."
    )
    assert [fact.visibility for fact in reading.facts] == ["secret"]
    assert "four four eight" not in _open_text(reading)


def test_of_a_code_its_figures_are_hidden_and_not_who_says_it() -> None:
    reading = _read(
        "A: Order line.\nC: It's Deepak at the Saffron House, account four one nine."
    )
    assert [fact.words for fact in reading.facts] == ["four one nine"]


def test_a_confidence_and_who_does_not_know_yet_are_one_secret() -> None:
    reading = _read(
        "A: Is it an occasion?\nC: Please keep this to yourself, I'm retiring in June. My "
        "husband doesn't even know yet."
    )
    assert [(fact.visibility, fact.words) for fact in reading.facts] == [
        (
            "secret",
            "Please keep this to yourself, I'm retiring in June. My husband doesn't even know yet",
        )
    ]


@pytest.mark.parametrize(
    "talk",
    [
        "A: Which door is it?\nC: The seven six two oak. It's on the ticket.",
        "A: Are you with us?\nC: I've been a member since nineteen eighty four.",
        "A: No fines.\nC: Nobody tells you anything. Well, that has cheered me up.",
        "A: A room?\nC: Yes. Joe says it's supposed to be a surprise for me.",
    ],
)
def test_what_only_sounds_like_a_secret_is_none(talk: str) -> None:
    reading = _read(talk)
    assert not any(fact.visibility == "secret" for fact in reading.facts)


def test_who_warns_of_telling_a_password_asks_for_none() -> None:
    reading = _read(
        "A: Please don't tell me your password.\nC: Have I done wrong? My son will be cross."
    )
    assert not any(fact.visibility == "secret" for fact in reading.facts)
