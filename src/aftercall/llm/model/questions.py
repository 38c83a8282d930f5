"""The questions put to a model: a prompt from a file, the form of its answer, and the hash that names the two for good."""

import json
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from importlib.resources import files
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from aftercall.llm.model import forms

F = TypeVar("F", bound=BaseModel)


@dataclass(frozen=True)
class Question(Generic[F]):
    name: str
    form: type[F]

    @cached_property
    def prompt(self) -> str:
        folder = files("aftercall.llm") / "prompts"
        parts = [(folder / f"{name}.md").read_text("utf-8").strip() for name in ("rules", self.name)]
        return "\n\n".join(parts)

    @cached_property
    def schema(self) -> dict[str, Any]:
        return self.form.model_json_schema()

    @cached_property
    def hash(self) -> str:
        return sha256(f"{self.prompt}\n{json.dumps(self.schema, sort_keys=True)}".encode()).hexdigest()


SUMMARY = Question("summary", forms.SummaryForm)
SUMMARY_OF_PARTS = Question("summary_of_parts", forms.SummaryForm)
PROFILE = Question("profile", forms.ProfileForm)
IDENTITY = Question("identity", forms.IdentityForm)
GREETING = Question("greeting", forms.GreetingForm)
ASKED = Question("asked", forms.AskedForm)
FACTS = Question("facts", forms.FactsForm)
SPOKEN = Question("spoken", forms.SpokenForm)
ALL = (SUMMARY, SUMMARY_OF_PARTS, PROFILE, IDENTITY, GREETING, ASKED, FACTS, SPOKEN)
