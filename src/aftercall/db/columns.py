"""What tables are made of: column types that differ between the databases."""

from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import BigInteger, DateTime, Dialect, Integer, Text
from sqlalchemy.types import TypeDecorator, TypeEngine

from aftercall.clock import format_instant, to_millisecond

Number = BigInteger().with_variant(Integer(), "sqlite")


class InstantColumn(TypeDecorator[datetime]):
    """An instant with its zone: native on Postgres, sortable text on SQLite."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        is_native = dialect.name == "postgresql"
        return dialect.type_descriptor(DateTime(timezone=True) if is_native else Text())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None or dialect.name == "postgresql":
            return value
        return _format_cached(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if dialect.name == "postgresql":
            return to_millisecond(value)
        return datetime.fromisoformat(value)


# the rows of a call repeat few instants
_format_cached = lru_cache(maxsize=4096)(format_instant)
