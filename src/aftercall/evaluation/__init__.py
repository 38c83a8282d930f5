"""How well a reader reads calls that people have labelled."""
