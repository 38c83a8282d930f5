"""How long a step that may pass waits before it is tried again: doubling from a second to ten
minutes, for about a day.
"""

LONGEST_S = 600.0
LONGEST_ASKED_S = 3600.0
TRIES = 150


def pause_after(tries: int, asked_s: float | None = None) -> float | None:
    """Seconds to wait after so many tries, at least as long as the other side asked for; None:
    it is time to give up.
    """
    if tries >= TRIES:
        return None
    usual = min(2.0 ** min(tries - 1, 20), LONGEST_S)
    return max(usual, min(asked_s or 0.0, LONGEST_ASKED_S))
