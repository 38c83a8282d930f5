"""The phone network in a box: emulated carriers on loopback, for the demo, our tests and your
own.
"""
