"""The time of a reading grows with the length of the call, whatever is said in it.

Times are compared within one run: a text against the same text four times as long, which may take
four times the time. A reader that compares everything with everything takes sixteen times as
much. What lies between is for the caches, which hold the short text and not the long one.
"""

import random
import time
from collections.abc import Callable

import pytest

from aftercall.llm.rules.reader import RulesReader
from aftercall.model.calls import Call
from fakes import make_call

TURN_CHARS = 2_500
TURNS = 50
LONGER = 4
MAX_RATIO = 10.0
ATTEMPTS = 5

# Each is said over and over again; {n} counts.
SAYINGS = (
    "one two", "i need", "can you call", "please book a table on monday.", "my pin is 1234",
    "yes", "no", "uh um", "and then", "tomorrow", "on monday", "my name is Ann", "A", "a,", ".",
    "?", "!", ",", "-", "don't tell anyone", "i have diabetes.", "i am on prozac", "scratch that",
    "actually no", "the code is four seven", "J. Smith", "@", "at 5 pm", "spell a b c",
    "double four", "every day", "remind me to", "if i could", "he said", "she wants", "because",
    "that's", "we've", "it is not", "(", '"', "'", "…", "\n", "12", "Ab Cd", "Dr.",
    "the twenty first of", "next week", "the third thing", "and i need", "or", "which", "call me",
    "my number is 555", "email bob at x dot com", "zero oh hundred", "my wife Ann", "my mum's",
    "i'm allergic to nuts.", "i prefer", "i hate", "we decided to", "i will call you",
    "let me", "keep it to yourself", "between us", "nobody knows", "in berlin", "they them",
    "é", "日本", "ja und der die das", "please call Ann{n}.", "i need {n} chairs,",
    "my code is {n}",
    "remind me to ring number {n}. ", "cancel the {n}th one.", "no not {n}, {n}", "w{n}",
)  # fmt: skip


def mix_sayings(seed: int) -> str:
    picked = random.Random(seed).sample(SAYINGS, 3)
    return " ".join(picked)


PATTERNS = [*SAYINGS, *(mix_sayings(seed) for seed in range(100 - len(SAYINGS) + 1))]


def repeat(pattern: str, chars: int) -> str:
    words = ""
    count = 1000
    while len(words) < chars:
        words += pattern.replace("{n}", str(count)) + " "
        count += 1
    return words[:chars]


def in_one_turn(pattern: str, times: int) -> Call:
    said = repeat(pattern, times * TURN_CHARS)
    return make_call([("agent", "What can I do for you?"), ("caller", said)])


def in_many_turns(pattern: str, times: int) -> Call:
    turns = [
        ("agent" if number % 4 == 0 else "caller", repeat(pattern, 40))
        for number in range(times * TURNS)
    ]
    return make_call(turns)


def measure(call: Call) -> float:
    start = time.process_time()
    RulesReader().read(call)
    return time.process_time() - start


@pytest.fixture(scope="module", autouse=True)
def _loaded_rules() -> None:
    """What the first readings load is no part of the time of the others."""
    said = [("caller", repeat(pattern, 100)) for pattern in PATTERNS]
    RulesReader().read(make_call(said))


@pytest.mark.parametrize("say", [in_one_turn, in_many_turns])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_four_times_the_words_take_about_four_times_the_time_and_not_sixteen(
    pattern: str, say: Callable[[str, int], Call]
) -> None:
    short, long = say(pattern, 1), say(pattern, LONGER)
    shortest, longest = measure(short), measure(long)
    for _ in range(ATTEMPTS):
        if longest <= MAX_RATIO * shortest:
            return
        # The machine may have done something else meanwhile: the best of several counts.
        shortest, longest = min(shortest, measure(short)), min(longest, measure(long))
    assert longest <= MAX_RATIO * shortest
