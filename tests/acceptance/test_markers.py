"""Two callers with words of their own, calls in any order, dropped and picked up, memory of
every scope: no word strays.
"""

import asyncio
import random
from pathlib import Path

import pytest

from aftercall.app import App
from aftercall.model.facts import MemoryKey, memory_key
from aftercall.model.people import split_party
from aftercall.settings import Settings
from aftercall.settings.sections import DatabaseSettings
from fakes import VirtualClock
from marked_callers import BEA, TOM, Hall, Who, ring_by_turns, ring_by_voice
from opened_apps import OpenApp

PEOPLE = [
    Who("main", TOM, "Tom", "Zeltor"),
    Who("main", TOM, "Anna", "Quibbra"),
    Who("main", BEA, "Bea", "Vossik"),
    Who("desk", TOM, "Tom", "Jarlund"),
    Who("desk", BEA, "Bea", "Ombrix"),
    Who("family", TOM, "Tom", "Plimsey"),
    Who("family", BEA, "Bea", "Wexlow"),
    Who("main", None, "Nobody", "Trundel"),
]


def open_hall(
    open_app: OpenApp, settings: Settings, clock: VirtualClock, seed: int
) -> Hall:
    def app_of(scope: str) -> App:
        changed = settings.model_copy(
            update={"memory": settings.memory.model_copy(update={"scope": scope})}
        )
        return open_app(changed, clock)

    return Hall(
        {scope: app_of(scope) for scope in ("per_caller", "shared", "none")},
        PEOPLE,
        clock,
        random.Random(seed),
    )


async def hold_calls(hall: Hall, count: int, spoken: float) -> None:
    """So many calls, a few at a time; some come back within the reconnect window, some much
    later.
    """
    dice = hall.dice
    for who in (who for who in hall.people if hall.owner_of(who) is who):
        hall.tally["calls"] += 1
        await ring_by_turns(
            hall,
            "shared" if who.agent_id == "family" else "per_caller",
            who,
            hall.tally["calls"],
        )
    hall.work(is_all=True)
    hall.clock.move(4_000)
    while hall.tally["calls"] < count:
        going = []
        for _ in range(dice.randint(1, 4)):
            who = dice.choice(hall.people)
            scope = (
                "shared"
                if who.agent_id == "family"
                else dice.choice(["per_caller", "per_caller", "per_caller", "none"])
            )
            hall.tally["calls"] += 1
            if dice.random() < spoken:
                await ring_by_voice(hall, scope, who, hall.tally["calls"])
            else:
                going.append(ring_by_turns(hall, scope, who, hall.tally["calls"]))
        await asyncio.gather(*going)
        hall.work()
        hall.clock.move(dice.choice([5, 60, 4_000, 90_000]))


async def test_no_word_of_one_caller_is_ever_sent_to_the_engine_of_another(
    tmp_path: Path, clock: VirtualClock, open_app: OpenApp
) -> None:
    hall = open_hall(open_app, Settings(home=tmp_path), clock, seed=6)
    await hold_calls(hall, 200, spoken=0.15)
    assert list(hall.leaks()) == []
    assert hall.tally["own words"] > 200  # memory was at work
    assert hall.tally["lookups"] > 50


async def test_no_word_strays_on_a_database_server(
    empty_postgres: str, tmp_path: Path, clock: VirtualClock, open_app: OpenApp
) -> None:
    hall = open_hall(
        open_app,
        Settings(home=tmp_path, database=DatabaseSettings(url=empty_postgres)),
        clock,
        seed=7,
    )
    await hold_calls(hall, 30, spoken=0.2)
    assert list(hall.leaks()) == []
    assert hall.tally["own words"] > 20


@pytest.mark.parametrize("broken", ["caller", "agent", "person"])
async def test_the_check_finds_a_broken_key(
    tmp_path: Path,
    clock: VirtualClock,
    monkeypatch: pytest.MonkeyPatch,
    broken: str,
    open_app: OpenApp,
) -> None:
    def wrong(settings: Settings, agent_id: str, party: str | None) -> MemoryKey | None:
        key = memory_key(settings, agent_id, party)
        if key is None or key.caller == "*":
            return key
        number = split_party(key.caller)[0]
        ways = {
            "caller": MemoryKey(agent_id, TOM),
            "agent": MemoryKey("main", key.caller),
            "person": MemoryKey(agent_id, number),
        }
        return ways[broken]

    for module in (
        "aftercall.memory.search",
        "aftercall.memory.extraction",
        "aftercall.briefing.composer",
    ):
        monkeypatch.setattr(f"{module}.memory_key", wrong)
    hall = open_hall(open_app, Settings(home=tmp_path), clock, seed=8)
    for count in (
        40,
        80,
        120,
        160,
    ):
        # on a busy machine a briefing may come too late to give anything away
        await hold_calls(hall, count, spoken=0.1)
        if any(hall.leaks()):
            break
    assert list(hall.leaks()) != []
