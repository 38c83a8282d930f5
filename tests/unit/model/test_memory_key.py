from typing import Literal

import pytest

from aftercall.errors import RefusedInput
from aftercall.model.facts import SHARED_CALLER, MemoryKey, memory_key
from aftercall.settings import Settings
from aftercall.settings.sections import MemorySettings

Scope = Literal["per_caller", "shared", "none"]


@pytest.mark.parametrize(
    ("scope", "caller", "expected"),
    [
        ("per_caller", "+1 555 010 0123", MemoryKey("main", "+15550100123")),
        ("per_caller", None, None),
        ("per_caller", "anonymous", None),
        ("shared", "+15550100", MemoryKey("main", SHARED_CALLER)),
        ("shared", None, None),
        ("none", "+15550100", None),
    ],
)
def test_the_scope_decides_whose_memory_it_is(
    scope: Scope, caller: str | None, expected: MemoryKey | None
) -> None:
    assert (
        memory_key(Settings(memory=MemorySettings(scope=scope)), "main", caller)
        == expected
    )


def test_what_is_no_caller_is_refused() -> None:
    with pytest.raises(RefusedInput, match="caller"):
        memory_key(Settings(), "main", "Bill")
