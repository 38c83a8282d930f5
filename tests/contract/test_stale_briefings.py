"""Prepared briefings go out of date in the transaction that changes their grounds, and nobody
waits in a ring for it.
"""

from threading import Barrier, Thread

import pytest
from sqlalchemy import select

from aftercall.app import App
from aftercall.db.briefing_cache import invalidate_briefing, request_briefing
from aftercall.db.tables import briefings

ANNA, BILL = "+15550142", "+15550143"


def versions(app: App) -> dict[str, int]:
    with app.database.read() as connection:
        return {
            row.caller: row.version
            for row in connection.execute(
                select(briefings.c.caller, briefings.c.version)
            )
        }


def test_what_is_outdated_twice_in_one_transaction_is_emptied_once(app: App) -> None:
    with app.database.write() as connection:
        request_briefing(connection, "main", ANNA)
    before = versions(app)
    with app.database.write() as connection:
        invalidate_briefing(connection, "main", ANNA)
        invalidate_briefing(connection, "main", ANNA)
        invalidate_briefing(connection, "main", BILL)
    assert versions(app) == {ANNA: before[ANNA] + 1}


def test_a_transaction_that_falls_outdates_nothing(app: App) -> None:
    with app.database.write() as connection:
        request_briefing(connection, "main", ANNA)
    before = versions(app)

    def fall() -> None:
        with app.database.write() as connection:
            invalidate_briefing(connection, "main", ANNA)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fall()
    assert versions(app) == before


def test_outdating_the_same_callers_in_opposite_order_does_not_deadlock(
    app: App,
) -> None:
    if app.database.dialect == "sqlite":
        pytest.skip(
            "SQLite has one writer at a time: nobody holds a row while another does"
        )
    with app.database.write() as connection:
        request_briefing(connection, "main", ANNA)
        request_briefing(connection, "main", BILL)
    before, meet, troubles = versions(app), Barrier(2), []

    def change(first: str, second: str) -> None:
        try:
            with app.database.write() as connection:
                invalidate_briefing(connection, "main", first)
                meet.wait(20)
                invalidate_briefing(connection, "main", second)
        except Exception as error:  # noqa: BLE001 - told below, where the test can fail
            troubles.append(error)

    both = [
        Thread(target=change, args=callers) for callers in ((ANNA, BILL), (BILL, ANNA))
    ]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert troubles == []
    assert versions(app) == {caller: version + 2 for caller, version in before.items()}
