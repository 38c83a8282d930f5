"""The tester is killed between paying for a call and making it: the money counts as spent, so no crash makes calls for nothing."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from aftercall.tester.purse import Purse
from aftercall.testing import VirtualClock

SCRIPT = """
import sys
from pathlib import Path
from aftercall.tester.purse import Purse
from aftercall.testing import VirtualClock

Purse(Path(sys.argv[1]), 1.0, 0.1, VirtualClock()).reserve(300)
print("dialled")
"""


def test_a_crash_before_the_call_leaves_it_paid(tmp_path: Path) -> None:
    file = tmp_path / "spent.json"
    environment = os.environ | {"AFTERCALL_FAULT": "tester.after_reserve"}
    killed = subprocess.run([sys.executable, "-c", SCRIPT, str(file)], env=environment, capture_output=True, text=True, check=False)
    assert (killed.returncode, killed.stdout) == (-signal.SIGKILL, "")
    assert Purse(file, 1.0, 0.1, VirtualClock()).spent == 0.5
