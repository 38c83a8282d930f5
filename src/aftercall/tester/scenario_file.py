"""Scenario files: YAML with line numbers, the short form with one caller, the older forms.

Every plain word stays text until a field asks for a number or a boolean: `say: No` is a word,
and `dtmf: 012` keeps its zero. PyYAML is used for the marks of its nodes, not for its types.
"""

import difflib
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from aftercall.errors import ScenarioRefused
from aftercall.model.json_fields import Json
from aftercall.tester.phrases import OFFERS_HELP, content_words, field_patterns
from aftercall.tester.scenario import Scenario, json_schema

FieldPath = tuple[str | int, ...]

MAX_BYTES = 1_000_000
MAX_DEPTH = 40
MAX_VALUES = 20_000
_NULLS = ("", "~", "null", "Null", "NULL")
_CONTEXTS = ("patient_context", "caller_context")
_CALL_KEYS = (*_CONTEXTS, "turns")
_PROSE_KEYS = ("behavior", "prompt")
# older files have these beside `goal`
_OUTER_KEYS = (
    *("background", "tone", "response_stages", "anti_repetition"),
    *("question_priority", "verification"),
)
_MISPLACED = "belongs into one of the calls"
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
# what a stage's name or its prose means, in the words that agents use
_CONFIRMS = (
    "is that correct|is that right|does that work|shall i|should i go ahead|to confirm"
)
_PLAIN_WORDS = {
    "greeting": OFFERS_HELP,
    "help": OFFERS_HELP,
    "assist": OFFERS_HELP,
    "confirmation": _CONFIRMS,
    "confirm": _CONFIRMS,
    "closing": "anything else|is there anything more",
}
_FIELD_NAMES = {
    "date_of_birth": "dob",
    "birthday": "dob",
    "full_name": "name",
    "phone_number": "phone",
    "zip_code": "zip",
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


@dataclass
class Marked:
    """Plain data, and the line of each part."""

    data: Any
    source: str
    lines: dict[FieldPath, int] = field(default_factory=dict)

    def line_of(self, path: FieldPath) -> int:
        """The line of this part, or of the nearest part around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def refuse(self, path: FieldPath, reason: str) -> ScenarioRefused:
        return ScenarioRefused(
            self.source, self.line_of(path), speak_path(path), reason
        )


def speak_path(path: FieldPath) -> str:
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in path]
    return "".join(parts).lstrip(".") or "scenario"


def read_yaml(path: Path) -> Marked:
    """A file as values, each with the line it stands in."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise ScenarioRefused(str(path), 1, "file", "there is no such file") from None
    except OSError as error:
        raise ScenarioRefused(
            str(path), 1, "file", f"cannot be read ({error.strerror})"
        ) from None
    if len(raw) > MAX_BYTES:
        raise ScenarioRefused(
            str(path), 1, "file", f"is larger than {MAX_BYTES:,} bytes"
        )
    try:
        return parse_yaml(raw.decode("utf-8"), str(path))
    except UnicodeDecodeError:
        raise ScenarioRefused(str(path), 1, "file", "is not valid UTF-8") from None


def parse_yaml(text: str, source: str = "scenario") -> Marked:
    """The same of a text; `source` names it in errors."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        problem = getattr(error, "problem", None) or "unreadable"
        raise ScenarioRefused(
            source, line, "file", f"is not valid YAML ({problem})"
        ) from None
    except (RecursionError, ValueError):
        raise ScenarioRefused(source, 1, "file", "is not valid YAML") from None
    marked = Marked(None, source)
    if node is not None:
        marked.data = _YamlReader(marked).read_node(node, (), 0)
    return marked


class _YamlReader:
    """Values and their lines, within limits: aliases can make a small file huge."""

    def __init__(self, marked: Marked) -> None:
        self._marked = marked
        self._values = 0

    def read_node(self, node: yaml.Node, path: FieldPath, depth: int) -> Any:
        self._marked.lines[path] = node.start_mark.line + 1
        self._values += 1
        if depth > MAX_DEPTH or self._values > MAX_VALUES:  # aliases multiply values
            raise self._marked.refuse(path, "is nested or repeated too often")
        if isinstance(node, yaml.MappingNode):
            return self._read_mapping(node, path, depth)
        if isinstance(node, yaml.SequenceNode):
            items = enumerate(node.value)
            return [
                self.read_node(item, (*path, number), depth + 1)
                for number, item in items
            ]
        if (
            isinstance(node, yaml.ScalarNode)
            and node.style is None
            and node.value in _NULLS
        ):
            return None
        return str(node.value)

    def _read_mapping(
        self, node: yaml.MappingNode, path: FieldPath, depth: int
    ) -> Json:
        """Remembers the line of each key, so that a refusal can name it."""
        found: Json = {}
        for key_node, value_node in node.value:
            key = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else ""
            self._marked.lines[(*path, key)] = key_node.start_mark.line + 1
            if not key:
                raise self._marked.refuse((*path, key), "has a key that is not a word")
            if key in found:
                raise self._marked.refuse((*path, key), "is there twice")
            found[key] = self.read_node(value_node, (*path, key), depth + 1)
            self._marked.lines[(*path, key)] = key_node.start_mark.line + 1
        return found


def load_scenarios(path: Path) -> list[Scenario]:
    """Every scenario of a file: one, or a list of several."""
    return _read(read_yaml(path))


def parse_scenarios(text: str, source: str = "scenario") -> list[Scenario]:
    return _read(parse_yaml(text, source))


def _read(marked: Marked) -> list[Scenario]:
    """The scenarios of a file: one, a list of them, or a mapping by name."""
    data = marked.data
    if data is None:
        raise marked.refuse((), "is empty")
    if isinstance(data, dict) and isinstance(data.get("scenarios"), list | dict):
        listed: Any = data["scenarios"]
        prefix: FieldPath = ("scenarios",)
    elif isinstance(data, list):
        listed, prefix = data, ()
    else:
        return [_read_one(marked, data, ())]
    if isinstance(listed, dict):
        items = listed.items()
        found = [
            _read_one(marked, item, (*prefix, key), str(key)) for key, item in items
        ]
    else:
        found = [
            _read_one(marked, item, (*prefix, at)) for at, item in enumerate(listed)
        ]
    for number, scenario in enumerate(found):
        if scenario.name in [other.name for other in found[:number]]:
            raise marked.refuse(
                (*prefix, number, "name"), f"{scenario.name!r} is there twice"
            )
    return found


def _read_one(marked: Marked, data: Any, at: FieldPath, name: str = "") -> Scenario:
    """A scenario, or a refusal that names the line."""
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
    """Converts one scenario from the file's form to the model's; knows where each part was."""

    def __init__(self, marked: Marked, at: FieldPath) -> None:
        self._marked = marked
        self._at = at
        self._moved: list[tuple[FieldPath, FieldPath]] = []

    def unfold(self, data: Json) -> Json:
        """Notes in prose are collected from wherever older files have them."""
        data = self._move_inside(data)
        outer = (*_CALL_KEYS, *_PROSE_KEYS)
        whole = {key: value for key, value in data.items() if key not in outer}
        notes = whole["notes"] = _prose(data) + _listed(data.get("notes"))
        only_call = {key: data[key] for key in _CALL_KEYS if key in data}
        if "calls" not in whole:
            self._moved.append((("calls", 0), ()))
            call = self._unfold_call(only_call, (), notes)
            context = call.get("caller_context")
            if isinstance(context, dict):
                goal = context.pop("goal", None)
                if goal and not whole.get("goal"):
                    whole["goal"] = goal
            whole["calls"] = [call]
            return whole
        if only_call:
            raise self._marked.refuse((*self._at, next(iter(only_call))), _MISPLACED)
        if isinstance(whole["calls"], list):
            calls = whole["calls"] = list(whole["calls"])
            for number, call in enumerate(calls):
                if isinstance(call, dict):
                    calls[number] = self._unfold_call(call, ("calls", number), notes)
        return whole

    def _move_inside(self, data: Json) -> Json:
        """Moves what describes the caller into the context of the only call."""
        outer = [key for key in _OUTER_KEYS if key in data]
        name = next((key for key in _CONTEXTS if key in data), "caller_context")
        context = data.get(name) or {}
        if not outer or "calls" in data or not isinstance(context, dict):
            return data
        if twice := [key for key in outer if key in context]:
            raise self._marked.refuse((*self._at, twice[0]), f"is also in {name}")
        self._moved += [(("calls", 0, "caller_context", key), (key,)) for key in outer]
        whole = {key: value for key, value in data.items() if key not in outer}
        return whole | {name: context | {key: data[key] for key in outer}}

    def _unfold_call(self, call: Json, at: FieldPath, notes: list[str]) -> Json:
        """`patient_context` is another name of `caller_context`."""
        call = dict(call)
        given = [key for key in _CONTEXTS if key in call]
        if len(given) == 2:
            reason = "patient_context and caller_context are the same; give one"
            raise self._marked.refuse((*self._at, *at, given[1]), reason)
        if given and given[0] == "patient_context":
            call["caller_context"] = call.pop("patient_context")
            here = ("calls", 0) if at == () else at
            self._moved.append(((*here, "caller_context"), (*at, "patient_context")))
        if isinstance(call.get("caller_context"), dict):
            call["caller_context"] = self._unfold_context(call["caller_context"], notes)
        return call

    def _unfold_context(self, context: Json, notes: list[str]) -> Json:
        """Stages, rules and answers in the forms in which people write them."""
        notes += _prose(context)
        context = {
            key: value for key, value in context.items() if key not in _PROSE_KEYS
        }
        stages = context.get("response_stages")
        if isinstance(stages, dict):
            stages = [_stage(value, name) for name, value in stages.items()]
        if isinstance(stages, list):
            read = [_stage(stage) for stage in stages]
            notes += [stage for stage in read if isinstance(stage, str)]
            context["response_stages"] = [
                stage for stage in read if not isinstance(stage, str)
            ]
        context["anti_repetition"] = _anti_repetition(context.get("anti_repetition"))
        priority = context.get("question_priority")
        if priority in ("true", "false") or (
            isinstance(priority, str) and " " in priority.strip()
        ):
            notes += [f"question priority: {priority}"] if " " in priority else []
            context["question_priority"] = []
        if isinstance(context.get("verification"), dict):
            context["verification"] = _verification(context["verification"])
        return {key: value for key, value in context.items() if value is not None}

    def refusal(self, error: ValidationError) -> ScenarioRefused:
        """The deepest mistake, by its place in the file; for an unknown key, the nearest one."""
        errors = error.errors(include_url=False, include_input=False)
        first = max(errors, key=lambda item: len(item["loc"]))
        path, reason = tuple(first["loc"]), first["msg"].removeprefix("Value error, ")
        if inner := re.match(r"^((?:\[\d+\]|\.?[a-z_]+)+): (.+)$", reason):
            parts = re.findall(r"\d+|[a-z_]+", inner.group(1))
            path += tuple(int(part) if part.isdigit() else part for part in parts)
            reason = inner.group(2)
        reason = _REASONS.get(first["type"], reason)
        if first["type"] == "extra_forbidden" and (near := _nearest_key(path)):
            reason += f"; did you mean {near!r}?"
        shown = self._back(path)
        return self._marked.refuse((*self._at, *shown), reason[:1].lower() + reason[1:])

    def _back(self, path: FieldPath) -> FieldPath:
        """The path as the file has it."""
        for ours, theirs in sorted(self._moved, key=lambda pair: -len(pair[0])):
            if path[: len(ours)] == ours:
                return (*theirs, *path[len(ours) :])
        return path


def _nearest_key(path: FieldPath) -> str | None:
    """The known key in the same place that is spelled most like this one."""
    schema = json_schema()
    node = schema
    for part in path[:-1]:
        if isinstance(part, int):
            node = node.get("items", {})
        else:
            node = node.get("properties", {}).get(part, {})
        node = next(
            (option for option in node.get("anyOf", ()) if "$ref" in option), node
        )
        node = (
            schema["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node
        )
    close = difflib.get_close_matches(str(path[-1]), node.get("properties", {}), n=1)
    return close[0] if close else None


def _prose(data: Json) -> list[str]:
    return [str(data[key]) for key in _PROSE_KEYS if data.get(key)]


def _listed(value: Any) -> list[str]:
    if value is None:
        return []
    return [str(item) for item in value] if isinstance(value, list) else [str(value)]


def _stage(value: Any, name: str = "") -> Any:
    """A stage in any of the forms in use; prose without a trigger stays prose."""
    if isinstance(value, str):
        if prose := _PROSE_STAGE.match(value):
            when = _read_prose(prose["when"])
            return {"name": name, "when": when, "say": [prose["say"]]}
        if not name:
            return value
        usual = _PLAIN_WORDS.get(name.lower(), "")
        return {"name": name, "when": [usual] if usual else [], "say": [value]}
    if not isinstance(value, dict):
        return value
    stage = {_OLD_STAGE.get(key, key): inner for key, inner in value.items()}
    return ({"name": name} if name else {}) | stage


def _read_prose(words: str) -> list[str]:
    """The words themselves, the usual words for what they mean, or all that matter in any order."""
    found = [words]
    content = content_words(words)
    found += [_PLAIN_WORDS[word] for word in content if word in _PLAIN_WORDS]
    found += [f"/{pattern}/" for pattern in field_patterns(words)]
    if len(found) == 1 and content:
        found.append("/" + "".join(rf"(?=.*\b{word})" for word in content) + ".+/")
    return found


def _anti_repetition(value: Any) -> Any:
    if value in (None, "true"):
        return {}
    if value == "false":
        return {"enabled": False}
    return {"rules": value} if isinstance(value, str | list) else value


def _verification(value: Json) -> Json:
    """Fields may be beside `required` and `before`; an answer may be just its words."""
    own = ("required", "before", "answers")
    whole = {key: inner for key, inner in value.items() if key in own}
    given = value.get("answers", {})
    if isinstance(given, dict):
        fields = given | {key: inner for key, inner in value.items() if key not in own}
        whole["answers"] = {
            _FIELD_NAMES.get(key.lower(), key): {"answer": item}
            if isinstance(item, str)
            else item
            for key, item in fields.items()
        }
    return whole
