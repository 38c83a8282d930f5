"""Values of secrets are blotted out of every text, in time that grows with both."""

import time
from collections.abc import Callable

import pytest

from aftercall.english.masking import ValueMask
from aftercall.english.text import MASK
from aftercall.english.words import clear_caches


def hide(text: str, *values: str) -> str:
    return ValueMask(values).apply(text).replace(MASK, "*")


@pytest.mark.parametrize(
    ("text", "value", "hidden"),
    [
        ("It is 4401, yes.", "four four oh one", "It is ****, yes."),
        ("It is four-four, oh one.", "4401", "It is *****************."),
        ("Forty-four zero one!", "forty four oh one", "*******************!"),
        ("In 44012 and 14401.", "4401", "In 44012 and 14401."),
        ("Nineteen eighty-four.", "1984", "********************."),
        ("It ends in 2000.", "4111 1111 1000 2000", "It ends in ****."),
        ("PIN ٤٤٠١ or 4401", "٤٤٠١", "PIN **** or ****"),
        ("HUNTER2 and hunter20", "hunter2", "******* and hunter20"),
        ("nothing", "", "nothing"),
    ],
)
def test_a_value_is_hidden_however_it_is_said_again(
    text: str, value: str, hidden: str
) -> None:
    assert hide(text, value) == hidden


def test_overlapping_pieces_of_a_confidence_are_hidden_whole() -> None:
    told = "my sister Rosalind moved to Aberdeen"
    assert hide("So Rosalind moved to Aberdeen, then?", told) == (
        "So **************************, then?"
    )


def test_a_number_that_ends_in_a_letter_is_not_cut_in_every_way() -> None:
    """Cutting sixty figures in every way would not end."""
    password = "1" * 60 + "x"
    assert hide(f"It is {password}.", password) == f"It is {'*' * 61}."


@pytest.mark.parametrize(
    "say",
    [
        lambda at: f"4111 1111 {1000 + at} {9000 - at}",
        lambda at: f"hunter{at}x",
        lambda at: f"our daughter number {at} is leaving her husband",
    ],
)
def test_time_grows_with_the_secrets_and_not_with_their_square(
    say: Callable[[int], str],
) -> None:
    def measure(count: int) -> float:
        values = [say(at) for at in range(count)]
        text = ". ".join(f"It is {value}" for value in values)
        clear_caches()
        began = time.process_time()
        masked = ValueMask(values).apply(text)
        spent = time.process_time() - began
        assert masked.count(MASK) >= sum(map(len, values))
        return spent

    measure(50)
    few = min(measure(200) for _ in range(3))
    many = min(measure(800) for _ in range(3))
    assert many <= 6 * few
