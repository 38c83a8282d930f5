"""Scenario files as people write them: the short form with one caller, the older forms, and
mistakes with their line.
"""

import difflib
import re
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from aftercall.errors import ScenarioRefused
from aftercall.tester.scenario import Scenario, json_schema
from aftercall.tester.yaml_file import Marked, Path_, parse_yaml, read_yaml

_CONTEXTS = ("patient_context", "caller_context")
_OLD_STAGE = {
    "stage": "name",
    "trigger": "when",
    "agent_says": "when",
    "if_agent": "when",
    "response": "say",
    "reply": "say",
    "responses": "say",
}
_PROSE_STAGE = re.compile(
    r"^\s*(?:when|if) (?:the )?(?:agent|they|clinic) (?:asks?|says?|mentions?|offers?)(?: for"
    r"| about| if| to)? ?[\"“]?(?P<when>.+?)[\"”]?"
    r"\s*[,:]\s*(?:then )?(?:say|answer|reply|respond(?: with)?|tell them):? "
    r"?[\"“]?(?P<say>.+?)[\"”]?\s*$",
    re.IGNORECASE,
)
_PLAIN_WORDS = {
    "greeting": "how can i help|how may i help|what can i do|how can we help|calling about",
    "confirmation": "is that correct|is that right|does that work|shall i|should i go ahead|"
    "to confirm",
    "confirm": "is that correct|is that right|does that work|shall i|should i go ahead|to confirm",
    "closing": "anything else|is there anything more",
}
_REASONS = {
    "extra_forbidden": "is not a known field",
    "missing": "is missing",
    "string_type": "is not text",
    "int_parsing": "is not a whole number",
    "float_parsing": "is not a number",
    "bool_parsing": "is not true or false",
    "tuple_type": "is not a list",
    "model_type": "is not a mapping",
    "dict_type": "is not a mapping",
    "too_short": "is empty",
    "string_too_short": "is empty",
}


def load_scenarios(path: Path) -> list[Scenario]:
    """Every scenario of a file: one, or the older list of several."""
    return _read(read_yaml(path))


def parse_scenarios(text: str, source: str = "scenario") -> list[Scenario]:
    return _read(parse_yaml(text, source))


def _read(marked: Marked) -> list[Scenario]:
    data = marked.data
    if data is None:
        raise marked.refuse((), "is empty")
    if isinstance(data, dict) and isinstance(data.get("scenarios"), list | dict):
        listed: Any = data["scenarios"]
        prefix: Path_ = ("scenarios",)
    elif isinstance(data, list):
        listed, prefix = data, ()
    else:
        return [_read_one(marked, data, ())]
    pairs = listed.items() if isinstance(listed, dict) else enumerate(listed)
    found = [
        _read_one(marked, item, (*prefix, key), str(key) if isinstance(listed, dict) else "")
        for key, item in pairs
    ]
    _refuse_twins(marked, found, prefix)
    return found


def _refuse_twins(marked: Marked, found: list[Scenario], prefix: Path_) -> None:
    for number, scenario in enumerate(found):
        if scenario.name in [other.name for other in found[:number]]:
            raise marked.refuse((*prefix, number, "name"), f"{scenario.name!r} stands there twice")


def _read_one(marked: Marked, data: Any, at: Path_, name: str = "") -> Scenario:
    if not isinstance(data, dict):
        raise marked.refuse(at, "is not a mapping")
    form = _ScenarioForm(marked, at)
    if name:
        data = {"name": name} | data
    whole = form.unfold(data)
    try:
        return Scenario.model_validate(whole)
    except ValidationError as error:
        raise form.refusal(error) from None


class _ScenarioForm:
    """One scenario on its way from the file's form to ours; remembers where each part came from."""

    def __init__(self, marked: Marked, at: Path_) -> None:
        self._marked = marked
        self._at = at
        self._moved: list[tuple[Path_, Path_]] = []

    def unfold(self, data: dict[str, Any]) -> dict[str, Any]:
        whole = {
            key: value
            for key, value in data.items()
            if key not in (*_CONTEXTS, "turns", "behavior", "prompt")
        }
        whole["notes"] = [
            str(data[key]) for key in ("behavior", "prompt") if data.get(key)
        ] + _listed(data.get("notes"))
        if "calls" in whole:
            misplaced = [key for key in (*_CONTEXTS, "turns") if key in data]
            if misplaced:
                raise self._marked.refuse(
                    (*self._at, misplaced[0]), "belongs into one of the calls"
                )
            calls = whole["calls"]
            if isinstance(calls, list):
                whole["calls"] = [
                    self._unfold_call(call, ("calls", number), whole["notes"])
                    if isinstance(call, dict)
                    else call
                    for number, call in enumerate(calls)
                ]
            return whole
        self._moved.append((("calls", 0), ()))
        call = self._unfold_call(
            {key: data[key] for key in (*_CONTEXTS, "turns") if key in data}, (), whole["notes"]
        )
        context = call.get("caller_context")
        if isinstance(context, dict) and not whole.get("goal") and context.get("goal"):
            whole["goal"] = context["goal"]
        if isinstance(context, dict):
            context.pop("goal", None)
        whole["calls"] = [call]
        return whole

    def _unfold_call(self, call: dict[str, Any], at: Path_, notes: list[str]) -> dict[str, Any]:
        call = dict(call)
        given = [key for key in _CONTEXTS if key in call]
        if len(given) == 2:
            raise self._marked.refuse(
                (*self._at, *at, given[1]),
                "patient_context and caller_context are the same; give one",
            )
        if given and given[0] == "patient_context":
            call["caller_context"] = call.pop("patient_context")
            here = ("calls", 0) if at == () else at
            self._moved.append(((*here, "caller_context"), (*at, "patient_context")))
        if isinstance(call.get("caller_context"), dict):
            call["caller_context"] = self._unfold_context(call["caller_context"], notes)
        return call

    def _unfold_context(self, context: dict[str, Any], notes: list[str]) -> dict[str, Any]:
        context = dict(context)
        stages = context.get("response_stages")
        if isinstance(stages, dict):
            stages = [_stage(value, name) for name, value in stages.items()]
        if isinstance(stages, list):
            read = [_stage(stage) for stage in stages]
            notes += [stage for stage in read if isinstance(stage, str)]
            context["response_stages"] = [stage for stage in read if not isinstance(stage, str)]
        context["anti_repetition"] = _anti_repetition(context.get("anti_repetition"))
        priority = context.get("question_priority")
        if priority in ("true", "false") or (isinstance(priority, str) and " " in priority.strip()):
            notes += [f"question priority: {priority}"] if " " in priority else []
            context["question_priority"] = []
        if isinstance(context.get("verification"), dict):
            context["verification"] = _verification(context["verification"])
        return {key: value for key, value in context.items() if value is not None}

    def refusal(self, error: ValidationError) -> ScenarioRefused:
        """The deepest mistake, where the file has it; for an unknown key, the nearest known one."""
        first = min(
            error.errors(include_url=False, include_input=False), key=lambda item: -len(item["loc"])
        )
        path, reason = tuple(first["loc"]), first["msg"].removeprefix("Value error, ")
        if inner := re.match(r"^((?:\[\d+\]|\.?[a-z_]+)+): (.+)$", reason):
            path += tuple(
                int(part) if part.isdigit() else part
                for part in re.findall(r"\d+|[a-z_]+", inner.group(1))
            )
            reason = inner.group(2)
        reason = _REASONS.get(first["type"], reason)
        if first["type"] == "extra_forbidden" and (near := _nearest_key(path)):
            reason += f"; did you mean {near!r}?"
        shown = self._back(path)
        return self._marked.refuse((*self._at, *shown), reason[:1].lower() + reason[1:])

    def _back(self, path: Path_) -> Path_:
        """The path as the file has it."""
        for ours, theirs in sorted(self._moved, key=lambda pair: -len(pair[0])):
            if path[: len(ours)] == ours:
                return (*theirs, *path[len(ours) :])
        return path


def _nearest_key(path: Path_) -> str | None:
    """The known key beside this one that is spelled most like it."""
    schema = json_schema()
    node = schema
    for part in path[:-1]:
        node = (
            node.get("items", {})
            if isinstance(part, int)
            else node.get("properties", {}).get(part, {})
        )
        node = next((option for option in node.get("anyOf", ()) if "$ref" in option), node)
        node = schema["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node
    close = difflib.get_close_matches(str(path[-1]), node.get("properties", {}), n=1)
    return close[0] if close else None


def _listed(value: Any) -> list[str]:
    if value is None:
        return []
    return [str(item) for item in value] if isinstance(value, list) else [str(value)]


def _stage(value: Any, name: str = "") -> Any:
    """A stage in any of the forms in use; prose that names no trigger stays prose."""
    if isinstance(value, str):
        if prose := _PROSE_STAGE.match(value):
            return {"name": name, "when": [prose["when"]], "say": [prose["say"]]}
        if not name:
            return value
        when = _PLAIN_WORDS.get(name.lower(), "")
        return {"name": name, "when": [when] if when else [], "say": [value]}
    if not isinstance(value, dict):
        return value
    stage = {_OLD_STAGE.get(key, key): inner for key, inner in value.items()}
    return ({"name": name} if name else {}) | stage


def _anti_repetition(value: Any) -> Any:
    if value in (None, "true"):
        return {}
    if value == "false":
        return {"enabled": False}
    return {"rules": value} if isinstance(value, str | list) else value


def _verification(value: dict[str, Any]) -> dict[str, Any]:
    """Fields may stand at the top, beside `required` and `before`; an answer may be just its
    words.
    """
    whole = {key: inner for key, inner in value.items() if key in ("required", "before", "answers")}
    given = value.get("answers") if isinstance(value.get("answers"), dict) else {}
    fields = (given or {}) | {
        key: inner for key, inner in value.items() if key not in ("required", "before", "answers")
    }
    if "answers" in value and not isinstance(value["answers"], dict):
        return whole
    whole["answers"] = {
        _field(key): {"answer": inner} if isinstance(inner, str) else inner
        for key, inner in fields.items()
    }
    return whole


def _field(name: str) -> str:
    return {
        "date_of_birth": "dob",
        "birthday": "dob",
        "full_name": "name",
        "phone_number": "phone",
        "zip_code": "zip",
    }.get(name.lower(), name)
