"""The protocols of the carriers without sockets: bytes in, events out; commands in, bytes out."""
