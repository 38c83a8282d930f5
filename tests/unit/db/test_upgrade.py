import pytest

from aftercall.db.upgrade import check_durable_engine
from aftercall.errors import ConfigError


def test_a_new_python_with_an_old_sqlite_is_told_what_to_do() -> None:
    with pytest.raises(ConfigError, match=r"SQLite 3\.40\.1.*use Python 3\.11"):
        check_durable_engine("sqlite:///x", (3, 12, 1), (3, 40, 1))


@pytest.mark.parametrize(
    ("url", "python", "sqlite"),
    [
        ("sqlite:///x", (3, 11, 7), (3, 40, 1)),
        ("sqlite:///x", (3, 13, 0), (3, 45, 0)),
        ("postgresql+psycopg://x", (3, 13, 0), (3, 40, 1)),
    ],
)
def test_everything_else_can_run(
    url: str, python: tuple[int, ...], sqlite: tuple[int, ...]
) -> None:
    check_durable_engine(url, python, sqlite)
