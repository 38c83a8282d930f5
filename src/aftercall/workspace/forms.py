"""A page whose fields are known beforehand: read by name, filled only where nothing stands yet."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from aftercall.workspace.fields import Field, fill_field, find_fields, fold_label, insert_field, read_field, read_whole
from aftercall.workspace.lines import Page
from aftercall.workspace.placeholders import is_placeholder
from aftercall.workspace.values import bare_value


@dataclass(frozen=True)
class Form:
    labels: Mapping[str, str]
    placeholders: frozenset[str]
    long: frozenset[str] = frozenset()  # fields that may go on over several lines
    apart: str | None = None  # a section of prose: nothing in it is a field

    def read(self, page: Page) -> dict[str, str | None]:
        fields = self.find(page)
        return {name: self._value(page, self._pick(page, fields, name), name) for name in self.labels}

    def find(self, page: Page) -> list[Field]:
        prose = page.find_section(self.apart) if self.apart else None
        return find_fields(page, self.known, prose or range(0))

    def usable(self, values: Mapping[str, str | None]) -> dict[str, str]:
        """What can be written: on one line, neither blank nor a placeholder."""
        bare = {name: bare_value(value or "") for name, value in values.items()}
        return {name: value for name, value in bare.items() if not is_placeholder(value, self.placeholders)}

    def fill(self, page: Page, values: Mapping[str, str]) -> Page:
        for name, value in values.items():
            page = self._fill_one(page, name, value)
        return page

    @cached_property
    def known(self) -> frozenset[str]:
        return frozenset(fold_label(label) for label in self.labels.values())

    def _fill_one(self, page: Page, name: str, value: str) -> Page:
        fields = self.find(page)
        field = self._pick(page, fields, name)
        if field is None:
            return insert_field(page, fields, self.known, self.labels[name], value)
        return page if self._value(page, field, name) else fill_field(page, field, value, self.placeholders)

    def _value(self, page: Page, field: Field | None, name: str) -> str | None:
        if field is None:
            return None
        if name in self.long:
            return read_whole(page, field, self.placeholders)
        return read_field(page, field, self.known, self.placeholders)

    def _pick(self, page: Page, fields: list[Field], name: str) -> Field | None:
        """The line that counts: the last that is set, else the last.

        Only the first section with such a line counts: `- Name: Rex` under `## Pets` is not the user's name.
        """
        named = [field for field in fields if field.label == fold_label(self.labels[name])]
        named = [field for field in named if field.section == named[0].section]
        filled = [field for field in named if self._value(page, field, name)]
        return next(reversed(filled or named), None)
