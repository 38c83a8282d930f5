"""`aftercall export`, `erase`, `retention`, `rebuild`, `verify` and `archive`."""

import json as json_format
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from aftercall.cli.context import (
    JSON_OPTION,
    count_nouns,
    get_cli_context,
    get_operator_name,
    print_json,
    print_line,
)
from aftercall.errors import NotFound, ObjectStoreUnreachable, RefusedInput
from aftercall.model.people import read_caller

if TYPE_CHECKING:
    from aftercall.journal.recording_files import RecordingFolder
    from aftercall.privacy.erase import ErasureReceipt
    from aftercall.stores import Stores

_MOVED = ("calls", "recordings")
archive_group = typer.Typer(no_args_is_help=True)
_CALLER = typer.Argument(metavar="CALLER", help="The number, with its country code.")


def export(
    context: typer.Context,
    caller: str = _CALLER,
    to: str = typer.Option(
        "",
        metavar="FOLDER",
        help="Where to; a new folder here, named after the caller, if unset.",
    ),
    reveal: bool = typer.Option(
        False, "--reveal", help="Also decrypt secrets; this is logged."
    ),
    json: bool = JSON_OPTION,
) -> None:
    """Write everything stored about a caller into one folder of JSON and markdown."""
    from aftercall.workspace.paths import make_folder_name

    number = _read_number(caller)
    with get_cli_context(context).open_app() as app:
        made = app.exporter.export(
            number,
            Path(to or make_folder_name(number)),
            reveal=reveal,
            who=get_operator_name(),
        )
    if json:
        print_json(asdict(made) | {"folder": str(made.folder)})
    else:
        counts = count_nouns(
            call=made.calls,
            fact=made.facts,
            follow_up=made.followups,
            document=made.documents,
        )
        typer.echo(f"{made.folder}: {counts}")


def erase(
    context: typer.Context,
    caller: str = _CALLER,
    yes: bool = typer.Option(False, "--yes", help="Do not ask."),
    json: bool = JSON_OPTION,
) -> None:
    """Erase everything stored about a caller, and prove it.

    It cannot be undone. The receipt names the places out of our reach.
    """
    number = _read_number(caller)
    if not yes:
        typer.confirm(
            "This erases everything about this caller for good. Continue?", abort=True
        )
    with get_cli_context(context).open_app() as app:
        receipt = app.eraser.erase(number, get_operator_name())
    if json:
        print_json(receipt.to_json())
    else:
        _print_receipt(receipt)
    if not receipt.scan.is_clean:
        raise typer.Exit(1)


def retention(
    context: typer.Context,
    dry_run: bool = typer.Option(
        False, "--dry-run", help="Only list what would be removed."
    ),
    json: bool = JSON_OPTION,
) -> None:
    """Remove what is past its retention time (`[retention]`); a running server does it every
    hour.
    """
    with get_cli_context(context).open_app() as app:
        expired = app.retention.find_expired() if dry_run else app.retention.apply()
        actions = {kind: app.retention.action(kind) for kind in expired}
    if json:
        names = {kind: [item.name for item in items] for kind, items in expired.items()}
        print_json(names | {"actions": actions, "dry_run": dry_run})
        return
    for kind, items in expired.items():
        done = "archived" if actions[kind] == "archive" else "removed"
        typer.echo(f"{len(items)} {kind} {'would be ' if dry_run else ''}{done}")
        for item in items:
            typer.echo(f"  {item.name}")


def rebuild(context: typer.Context, json: bool = JSON_OPTION) -> None:
    """Rebuild memory from the archive alone: facts, search index, documents and summaries.

    Stored model answers are used again, and follow-up work is not repeated: requests of calls
    that are new to the database are as the bucket's copies have them, or noted; none is
    delivered. Takes over a bucket whose database is lost. Best run while no server runs.
    """
    from rich.progress import Progress

    from aftercall.privacy.rebuild import REQUESTS

    cli = get_cli_context(context)
    progress = Progress(console=cli.console, disable=json, transient=True)
    with cli.open_app(purpose="rebuild") as app, progress:
        bar = progress.add_task("Rebuilding", total=None)
        made = app.rebuilder.rebuild(
            lambda done, total: progress.update(bar, completed=done, total=total)
        )
        app.corrections.write_pending()
    if json:
        print_json(asdict(made))
    else:
        adopted = (
            f", {made.adopted} of them new to the database" if made.adopted else ""
        )
        typer.echo(f"{count_nouns(call=made.calls)} rebuilt{adopted}")
        if made.followups:
            listed = count_nouns(follow_up=made.followups)
            typer.echo(f"{listed} of new calls noted; nothing is delivered again")
        for name in made.failed:
            typer.echo(f"  {name}: could not be rebuilt; run `aftercall verify`")
        for left in made.undone:
            again = f"run `aftercall calls rerun {left.call_id}`"
            if left.step == REQUESTS:
                again = "run `aftercall rebuild` again"
            typer.echo(f"  {left.call_id}: {left.step} failed ({left.reason}); {again}")
    if made.failed or made.undone:
        raise typer.Exit(1)


def verify(context: typer.Context, json: bool = JSON_OPTION) -> None:
    """Check that every sealed call and every recording is present and unchanged.

    Exits with 1 and names each file that is not.
    """
    from aftercall.journal.recording_files import RecordingFolder
    from aftercall.journal.verify import verify_archive, verify_recordings

    cli = get_cli_context(context)
    with cli.open_stores() as stores:
        place = stores.archive.place
        try:
            proof = verify_archive(place, stores.store)
            folder = RecordingFolder.from_settings(stores.settings)
            heard = verify_recordings(folder, stores.recordings)
        except ObjectStoreUnreachable as error:
            files = count_nouns(sealed_file=place.count_waiting())
            told = f"{error}; {files} in the database, waiting for it"
            raise ObjectStoreUnreachable(told) from error
    faults = proof.faults + heard.faults
    waiting = proof.waiting + heard.waiting
    if json:
        both = {"faults": [asdict(fault) for fault in faults], "waiting": waiting}
        print_json(asdict(proof) | {"recordings": heard.recordings} | both)
    else:
        for fault in faults:
            print_line((fault.kind, "red"), f"  {fault.name}: {fault.reason}")
        verdict = ("all proven", "green")
        if faults:
            verdict = (count_nouns(fault=len(faults)), "red")
        counts = count_nouns(
            sealed_call=proof.calls, file=proof.files, chain_link=proof.links
        )
        if heard.recordings:
            counts += f", {count_nouns(recording=heard.recordings)}"
        if waiting:
            counts += f"; {count_nouns(file=waiting)} not in the object store yet"
        print_line(verdict, f": {counts}")
    if faults:
        raise typer.Exit(1)


@archive_group.callback()
def archive() -> None:
    """Sealed calls."""


@archive_group.command("cat")
def print_archived(
    context: typer.Context,
    call: str = typer.Argument(
        metavar="CALL",
        help="A call's id, the name of its archive file, or a recording's path in the home.",
    ),
    json: bool = JSON_OPTION,
) -> None:
    """Print a sealed call with its addenda, word for word, encrypted or not; this is logged.

    A recording or its transcript is written to standard output as it was before it was encrypted.
    """
    from aftercall.journal.archive import read_clear
    from aftercall.journal.recording_files import RecordingFolder

    with get_cli_context(context).open_stores() as stores:
        place = stores.archive.place
        names = _find_archive_files(stores, call)
        folder = RecordingFolder.from_settings(stores.settings)
        recording = (
            None if names else _find_recording(folder, stores.settings.home, call)
        )
        subject = names[0] if names else "a recording"
        stores.audit.record(get_operator_name(), "revealed", subject)
        if recording:
            for block in folder.read_blocks(recording):
                sys.stdout.buffer.write(block)
            sys.stdout.flush()
            return
        # all, before one is printed
        files = [read_clear(place, name) for name in names]
        if json:
            call_json, *addenda = map(json_format.loads, files)
            print_json(call_json | {"addenda": addenda})
            return
        sys.stdout.buffer.write(b"".join(files))
        sys.stdout.flush()


@archive_group.command("move")
def move(context: typer.Context, json: bool = JSON_OPTION) -> None:
    """Move the archive and the recordings of this home into `archive.url`.

    Goes on where it was cut off. A file leaves the home once it is in the bucket.
    """
    from rich.progress import Progress

    from aftercall.journal.archive_bucket import ArchiveBucket
    from aftercall.journal.recording_files import RecordingFolder, move_recordings

    cli = get_cli_context(context)
    if not cli.config.settings.archive.url:
        raise RefusedInput("archive.url", "is not set; it says where to move to")
    progress = Progress(console=cli.console, disable=json, transient=True)
    with cli.open_stores(purpose="move") as stores, progress:
        place = stores.archive.place
        stores.move_archive()
        assert isinstance(place, ArchiveBucket)  # noqa: S101 - by archive.url
        bars = {name: progress.add_task(name, total=None) for name in _MOVED}
        moved = {"calls": 0, "recordings": 0}

        def show(name: str, done: int, total: int) -> None:
            moved[name] = done
            progress.update(bars[name], completed=done, total=total)

        place.upload_waiting(takes_all=True)
        wrong = place.move_folder(partial(show, "calls"))
        folder = RecordingFolder.from_settings(stores.settings)
        move_recordings(folder, stores.recordings, partial(show, "recordings"))
    moved["calls"] -= len(wrong)
    if json:
        print_json(moved | {"left": wrong, "url": place.bucket.url})
    else:
        typer.echo(
            count_nouns(archive_file=moved["calls"], recording_file=moved["recordings"])
            + f" moved to {place.bucket.url}"
        )
        for name in wrong:
            typer.echo(
                f"  {name}: not as it was sealed, or gone; run `aftercall verify`"
            )
    if wrong:
        raise typer.Exit(1)


def _find_archive_files(stores: "Stores", call: str) -> list[str]:
    """The file of a call and its addenda; none if there is no such call."""
    try:
        name = stores.store.get(stores.find_id("call", call)).archive_name
    except NotFound:
        name = call.removeprefix("archive/")
    return stores.archive.list_files(name) if name else []


def _find_recording(recordings: "RecordingFolder", home: Path, name: str) -> Path:
    """A file among the recordings; links lead nowhere else. Raises NotFound."""
    from aftercall.journal.recording_files import RECORDINGS_FOLDER

    folder = (home / RECORDINGS_FOLDER).resolve()
    path = (home / name).resolve()
    if not (path.is_relative_to(folder) and recordings.has(path)):
        raise NotFound(f"there is no call, archive file or recording {name!r}")
    return path


def _read_number(caller: str) -> str:
    number = read_caller(caller, "CALLER")
    if number is None:
        raise RefusedInput("CALLER", "is withheld; nothing is kept under it")
    return number


def _print_receipt(receipt: "ErasureReceipt") -> None:
    scan = receipt.scan
    removed = count_nouns(
        call=receipt.calls,
        archive_file=receipt.archive_files,
        page=receipt.pages,
        recording=receipt.recordings,
        row=sum(receipt.rows.values()),
        workflow=receipt.workflows,
    )
    typer.echo(f"Receipt {receipt.id}")
    typer.echo(f"Removed: {removed}")
    typer.echo(
        f"Searched {count_nouns(file=scan.files)} ({scan.bytes:,} bytes) "
        "for traces of the caller"
    )
    for name in scan.others:
        typer.echo(f"  {name}: another caller says the same; it is theirs and stays")
    if scan.traces:
        typer.echo(f"Still there: {', '.join(scan.traces)}")
    if scan.unreadable:
        typer.echo(f"Could not be searched: {', '.join(scan.unreadable)}")
    if scan.is_clean and scan.others:
        typer.echo("Nothing of the caller's own is left.")
    elif scan.is_clean:
        typer.echo("Nothing is left.")
    typer.echo("Out of our reach:")
    for place in receipt.out_of_reach:
        typer.echo(f"  {place}")
