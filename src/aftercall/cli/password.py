"""`aftercall password`."""

import typer
from argon2 import PasswordHasher

from aftercall.errors import RefusedInput

SHORTEST = 10


def password() -> None:
    """Make the hash of a password that opens the pages; set it as AFTERCALL_PAGES_PASSWORD_HASH."""
    typed = typer.prompt("Password", hide_input=True, confirmation_prompt=True)
    if len(typed) < SHORTEST:
        raise RefusedInput("password", f"is shorter than {SHORTEST} characters")
    typer.echo(PasswordHasher().hash(typed))
