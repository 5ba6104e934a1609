"""How does a user name a contract?  `--with FLAGS` or `--without FLAGS`, alike in every command."""

from typing import Annotated

import typer

from jobslab.contract import FLAGS, Contract, split
from jobslab.errors import UnknownFlag

HELP = f"comma-separated, of: {', '.join(FLAGS)}"
With = Annotated[str | None, typer.Option("--with", metavar="FLAGS", help=f"Only these flags on; {HELP}.")]
Without = Annotated[str | None, typer.Option("--without", metavar="FLAGS", help=f"All flags on but these; {HELP}.")]


def contract_of(only: str | None, without: str | None) -> Contract | None:
    """The contract that the user asked for, or None.  `--with ""` is the contract with all five off.

    Raises UnknownFlag, also where both options are given.
    """
    if only is not None and without is not None:
        raise UnknownFlag("give --with or --without, not both")
    if only is not None:
        return Contract.only(*split(only))
    return None if without is None else Contract().without(*split(without))
