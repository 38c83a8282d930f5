"""The translation table of audio: judged by the standard library's own while Python still has
it.
"""

import warnings

import pytest

from aftercall.phone.telnyx import ALAW_TO_MULAW


def test_the_table_is_that_of_the_standard_library() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        audioop = pytest.importorskip("audioop", reason="gone from Python 3.13")
    alaw = bytes(range(256))
    assert audioop.lin2ulaw(audioop.alaw2lin(alaw, 2), 2) == ALAW_TO_MULAW


@pytest.mark.parametrize(
    ("alaw", "mulaw"), [(0xD5, 0xFF), (0x55, 0x7F), (0xAA, 0x80), (0x2A, 0x00)]
)
def test_silence_stays_silent_and_the_loudest_stays_loudest(
    alaw: int, mulaw: int
) -> None:
    assert abs(ALAW_TO_MULAW[alaw] - mulaw) <= 1


def test_no_sample_changes_its_sign() -> None:
    assert all((byte & 0x80) == (ALAW_TO_MULAW[byte] & 0x80) for byte in range(256))
