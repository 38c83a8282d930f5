"""`python -m aftercall`."""

from aftercall.cli.main import run

run()
