"""The carriers' wires without sockets: bytes in, events out; commands in, bytes out."""
