"""The page for users says every reason there is, in the words of the code."""

from pathlib import Path

import pytest

from aftercall.phone.signature import SignatureFlaw
from aftercall.phone.wire import Oddity

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "carriers.md").read_text()


@pytest.mark.parametrize("flaw", SignatureFlaw, ids=lambda flaw: flaw.name)
def test_every_flaw_is_explained(flaw: SignatureFlaw) -> None:
    assert f"| `{flaw.name.lower()}` | {flaw} |" in PAGE


@pytest.mark.parametrize("oddity", Oddity, ids=lambda oddity: oddity.name)
def test_every_oddity_is_explained(oddity: Oddity) -> None:
    assert f"| {oddity} |" in PAGE
