"""The glossary holds a word for every public class on the route of a call, once."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest
import shape

GLOSSARY = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text("utf-8")
ROUTE = [
    "phone",
    "carrier",
    "sockets",
    "engine",
    "speech",
    "bridge",
    "journal",
    "postcall",
    "work",
    "who",
    "memory",
    "briefing",
    "privacy",
    "workspace",
    "hosted",
    "model",
    "db",
    "llm",
    "app.py",
    "corrections.py",
    "evaluation.py",
    "labels.py",
    "durable.py",
    "running.py",
]
NO_NOUN = {
    "in",
    "out",
    "up",
    "retell",
    "clear",
}  # AudioIn, FollowUp, a carrier's commands


def own_words() -> list[str]:
    tables, _ = GLOSSARY.split("## Words of the field")
    rows = [
        line.split("|")[1] for line in tables.splitlines() if line.startswith("| **")
    ]
    return [word.lower() for row in rows for word in re.findall(r"\*\*(.+?)\*\*", row)]


def all_words() -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Za-z]+", GLOSSARY)}


def noun_of(class_name: str) -> str:
    words: list[str] = re.findall(
        r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+", class_name
    )
    return words[-1].lower()


def singular(noun: str) -> set[str]:
    stems = {noun, noun.removesuffix("s"), noun.removesuffix("es")}
    return stems | ({noun.removesuffix("ies") + "y"} if noun.endswith("ies") else set())


def public_classes() -> list[str]:
    return [
        node.name
        for source in shape.read_sources()
        if source.name.split("/")[0] in ROUTE
        for node in source.tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]


def test_no_word_is_defined_twice() -> None:
    assert [word for word, count in Counter(own_words()).items() if count > 1] == []


def test_every_class_on_the_route_is_named_by_a_word_of_the_glossary() -> None:
    known = all_words() | NO_NOUN
    classes = public_classes()
    assert len(classes) > 300
    assert [name for name in classes if not singular(noun_of(name)) & known] == []


@pytest.mark.parametrize(
    "word", ["call", "turn", "sealed", "request", "briefing", "verdict"]
)
def test_the_words_of_the_product_are_defined(word: str) -> None:
    assert word in own_words()
