"""The tree of errors: drawn at its head, coded, explained."""

from collections.abc import Iterator

from aftercall import errors
from aftercall.errors import AftercallError


def family(root: type[AftercallError] = AftercallError) -> Iterator[type[AftercallError]]:
    yield root
    for child in root.__subclasses__():
        yield from family(child)


def test_codes_are_unique_and_every_error_says_what_it_means() -> None:
    codes = [error.code for error in family()]
    assert len(codes) == len(set(codes))
    assert all(error.__doc__ for error in family())


def test_the_drawing_shows_every_error() -> None:
    assert errors.__doc__ is not None
    assert [error.__name__ for error in family() if error.__name__ not in errors.__doc__] == []
