"""What is the SQL of a clause?  A statement as it is in force, and the lines in which two contracts differ."""

from jobslab.contract import STATEMENTS, Contract, changed_lines, statements
from jobslab.errors import JobslabError
from jobslab.lab.text import Text
from jobslab.lab.trial import contract_of

LINES = 6  # more than this is no longer one change to look at


class UnknownStatement(JobslabError):
    """No statement has this name, or it is the same under both contracts."""


def sql(verb: str, contract: str | Contract = "all") -> Text:
    """The statement of this verb as it is in force under a contract.  Raises UnknownStatement."""
    if verb not in STATEMENTS:
        raise UnknownStatement(f"there is no statement {verb!r}; the statements are: {', '.join(STATEMENTS)}")
    return Text(statements(contract_of(contract))[verb])


def diff(before: str | Contract, after: str | Contract, *verbs: str) -> Text:
    """The lines of SQL in which two contracts differ, `-` before and `+` after, in these statements or in all.

    Raises UnknownStatement for one that does not differ, and where more than LINES lines would be shown.
    """
    changed = dict(changed_lines(contract_of(before), contract_of(after)))
    for verb in verbs:
        if verb not in changed:
            raise UnknownStatement(f"{verb!r} is the same under both; these differ: {', '.join(changed) or 'none'}")
    shown = {verb: lines for verb, lines in changed.items() if verb in (verbs or changed)}
    if sum(map(len, shown.values())) > LINES:
        raise UnknownStatement(f"that is more than {LINES} lines; name fewer statements of: {', '.join(shown)}")
    blocks = ["\n".join([f"{verb}:", *lines]) for verb, lines in shown.items()]
    return Text("\n\n".join([f"--- {contract_of(before)}\n+++ {contract_of(after)}", *blocks]))
