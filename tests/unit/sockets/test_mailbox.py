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
    mail = Mailbox(asyncio.get_running_loop())
    mail.put("one")
    mail.put(b"two")
    mail.close()
    assert [await mail.take(), await mail.take()] == ["one", b"two"]
    for _ in range(2):
        with pytest.raises(Gone):
            await mail.take()


async def test_who_waits_is_woken_by_a_message_and_by_the_end() -> None:
    mail = Mailbox(asyncio.get_running_loop())
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
    mail, transport = Mailbox(asyncio.get_running_loop()), FakeTransport()
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
    mail, transport = Mailbox(asyncio.get_running_loop()), FakeTransport()
    mail.hold_up(transport)
    for _ in range(MOST_WAITING + 1):
        mail.put(b"x")
    transport.is_gone = True
    for _ in range(MOST_WAITING + 1):
        await mail.take()
    assert transport.told == ["go", "stop"]
