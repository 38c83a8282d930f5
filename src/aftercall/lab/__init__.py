"""The phone network in a box: emulated services on loopback, for the demo and for tests."""
