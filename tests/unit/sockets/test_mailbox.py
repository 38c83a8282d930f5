"""What came over a socket waits in order, and not without end."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.sockets.mailbox import (
    MAX_QUEUED_MESSAGES,
    RESUME_AT_MESSAGES,
    Mailbox,
    MailboxClosed,
    Work,
    handle_each,
)


class FakeTransport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.told = ["go"]
        self.is_gone = False

    def is_closing(self) -> bool:
        return self.is_gone

    def pause_reading(self) -> None:
        self.told.append("stop")

    def resume_reading(self) -> None:
        assert not self.is_gone, "a transport that closes must not be woken"
        self.told.append("go")


async def test_messages_are_taken_in_order_and_then_the_end_each_time() -> None:
    mail = Mailbox[str | bytes]()
    mail.add("one")
    mail.add(b"two")
    mail.close()
    assert [await mail.receive(), await mail.receive()] == ["one", b"two"]
    for _ in range(2):
        with pytest.raises(MailboxClosed):
            await mail.receive()


async def test_who_waits_is_woken_by_a_message_and_by_the_end() -> None:
    mail = Mailbox[str | bytes]()
    taking = asyncio.create_task(mail.receive())
    await asyncio.sleep(0)
    mail.add("here")
    assert await taking == "here"
    taking = asyncio.create_task(mail.receive())
    await asyncio.sleep(0)
    mail.close()
    with pytest.raises(MailboxClosed):
        await taking


async def test_a_full_mailbox_stops_the_reading_until_there_is_room() -> None:
    mail, transport = Mailbox[str | bytes](), FakeTransport()
    mail.set_transport(transport)
    for _ in range(MAX_QUEUED_MESSAGES):
        mail.add(b"x")
    assert transport.told == ["go"]
    mail.add(b"x")
    assert transport.told == ["go", "stop"]
    for _ in range(MAX_QUEUED_MESSAGES - RESUME_AT_MESSAGES):
        await mail.receive()
    assert transport.told == ["go", "stop"]
    await mail.receive()
    assert transport.told == ["go", "stop", "go"]


async def test_a_socket_that_closes_while_the_mailbox_is_full_is_left_alone() -> None:
    mail, transport = Mailbox[str | bytes](), FakeTransport()
    mail.set_transport(transport)
    for _ in range(MAX_QUEUED_MESSAGES + 1):
        mail.add(b"x")
    transport.is_gone = True
    for _ in range(MAX_QUEUED_MESSAGES + 1):
        await mail.receive()
    assert transport.told == ["go", "stop"]


async def test_an_idle_handler_gets_a_message_the_moment_it_arrives() -> None:
    mail, handled = Mailbox[str](), list[str]()
    delivering = asyncio.create_task(mail.deliver(handled.append))
    await asyncio.sleep(0)
    mail.add("one")
    mail.add("two")
    assert handled == ["one", "two"]
    mail.close()
    await delivering


async def test_messages_wait_while_the_work_of_one_goes_on() -> None:
    mail, log, may_go_on = Mailbox[str](), list[str](), asyncio.Event()

    async def work(message: str) -> None:
        await may_go_on.wait()
        log.append(f"done with {message}")

    def handle(message: str) -> Work | None:
        log.append(message)
        return work(message) if message == "slow" else None

    mail.add("before")
    delivering = asyncio.create_task(mail.deliver(handle))
    await asyncio.sleep(0)
    mail.add("slow")
    mail.add("after")
    await asyncio.sleep(0)
    assert log == ["before", "slow"]
    may_go_on.set()
    mail.close()
    await delivering
    assert log == ["before", "slow", "done with slow", "after"]


async def test_what_a_handler_raises_ends_the_delivery() -> None:
    mail = Mailbox[str]()

    def fail(message: str) -> None:
        raise ZeroDivisionError

    delivering = asyncio.create_task(mail.deliver(fail))
    await asyncio.sleep(0)
    mail.add("something")
    with pytest.raises(ZeroDivisionError):
        await delivering


async def test_work_that_a_cancelled_delivery_left_is_dropped() -> None:
    mail, log = Mailbox[str](), list[str]()

    async def work() -> None:
        log.append("worked")

    delivering = asyncio.create_task(mail.deliver(lambda message: work()))
    await asyncio.sleep(0)
    mail.add("something")
    delivering.cancel()
    await asyncio.gather(delivering, return_exceptions=True)
    assert log == []


@given(st.lists(st.booleans(), max_size=30))
def test_each_item_is_handled_once_and_in_order(waits: list[bool]) -> None:
    log: list[int] = []

    async def work(number: int) -> None:
        await asyncio.sleep(0)
        log.append(number)

    def handle(number: int) -> Work | None:
        if waits[number]:
            return work(number)
        log.append(number)
        return None

    async def run() -> None:
        rest = handle_each(range(len(waits)), handle)
        if rest is not None:
            await rest

    asyncio.run(run())
    assert log == list(range(len(waits)))
