"""What `serve` and `worker` set for their whole process."""

import ctypes
import subprocess
import sys

import pytest

# In a process of its own: malloc has no way back.
LARGE_BLOCKS = """
import ctypes
from aftercall.cli.server import limit_malloc

class Usage(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd",
        "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")]

library = ctypes.CDLL(None)
library.mallinfo2.restype = Usage
limit_malloc()
for _ in range(2):
    before = library.mallinfo2().hblks
    block = bytearray(16_000_000)
    print(library.mallinfo2().hblks - before)
    del block
"""


@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="another C library than glibc"
)
def test_every_large_block_goes_back_to_the_system_not_the_first_alone() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", LARGE_BLOCKS], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == ["1", "1"]
