"""What came over a socket waits in order, and not without end."""

import asyncio

import pytest

from aftercall.sockets.mailbox import MOST_WAITING, RESUME_AT, Gone, Mailbox


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
    mail.put("one")
    mail.put(b"two")
    mail.close()
    assert [await mail.take(), await mail.take()] == ["one", b"two"]
    for _ in range(2):
        with pytest.raises(Gone):
            await mail.take()


async def test_who_waits_is_woken_by_a_message_and_by_the_end() -> None:
    mail = Mailbox[str | bytes]()
    taking = asyncio.create_task(mail.take())
    await asyncio.sleep(0)
    mail.put("here")
    assert await taking == "here"
    taking = asyncio.create_task(mail.take())
    await asyncio.sleep(0)
    mail.close()
    with pytest.raises(Gone):
        await taking


async def test_a_full_mailbox_stops_the_reading_until_there_is_room() -> None:
    mail, transport = Mailbox[str | bytes](), FakeTransport()
    mail.hold_up(transport)
    for _ in range(MOST_WAITING):
        mail.put(b"x")
    assert transport.told == ["go"]
    mail.put(b"x")
    assert transport.told == ["go", "stop"]
    for _ in range(MOST_WAITING - RESUME_AT):
        await mail.take()
    assert transport.told == ["go", "stop"]
    await mail.take()
    assert transport.told == ["go", "stop", "go"]


async def test_a_socket_that_closes_while_the_mailbox_is_full_is_left_alone() -> None:
    mail, transport = Mailbox[str | bytes](), FakeTransport()
    mail.hold_up(transport)
    for _ in range(MOST_WAITING + 1):
        mail.put(b"x")
    transport.is_gone = True
    for _ in range(MOST_WAITING + 1):
        await mail.take()
    assert transport.told == ["go", "stop"]


async def test_what_is_taken_on_arrival_is_done_with_and_the_rest_is_left() -> None:
    mail, taken = Mailbox[str | bytes](), list[str | bytes]()

    def take(message: str | bytes) -> bool:
        if isinstance(message, bytes):
            taken.append(message)
        return isinstance(message, bytes)

    mail.divert(take)
    receiving = asyncio.create_task(mail.take())
    await asyncio.sleep(0)
    mail.put(b"voice")
    assert (taken, len(mail), mail.is_awaited) == ([b"voice"], 0, True)
    mail.put("words")
    assert await receiving == "words"


async def test_nothing_is_taken_on_arrival_that_would_overtake_what_came_before() -> None:
    mail, taken = Mailbox[str](), list[str]()

    def take(message: str) -> bool:
        taken.append(message)
        return True

    mail.divert(take)
    mail.put("before anybody waited")
    receiving = asyncio.create_task(mail.take())
    assert await receiving == "before anybody waited"
    mail.put("while the first is being dealt with")
    assert taken == []
    receiving = asyncio.create_task(mail.take())
    await receiving
    receiving = asyncio.create_task(mail.take())
    await asyncio.sleep(0)
    mail.put("at last")
    assert taken == ["at last"]
    receiving.cancel()


async def test_what_goes_wrong_on_arrival_is_raised_to_who_waits() -> None:
    mail = Mailbox[str]()
    mail.divert(lambda message: bool(1 / 0))
    receiving = asyncio.create_task(mail.take())
    await asyncio.sleep(0)
    mail.put("something")
    with pytest.raises(ZeroDivisionError):
        await receiving
