"""What every table is made of: the naming of constraints, instants, and numbers that count up."""

from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import BigInteger, DateTime, Dialect, Integer, MetaData, Text
from sqlalchemy.types import TypeDecorator, TypeEngine

from aftercall.clock import to_millisecond
from aftercall.model.instants import format_instant

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class InstantColumn(TypeDecorator[datetime]):
    """An instant with its zone: a native one on Postgres, sortable readable text on SQLite."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(DateTime(timezone=True) if dialect.name == "postgresql" else Text())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None or dialect.name == "postgresql":
            return value
        return _written(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return to_millisecond(value) if dialect.name == "postgresql" else datetime.fromisoformat(value)


_written = lru_cache(maxsize=4096)(format_instant)  # one call's rows name few instants, many times


Number = BigInteger().with_variant(Integer(), "sqlite")
