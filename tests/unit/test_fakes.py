"""The fakes we ship are tested themselves."""

import asyncio

from fakes import START, VirtualClock


async def test_sleepers_wake_in_order_each_at_its_own_time() -> None:
    clock = VirtualClock()
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, *naps: float) -> None:
        for nap in naps:
            await clock.sleep(nap)
            woken.append((name, clock.monotonic()))

    tasks = [
        asyncio.create_task(sleeper("a", 10, 10)),
        asyncio.create_task(sleeper("b", 15, 100)),
    ]
    await clock.advance(30)
    assert woken == [("a", 10.0), ("b", 15.0), ("a", 20.0)]
    assert (clock.now() - START).total_seconds() == 30
    for task in tasks:
        task.cancel()


async def test_a_cancelled_sleeper_disturbs_nobody() -> None:
    clock = VirtualClock()
    task = asyncio.create_task(clock.sleep(5))
    await asyncio.sleep(0)
    task.cancel()
    await clock.advance(10)
    assert clock.monotonic() == 10


async def test_time_never_goes_back_for_a_sleeper_that_a_move_has_passed() -> None:
    clock = VirtualClock()
    sleeper = asyncio.create_task(clock.sleep(2))
    await clock.advance(1)
    clock.move(60)
    seen_s = clock.monotonic()
    woken_s: list[float] = []
    sleeper.add_done_callback(lambda _: woken_s.append(clock.monotonic()))
    await clock.advance(1)
    assert woken_s == [seen_s]
