"""What came over a socket waits in order, and not without end."""

import asyncio

import pytest

from aftercall.sockets.mailbox import (
    MAX_QUEUED_MESSAGES,
    RESUME_AT_MESSAGES,
    Mailbox,
    MailboxClosed,
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


async def test_what_is_taken_on_arrival_is_done_with_and_the_rest_is_left() -> None:
    mail, taken = Mailbox[str | bytes](), list[str | bytes]()

    def take(message: str | bytes) -> bool:
        if isinstance(message, bytes):
            taken.append(message)
        return isinstance(message, bytes)

    mail.set_fast_path(take)
    receiving = asyncio.create_task(mail.receive())
    await asyncio.sleep(0)
    mail.add(b"voice")
    assert (taken, len(mail), mail.has_waiter) == ([b"voice"], 0, True)
    mail.add("words")
    assert await receiving == "words"


async def test_nothing_is_taken_on_arrival_that_would_overtake_what_came_before() -> None:
    mail, taken = Mailbox[str](), list[str]()

    def take(message: str) -> bool:
        taken.append(message)
        return True

    mail.set_fast_path(take)
    mail.add("before anybody waited")
    receiving = asyncio.create_task(mail.receive())
    assert await receiving == "before anybody waited"
    mail.add("while the first is being dealt with")
    assert taken == []
    receiving = asyncio.create_task(mail.receive())
    await receiving
    receiving = asyncio.create_task(mail.receive())
    await asyncio.sleep(0)
    mail.add("at last")
    assert taken == ["at last"]
    receiving.cancel()


async def test_what_goes_wrong_on_arrival_is_raised_to_who_waits() -> None:
    mail = Mailbox[str]()
    mail.set_fast_path(lambda message: bool(1 / 0))
    receiving = asyncio.create_task(mail.receive())
    await asyncio.sleep(0)
    mail.add("something")
    with pytest.raises(ZeroDivisionError):
        await receiving
