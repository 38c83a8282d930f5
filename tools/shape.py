"""The shape of the package as one table: size, width, density, complexity, names, imports.

Run `python tools/shape.py` to print it. `tests/unit/test_shape.py` fails past a limit.
"""

import ast
import statistics
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src" / "aftercall"
MAX_COLUMNS = 100
SMALL_FILE_LINES = 30
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_BRANCHES = (
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.ExceptHandler,
    ast.IfExp,
    ast.Assert,
    ast.comprehension,
    ast.match_case,
)


@dataclass(frozen=True)
class Figure:
    name: str
    value: float
    limit: float

    @property
    def is_past(self) -> bool:
        return self.value > self.limit


@dataclass(frozen=True)
class Source:
    """One module, read and parsed."""

    name: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All of the tree, walked once."""
        return list(ast.walk(self.tree))

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @property
    def module(self) -> str:
        dotted = "aftercall." + self.name.removesuffix(".py").replace("/", ".")
        return dotted.removesuffix(".__init__")

    @property
    def stem(self) -> str:
        return Path(self.name).stem

    @property
    def is_init(self) -> bool:
        return self.name.endswith("__init__.py")

    def walk(self, *kinds: type[ast.AST]) -> Iterator[ast.AST]:
        return (node for node in self.nodes if isinstance(node, kinds))


def read_sources(package: Path = PACKAGE) -> list[Source]:
    paths = sorted(package.rglob("*.py"))
    return [Source(str(path.relative_to(package)), path.read_text()) for path in paths]


def measure(sources: list[Source]) -> list[Figure]:
    lengths = sorted(len(source.lines) for source in sources if source.lines)
    functions = sorted(count_lines(node) for node in all_functions(sources))
    complexities = sorted(count_branches(node) for node in all_functions(sources))
    lines = sum(lengths)
    nodes = sum(len(source.nodes) for source in sources)
    written = sum(1 for source in sources for line in source.lines if line.strip())
    wide = sum(len(line) > MAX_COLUMNS for source in sources for line in source.lines)
    modules = [source for source in sources if not source.is_init]
    small = [source for source in modules if len(source.lines) < SMALL_FILE_LINES]
    classes = list(all_classes(sources))
    names = Counter(node.name for node in classes)
    imports = find_imports(sources)
    return [
        Figure("files", len(sources), 340),
        Figure("lines", lines, float("inf")),
        Figure("file median", statistics.median(lengths), float("inf")),
        Figure("file max", lengths[-1], 500),
        Figure("function median", statistics.median(functions), 9),
        Figure("function p90", percentile(functions, 90), 30),
        Figure("function max", functions[-1], 60),
        Figure("syntax nodes per line", nodes / written, 7.5),
        Figure("lines over 100 columns", wide, 0),
        Figure("cyclomatic p90", percentile(complexities, 90), 7),
        Figure("cyclomatic max", complexities[-1], 15),
        Figure(
            "methods of a class with its bases",
            max(count_methods(classes).values()),
            25,
        ),
        Figure("class names used twice", sum(count > 1 for count in names.values()), 0),
        Figure("files under 30 lines, %", 100 * len(small) / len(modules), 8),
        Figure("longest import chain", longest_chain(imports), 15),
        Figure("largest import ring", largest_ring(imports), 1),
        Figure("broad excepts per 1,000 lines", 1000 * count_broad(sources) / lines, 1),
    ]


def percentile(values: list[int], share: int) -> int:
    return values[int(len(values) * share / 100)]


def all_functions(sources: Iterable[Source]) -> Iterator[_Function]:
    for source in sources:
        for node in source.walk(ast.FunctionDef, ast.AsyncFunctionDef):
            if isinstance(node, _Function):
                yield node


def all_classes(sources: Iterable[Source]) -> Iterator[ast.ClassDef]:
    for source in sources:
        for node in source.walk(ast.ClassDef):
            if isinstance(node, ast.ClassDef):
                yield node


def count_lines(node: _Function) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def count_branches(function: _Function) -> int:
    """Cyclomatic complexity; a function inside counts for itself."""
    count, todo = 1, list(ast.iter_child_nodes(function))
    while todo:
        node = todo.pop()
        if isinstance(node, _Function):
            continue
        if isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
        count += isinstance(node, _BRANCHES)
        todo.extend(ast.iter_child_nodes(node))
    return count


def count_methods(classes: list[ast.ClassDef]) -> dict[str, int]:
    """Methods of each class together with those of its bases in the package."""
    by_name = {node.name: node for node in classes}

    def names_of(node: ast.ClassDef) -> set[str]:
        names = {item.name for item in node.body if isinstance(item, _Function)}
        for base in node.bases:
            parent = by_name.get(base.id) if isinstance(base, ast.Name) else None
            if parent is not None and parent is not node:
                names |= names_of(parent)
        return names

    return {node.name: len(names_of(node)) for node in classes}


def count_broad(sources: Iterable[Source]) -> int:
    handlers = (node for source in sources for node in source.walk(ast.ExceptHandler))
    return sum(
        isinstance(node, ast.ExceptHandler)
        and (
            node.type is None
            or getattr(node.type, "id", "") in ("Exception", "BaseException")
        )
        for node in handlers
    )


def find_imports(sources: list[Source]) -> dict[str, set[str]]:
    """Module → modules of the package that it imports when it is loaded."""
    modules = {source.module for source in sources}
    found: dict[str, set[str]] = {}
    for source in sources:
        targets: set[str] = set()
        for node in top_level(source.tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    dotted = f"{node.module}.{alias.name}"
                    targets |= {dotted if dotted in modules else node.module} & modules
            elif isinstance(node, ast.Import):
                targets |= {alias.name for alias in node.names} & modules
        found[source.module] = targets - {source.module}
    return found


def top_level(tree: ast.Module) -> Iterator[ast.AST]:
    """Statements that run when the module is loaded; not what only a type checker reads."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, _Function):
            continue
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            continue
        yield node
        todo.extend(ast.iter_child_nodes(node))


def longest_chain(imports: dict[str, set[str]]) -> int:
    depths: dict[str, int] = {}

    def depth(module: str, above: frozenset[str]) -> int:
        if module not in depths:
            below = (
                depth(other, above | {module}) for other in imports[module] - above
            )
            depths[module] = 1 + max(below, default=0)
        return depths[module]

    return max(depth(module, frozenset()) for module in imports)


def largest_ring(imports: dict[str, set[str]]) -> int:
    """Modules that reach each other; 1 is none."""
    reached = {module: reach(module, imports) for module in imports}
    rings = (
        {other for other in reached[module] if module in reached[other]}
        for module in imports
    )
    return max((len(ring) for ring in rings), default=0) or 1


def reach(module: str, imports: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    todo = [module]
    while todo:
        fresh = imports[todo.pop()] - seen
        seen |= fresh
        todo.extend(fresh)
    return seen


def print_table(figures: Iterable[Figure]) -> None:
    for figure in figures:
        limit = "" if figure.limit == float("inf") else f"≤ {figure.limit:g}"
        mark = "  PAST ITS LIMIT" if figure.is_past else ""
        print(f"  {figure.name:36} {figure.value:>10,.1f}   {limit}{mark}")


if __name__ == "__main__":
    print_table(
        measure(read_sources(Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE))
    )
