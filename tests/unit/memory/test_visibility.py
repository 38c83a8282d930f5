"""Levels: by category and topic, by what was confided, by the settings; only ever upwards."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.llm.rules.reader import RulesReader
from aftercall.memory.extraction import filter_drafts
from aftercall.memory.visibility import classify, find_call_secrets, redact_turns
from aftercall.model.facts import LEVELS
from aftercall.model.reading import Visibility
from aftercall.settings import Settings
from aftercall.settings.sections import MemorySettings
from fact_drafts import draft, say
from fakes import make_call


def level(
    text: str, said: Visibility = "shared", settings: MemorySettings | None = None
) -> Visibility:
    return classify(draft(text, visibility=said), [], settings or MemorySettings())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I like tea", "shared"),
        ("My PIN is 4821", "secret"),
        ("The wifi password is sunflower", "secret"),
        ("My card number is 4111 1111 1111 1111", "secret"),
        ("It's 4111111111111111, the long one", "secret"),
        ("I was diagnosed with lupus", "secret"),
        ("My account number is 12345678", "secret"),
        ("I earn 3000 a month", "secret"),
        ("I'm on new medication", "secret"),
        ("Our deployment workflow needs two approvals", "private"),
        ("My son is allergic to nuts", "shared"),
        ("I forgot my password", "shared"),
        ("Order 4111111111111112 was late", "shared"),
    ],
)
def test_topics_have_their_level(text: str, expected: Visibility) -> None:
    assert level(text) == expected


@given(st.text(max_size=80), st.sampled_from(LEVELS))
def test_a_readers_level_is_never_lowered(text: str, said: Visibility) -> None:
    for settings in (
        MemorySettings(),
        MemorySettings(
            visibility={
                "preference": "shared",
                "medical": "shared",
                "confided": "shared",
            }
        ),
    ):
        assert LEVELS.index(level(text, said, settings)) >= LEVELS.index(said)


def test_settings_raise_a_category_or_name_words() -> None:
    settings = MemorySettings(
        visibility={"preference": "private"}, secret_words=("Falcon",)
    )
    assert (
        level("I like tea", settings=settings),
        level("project falcon is late", settings=settings),
    ) == ("private", "secret")
    assert level("the falconry club", settings=settings) == "private"


def test_settings_can_say_that_a_topic_is_less_here() -> None:
    assert (
        level(
            "I'm on new medication",
            settings=MemorySettings(visibility={"medical": "private"}),
        )
        == "private"
    )


def test_settings_are_read_from_the_environments_one_line() -> None:
    memory = MemorySettings.model_validate(
        {
            "visibility": "routine=private, emotional=secret",
            "secret_words": "Falcon, Heron",
        }
    )
    assert memory.visibility == {"routine": "private", "emotional": "secret"}
    assert memory.secret_words == ("Falcon", "Heron")


def test_a_fact_that_repeats_a_secret_of_the_call_is_secret() -> None:
    call = say(
        "The key safe code is four four one nine", "I told my neighbour 4 4 1 9 as well"
    )
    confided = find_call_secrets(call, ())
    assert (
        classify(draft("My neighbour knows 4419"), confided, MemorySettings())
        == "secret"
    )


def test_the_words_around_a_fact_show_no_secret() -> None:
    call = say(
        "My PIN is 4821, and I like tea in the morning", "The password is sunflower"
    )
    (kept,) = filter_drafts(
        call, [draft("I like tea", words="I like tea in the morning")], Settings()
    ).accepted
    assert "I like tea" in kept.context
    assert "4821" not in kept.context
    assert "sunflower" not in kept.context


def test_a_veil_hides_what_was_confided_and_the_agents_echo_of_it() -> None:
    said = [
        ("agent", "PIN?"),
        ("caller", "My PIN is four eight two one."),
        ("agent", "4 8 2 1, thank you."),
        ("caller", "I like tea."),
    ]
    shown = " ".join(turn.text for turn in redact_turns(make_call(said).turns))
    assert "I like tea." in shown
    assert not any(word in shown for word in ("eight two", "4 8", "4821"))


def test_a_contraction_in_what_was_confided_is_no_name() -> None:
    said = (("agent", "I'm afraid we're full."), ("caller", "Hello, this is June."))
    shown = redact_turns(make_call(said).turns, ["and I'm moving out in June"])
    assert [turn.text for turn in shown] == [
        "I'm afraid we're full.",
        "Hello, this is •••.",
    ]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("I prefer the window seat.", "shared"),
        ("I'd rather have tea in the morning.", "shared"),
        ("My wife is called Ana.", "shared"),
        ("My son Tom goes to Riverside School.", "shared"),
        ("We have two kids and a dog.", "shared"),
        ("I live in Porto.", "shared"),
        ("I get up at six every morning.", "shared"),
        ("My husband has a pacemaker.", "private"),
        ("I'm in a wheelchair.", "private"),
        ("I'm really upset about the delay.", "private"),
    ],
)
def test_the_rules_share_preferences_and_family_but_not_health_or_feelings(
    said: str, expected: Visibility
) -> None:
    call = say(said)
    kept = filter_drafts(
        call, RulesReader().find_facts(call).value, Settings()
    ).accepted
    assert {fact.visibility for fact in kept} == {expected}
