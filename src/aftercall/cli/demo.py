"""`aftercall demo`: placeholder until written below."""


def demo() -> None:
    """The main job, end to end."""
