"""What every section of the settings is made of, and how lists and pairs are read from one line of the environment."""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict


@dataclass(frozen=True)
class Env:
    """The environment name of a setting where it is not the regular one."""

    name: str


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def parse_list(value: Any) -> Any:
    """In the environment a list is one text, its items separated by commas."""
    return [item.strip() for item in value.split(",") if item.strip()] if isinstance(value, str) else value


def parse_pairs(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return {key.strip(): level.strip() for key, _, level in (item.partition("=") for item in parse_list(value))}


def parse_groups(value: Any) -> Any:
    """In the environment groups are separated by semicolons: `main,sales;clinic`."""
    return [parse_list(group) for group in value.split(";") if group.strip()] if isinstance(value, str) else value


Words = Annotated[tuple[str, ...], BeforeValidator(parse_list)]
