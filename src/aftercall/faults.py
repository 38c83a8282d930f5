"""Named points where a crash test may end the process; they do nothing unless AFTERCALL_FAULT names one.

`AFTERCALL_FAULT=journal.after_append:3` kills the process with SIGKILL the third time that point is reached.
"""

import os
import signal

_point, _, _count = os.environ.get("AFTERCALL_FAULT", "").partition(":")
_left = int(_count or 1)


def reach(point: str) -> None:
    global _left
    if point == _point:
        _left -= 1
        if _left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
