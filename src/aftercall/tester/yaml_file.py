"""YAML with line numbers, and nothing guessed: every plain word stays text until a field asks
for a number or a yes or no.

So `say: No` is a word, `dtmf: 012` keeps its zero, and each value knows the line it stands on.
PyYAML, because its nodes carry their marks; its own guessing of types is not used.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from aftercall.errors import ScenarioRefused

MAX_BYTES = 1_000_000
MAX_DEPTH = 40
MAX_VALUES = 20_000
_NULLS = ("", "~", "null", "Null", "NULL")

Path_ = tuple[str | int, ...]


@dataclass
class Marked:
    """Plain data, and the line of each of its parts."""

    data: Any
    source: str
    lines: dict[Path_, int] = field(default_factory=dict)

    def line_of(self, path: Path_) -> int:
        """The line of this part, or of the nearest part around it that has one."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def refuse(self, path: Path_, reason: str) -> ScenarioRefused:
        return ScenarioRefused(self.source, self.line_of(path), speak_path(path), reason)


def speak_path(path: Path_) -> str:
    return (
        "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
        or "scenario"
    )


def read_yaml(path: Path) -> Marked:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise ScenarioRefused(str(path), 1, "file", "there is no such file") from None
    except OSError as error:
        raise ScenarioRefused(str(path), 1, "file", f"cannot be read ({error.strerror})") from None
    if len(raw) > MAX_BYTES:
        raise ScenarioRefused(str(path), 1, "file", f"is larger than {MAX_BYTES:,} bytes")
    try:
        return parse_yaml(raw.decode("utf-8"), str(path))
    except UnicodeDecodeError:
        raise ScenarioRefused(str(path), 1, "file", "is not valid UTF-8") from None


def parse_yaml(text: str, source: str = "scenario") -> Marked:
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        raise ScenarioRefused(
            source,
            line,
            "file",
            f"is not valid YAML ({getattr(error, 'problem', None) or 'unreadable'})",
        ) from None
    except (RecursionError, ValueError):
        raise ScenarioRefused(source, 1, "file", "is not valid YAML") from None
    marked = Marked(None, source)
    if node is not None:
        marked.data = _YamlReader(marked).read_node(node, (), 0)
    return marked


class _YamlReader:
    def __init__(self, marked: Marked) -> None:
        self._marked = marked
        self._values = 0

    def read_node(self, node: yaml.Node, path: Path_, depth: int) -> Any:
        self._marked.lines[path] = node.start_mark.line + 1
        self._values += 1
        if (
            depth > MAX_DEPTH or self._values > MAX_VALUES
        ):  # an alias may stand for a page of others
            raise self._marked.refuse(path, "is nested or repeated too often")
        if isinstance(node, yaml.MappingNode):
            return self._read_mapping(node, path, depth)
        if isinstance(node, yaml.SequenceNode):
            return [
                self.read_node(item, (*path, number), depth + 1)
                for number, item in enumerate(node.value)
            ]
        if isinstance(node, yaml.ScalarNode) and node.style is None and node.value in _NULLS:
            return None
        return str(node.value)

    def _read_mapping(self, node: yaml.MappingNode, path: Path_, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else ""
            self._marked.lines[(*path, key)] = key_node.start_mark.line + 1
            if not key:
                raise self._marked.refuse((*path, key), "has a key that is not a word")
            if key in found:
                raise self._marked.refuse((*path, key), "stands there twice")
            found[key] = self.read_node(value_node, (*path, key), depth + 1)
            self._marked.lines[(*path, key)] = key_node.start_mark.line + 1
        return found
