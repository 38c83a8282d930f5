import re
from pathlib import Path

import aftercall
from aftercall.faults import POINTS


def test_every_point_is_listed_and_every_listed_point_is_reached() -> None:
    package = Path(aftercall.__file__).parent
    reached = {
        point
        for path in package.rglob("*.py")
        for point in re.findall(r'fault_point\("([^"]+)"\)', path.read_text())
    }
    assert reached == set(POINTS)
