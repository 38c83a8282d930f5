"""The tree of errors: each one coded and explained."""

from collections.abc import Iterator

from aftercall.errors import AftercallError, NotFound, error_code


def family(
    root: type[AftercallError] = AftercallError,
) -> Iterator[type[AftercallError]]:
    yield root
    for child in root.__subclasses__():
        yield from family(child)


def test_codes_are_unique_and_every_error_says_what_it_means() -> None:
    codes = [error.code for error in family()]
    assert len(codes) == len(set(codes))
    assert all(error.__doc__ for error in family())


def test_every_error_is_explained_in_one_line() -> None:
    assert [error.__name__ for error in family() if "\n" in (error.__doc__ or "")] == []


def test_logs_name_our_errors_by_code_and_foreign_ones_by_class() -> None:
    assert error_code(NotFound("x")) == "not_found"
    assert error_code(KeyError("speech")) == "KeyError"
