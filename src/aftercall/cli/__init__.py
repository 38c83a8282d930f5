"""The `aftercall` command, a file for each group."""
