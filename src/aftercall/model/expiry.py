"""Something that is past its time."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Item:
    """One thing of a kind: its id, whose it is, and how it is called when it is told what would go."""

    id: str
    whose: str = field(repr=False)
    name: str
