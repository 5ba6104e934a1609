"""`jobslab migrate URL`: are the tables of a PostgreSQL store there, and up to date?"""

from typing import Annotated

import typer

from jobslab.commands.options import With, Without, contract_of

Url = Annotated[str, typer.Argument(metavar="URL", help="postgresql://USER:PASSWORD@HOST/DATABASE", show_default=False)]


def migrate(url: Url, only: With = None, without: Without = None) -> None:
    """Make the tables of a store on PostgreSQL, or bring them up to date; jobs that are there are kept."""
    from jobslab.stores import migrate

    done = migrate(contract_of(only, without), url)
    was = {None: "made", done.after: "already there"}.get(done.before, f"brought up from version {done.before}")
    print(f"{done.database}: tables of version {done.after} {was}, under the contract '{done.contract}'")
