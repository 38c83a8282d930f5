"""`aftercall password`."""

import typer
from argon2 import PasswordHasher

from aftercall.errors import RefusedInput

MIN_PASSWORD_CHARS = 10


def password() -> None:
    """Make the hash of a password that opens the pages; set it as AFTERCALL_PAGES_PASSWORD_HASH."""
    typed = typer.prompt("Password", hide_input=True, confirmation_prompt=True)
    if len(typed) < MIN_PASSWORD_CHARS:
        raise RefusedInput("password", f"is shorter than {MIN_PASSWORD_CHARS} characters")
    typer.echo(PasswordHasher().hash(typed))
