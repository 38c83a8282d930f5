"""Statements made into the driver's text once do what SQLAlchemy does with them, on both
databases.
"""

import pytest
from sqlalchemy import bindparam, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from aftercall.app import App
from aftercall.db.statements import InValues, PreparedStatement
from aftercall.db.tables import upkeep
from fakes import START

ROWS = [
    {"name": name, "at": START, "found": found}
    for name, found in (("a", {"n": [1]}), ("b", None), ("it's ⚡", {}))
]
ADD = PreparedStatement(insert(upkeep))
SOME = PreparedStatement(
    select(upkeep).where(InValues(upkeep.c.name, "names")).order_by(upkeep.c.name)
)
EMPTY = PreparedStatement(
    update(upkeep)
    .where(upkeep.c.name == bindparam("which"))
    .values(found={"gone": True})
)
DROP = PreparedStatement(delete(upkeep).where(InValues(upkeep.c.name, "names")))


def test_what_is_written_is_what_sqlalchemy_reads_and_the_other_way_round(
    app: App,
) -> None:
    with app.database.write() as connection:
        ADD.execute_many(connection, ROWS)
    names = [row["name"] for row in ROWS]
    query = select(upkeep).where(upkeep.c.name.in_(names)).order_by(upkeep.c.name)
    with app.database.read() as connection:
        read = [tuple(row) for row in connection.execute(query)]
        assert read == SOME.fetch(connection, {"names": names})
    assert sorted(read) == sorted(
        (row["name"], row["at"], row["found"]) for row in ROWS
    )


def test_a_list_may_be_empty_or_long(app: App) -> None:
    with app.database.write() as connection:
        ADD.execute_many(connection, ROWS)
        assert SOME.fetch(connection, {"names": []}) == []
        assert (
            len(
                SOME.fetch(
                    connection, {"names": [f"n{at}" for at in range(40_000)] + ["a"]}
                )
            )
            == 1
        )
        assert DROP.execute(connection, {"names": {"a", "b", "unknown"}}) == 2


def test_values_of_its_own_are_kept(app: App) -> None:
    with app.database.write() as connection:
        ADD.execute_many(connection, ROWS)
        assert EMPTY.execute(connection, {"which": "b"}) == 1
        ((name, at, found),) = SOME.fetch(connection, {"names": ["b"]})
    assert (name, at, found) == ("b", START, {"gone": True})


def test_a_second_row_of_one_key_is_refused_as_ever_and_nothing_is_written(
    app: App,
) -> None:
    with pytest.raises(IntegrityError), app.database.write() as connection:
        ADD.execute_many(connection, [ROWS[1], ROWS[1]])
    with app.database.read() as connection:
        assert SOME.fetch(connection, {"names": ["b"]}) == []
