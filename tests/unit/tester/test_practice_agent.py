"""Faults that were planted are found, named and blamed on whoever caused them; a sound agent
has none.
"""

import pytest

from aftercall.tester.library import list_scenarios
from aftercall.tester.practice_agent import FAULTS, PlantedFault
from unit.tester.calls import kinds, try_practice

LIBRARY = {scenario.name: scenario for scenario in list_scenarios()}


@pytest.mark.parametrize("planted", FAULTS, ids=lambda planted: planted.name)
async def test_a_planted_fault_is_found_and_blamed_on_the_right_side(
    planted: PlantedFault,
) -> None:
    scored = await try_practice(LIBRARY[planted.scenario], planted.name)
    assert (planted.finding, planted.who) in kinds(scored)
    assert {who for _, who in kinds(scored)} == {planted.who}
    if planted.who != "agent":
        assert scored.bugs == []
        assert scored.verdict == "inconclusive"


@pytest.mark.parametrize("name", sorted(LIBRARY))
async def test_a_sound_agent_passes_the_library(name: str) -> None:
    scored = await try_practice(LIBRARY[name])
    assert kinds(scored) == set()
    assert scored.verdict == "passed"


async def test_the_ledger_of_a_broken_agent_lists_exactly_its_faults() -> None:
    faults = ("asks_again", "unspeakable", "wrong_weekday")
    scored = await try_practice(LIBRARY["appointment_scheduling"], *faults)
    found = {"asks_again", "wrong_weekday", "reads_markup"}
    assert {finding.kind for finding in scored.bugs} == found
    assert {kind for kind, _ in kinds(scored)} == found


async def test_the_same_seed_gives_the_same_call() -> None:
    first, second = [await try_practice(LIBRARY["edge_noisy_line"]) for _ in range(2)]
    assert first.records[0].spans == second.records[0].spans
    assert first.records[0].agent_sound == second.records[0].agent_sound
