"""How is a schedule written down?  A schedule is a tuple of Steps, and FORMS says how each step reads as text.

Scenarios, counterexamples, bug reports and exercises are all written in this one form.  `parse` reads it and `text`
writes it, both from the same table, so that neither can know a step that the other does not.

    client submits key=k1 / response lost        several steps on a line, " / " between them
    the old worker's completion: A succeeds      a label, where a step is to be a row of a table
    # a remark, and blank lines, say nothing
"""

import difflib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from jobslab.errors import JobslabError
from jobslab.job import REPORTS


class BadSchedule(JobslabError):
    """The text is no schedule; its sentence names the line, and what would be understood."""


class Step(NamedTuple):
    """One thing that happens: who does what.  `arguments` holds those that were given, in the order of the form."""

    actor: str
    verb: str
    arguments: tuple[tuple[str, Any], ...] = ()
    label: str | None = None

    def argument(self, name: str, default: Any = None) -> Any:
        return dict(self.arguments).get(name, default)

    def __str__(self) -> str:
        """The step as text, without its label."""
        return written(self._replace(label=None))


Schedule = tuple[Step, ...]


class Slot(NamedTuple):
    """A value inside a step: how it looks, how it is read and written, and an example."""

    pattern: str
    example: str
    read: Callable[[str], Any] = str
    write: Callable[[Any], str] = str


def number(text: str) -> float:
    return float(text) if "." in text else int(text)


def decimal(number: float) -> str:
    return f"{number:.3f}".rstrip("0").rstrip(".")


SLOTS = {
    "client": Slot(r"client\d*", "client"),
    "worker": Slot(r"[A-Z]\w*", "A"),
    "sweeper": Slot(r"[A-Z]\w*", "S"),
    "job": Slot(r"job-\d{1,9}", "job-1"),
    "attempt": Slot(r"\d{1,9}", "1", int),
    "percent": Slot(r"\d{1,2}%", "50%", lambda text: int(text[:-1]), lambda percent: f"{percent}%"),
    "units": Slot(r"\d{1,9}(?:\.\d{1,3})?", "100", number, decimal),
    "rule": Slot(r'"(?:not RUNNING|terminal set)"', '"not RUNNING"', lambda text: text[1:-1], '"{}"'.format),
}


class Form(NamedTuple):
    """How the steps of one verb are written: words, {slots}, [what may be left out], and options, name=value."""

    verb: str
    words: str
    options: tuple[str, ...] = ()
    actor: str = ""  # of a step that names none


SHOWN = ("location", "id", "state", "done", "attempt", "progress", "cancel_requested", "result", "error")

# How a schedule says the reports of a worker, and what goes with some of them.
SAID = {
    "renew": ("renews", ()),
    "progress": ("progresses [{percent}]", ()),
    "succeed": ("succeeds", ()),
    "fail": ("fails", ("error",)),
    "retry": ("retries", ("error",)),
    "stop": ("stops", ()),
}

FORMS = (
    Form("submit", "{client} submits", ("key", "kind", "table", "show")),
    Form("submit again", "{client} submits again"),  # the same request once more, its key included
    Form("poll", "{client} polls [{job}]", ("show",)),
    Form("cancel", "{client} cancels [{job}]"),
    Form("give up", "{client} gives up"),  # its deadline is over
    Form("count jobs", "{client} counts jobs"),
    Form("judge", "{client} judges {rule}"),  # is the job over, going by the state that it saw last?
    Form("pick", "{worker} picks"),
    Form("claim", "{worker} claims"),
    Form("claim next", "{worker} claims next"),  # pick and claim in one
    *[Form(report, f"{{worker}} {words}", options) for report, (words, options) in SAID.items()],
    # A report may be under way while its worker goes on; it arrives late, or twice, or never.
    *[
        Form(f"send {report}", "{worker} sends " + " ".join([report, *words.split()[1:]]), options)
        for report, (words, options) in SAID.items()
    ],
    *[
        Form(f"{report} late", f"{{worker}} {words} late [{{job}} attempt {{attempt}}]", options)
        for report, (words, options) in SAID.items()
    ],
    Form("crash", "{worker} crashes"),
    Form("look", "{sweeper} looks [{job}]"),
    Form("requeue", "{sweeper} requeues"),  # or gives up, as it decided when it looked
    Form("sweep", "sweep", actor="sweeper"),
    Form("pass", "{units} units pass", actor="time"),
    Form("restart", "restart", actor="server"),
    Form("purge", "purge", actor="server"),
    Form("count workers", "count workers running {job}", actor="lab"),
)

ACTORS = ("client", "worker", "sweeper")

LOST = "response lost"  # written as a step of its own, and an argument of the client's step before it
MAY_LOSE = ("submit", "submit again", "poll", "cancel", "count jobs")


# Writing


def text(schedule: Iterable[Step]) -> str:
    """The schedule as text, a step a line; `parse` reads it back to the same steps."""
    return "\n".join(written(step) for step in schedule)


def written(step: Step) -> str:
    form = FORM_OF[step.verb]
    given = {**dict.fromkeys(ACTORS, step.actor), **dict(step.arguments)}
    words = re.sub(r" \[(.*?)\]", lambda group: f" {group[1]}" if is_given(group[1], given) else "", form.words)
    words = re.sub(r"\{(\w+)\}", lambda slot: SLOTS[slot[1]].write(given[slot[1]]), words)
    options = [f" {name}={quoted(given[name])}" for name in form.options if name in given]
    label = f"{step.label}: " if step.label else ""
    return label + words + "".join(options) + (f" / {LOST}" if step.argument("lost") else "")


def is_given(group: str, given: dict[str, Any]) -> bool:
    return all(slot in given for slot in re.findall(r"\{(\w+)\}", group))


def quoted(value: str | tuple[str, ...]) -> str:
    """An option's value: bare where it is a plain word, else as a JSON string."""
    plain = value if isinstance(value, str) else ",".join(value)
    return plain if re.fullmatch(r"[\w.,-]+", plain, re.ASCII) else json.dumps(plain)


# Reading


def read(text_or_file: str) -> Schedule:
    """The schedule in the file of this name, or else in this text.  Raises BadSchedule."""
    try:
        if Path(text_or_file).is_file():
            return parse(Path(text_or_file).read_text(encoding="utf-8"))
    except UnicodeDecodeError as wrong:
        raise BadSchedule(f"{text_or_file} is no text; a schedule is a text file in UTF-8") from wrong
    except OSError as wrong:
        if not re.search(r"\s", text_or_file):
            raise BadSchedule(f"{text_or_file} can't be read: {wrong.strerror}") from wrong
    if re.search(r"\s", text_or_file) or text_or_file in FORM_OF:
        return parse(text_or_file)
    raise BadSchedule(f"there is no file {text_or_file!r}, and it is no schedule: {UNDERSTOOD}")


def parse(schedule: str) -> Schedule:
    """The steps of this text.  Raises BadSchedule."""
    steps: list[Step] = []
    for number, piece in pieces(schedule):
        try:
            if piece == LOST:
                steps[-1:] = [without_its_response(steps)]
            else:
                steps.append(step(piece))
        except BadSchedule as wrong:
            raise BadSchedule(f"line {number}: {wrong}") from None
    if not steps:
        raise BadSchedule(f"the schedule has no step: {UNDERSTOOD}")
    return tuple(steps)


QUOTED = r'"(?:[^"\\]|\\.)*"'


def pieces(schedule: str) -> Iterator[tuple[int, str]]:
    """Each step's text with the number of its line."""
    for number, line in enumerate(schedule.splitlines(), start=1):
        if not line.lstrip().startswith("#"):
            apart = re.sub(rf"({QUOTED})| / ", lambda found: found[1] or "\n", f" {line} ")
            yield from ((number, piece.strip()) for piece in apart.split("\n") if piece.strip())


def step(piece: str) -> Step:
    """The step that is written as this text, perhaps with a label.  Raises BadSchedule."""
    label, rest = label_and_rest(piece)
    words, options = words_and_options(rest)
    for form in FORMS:
        found = re.fullmatch(PATTERN_OF[form.verb], words)
        if found:
            slots = {name: SLOTS[name].read(value) for name, value in found.groupdict().items() if value is not None}
            actor = next((slots.pop(who) for who in ACTORS if who in slots), form.actor)
            return Step(actor, form.verb, (*slots.items(), *known_options(form, options)), label)
    raise BadSchedule(no_step(rest, words))


def label_and_rest(piece: str) -> tuple[str | None, str]:
    """A label ends at the first colon with a space behind it; it has no double quotes."""
    found = re.fullmatch(r'([^"]+?): +(.+)', piece)
    return (found[1], found[2]) if found else (None, piece)


OPTION = re.compile(rf'\s(\w+)=({QUOTED}|[^\s"]*)(?=\s|$)')


def words_and_options(step: str) -> tuple[str, list[tuple[str, str]]]:
    """The words with single spaces between them, and the options as they are written."""
    return " ".join(OPTION.sub("", step).split()), OPTION.findall(step)


def known_options(form: Form, options: list[tuple[str, str]]) -> Iterator[tuple[str, Any]]:
    """The options' values in the form's order.  Raises BadSchedule for one that it does not have, or has twice."""
    names = [name for name, _ in options]
    for name in names:
        if name not in form.options:
            known = ", ".join(f"{option}=" for option in form.options) or "no option"
            raise BadSchedule(f"there is no {name}= here: {shown(form)!r} understands {known}")
        if names.count(name) > 1:
            raise BadSchedule(f"{name}= is there more than once")
    for name in form.options:
        if name in names:
            value = unquoted(name, dict(options)[name])
            yield name, fields(value) if name == "show" else value


def unquoted(name: str, value: str) -> str:
    try:
        return str(json.loads(value)) if value.startswith('"') else value
    except json.JSONDecodeError:
        raise BadSchedule(f"the value of {name}= is no JSON string: {value}") from None


def fields(value: str) -> tuple[str, ...]:
    names = tuple(value.split(","))
    for name in names:
        if name not in SHOWN:
            raise BadSchedule(f"show= has no {name!r}; it understands {', '.join(SHOWN)}")
    return names


def without_its_response(steps: list[Step]) -> Step:
    if not steps or steps[-1].verb not in MAY_LOSE:
        raise BadSchedule(f"{LOST!r} follows a step in which a client asks the server, as 'client submits' does")
    return steps[-1]._replace(arguments=tuple({**dict(steps[-1].arguments), "lost": True}.items()))


# Saying what is wrong


def shown(form: Form, who: str = "") -> str:
    """The form with an example in each slot, and this actor where it fits: 'A succeeds late [job-1 attempt 1]'."""

    def example(slot: re.Match[str]) -> str:
        fits = slot[1] in ACTORS and re.fullmatch(SLOTS[slot[1]].pattern, who)
        return who if fits else SLOTS[slot[1]].example

    return re.sub(r"\{(\w+)\}", example, form.words)


def no_step(piece: str, words: str) -> str:
    """What is wrong with this piece, and the step that was perhaps meant, or all that this actor can do."""
    who = words.partition(" ")[0]
    near = difflib.get_close_matches(words, [shown(form, who) for form in FORMS], n=1, cutoff=0.7)
    if near:
        return f"{piece!r} is no step; did you mean {near[0]!r}?"
    mine = [shown(form, who) for form in FORMS if form.verb not in LIKE_OTHERS]
    can = [rest for first, _, rest in (form.partition(" ") for form in mine) if first == who]
    return f"{piece!r} is no step; " + (f"{who} may be followed by: {', '.join(can)}" if can else UNDERSTOOD)


# Each report can be sent and be late: one example of each is enough for a message.
LIKE_OTHERS = [f"send {report}" for report in REPORTS][1:] + [f"{report} late" for report in REPORTS][1:]

UNDERSTOOD = (
    "a step is what a client does ('client submits key=k1'), what a worker or a sweeper with a capital letter does "
    "('A claims next'), or " + ", ".join(repr(shown(form)) for form in FORMS if form.actor)
)


def pattern(words: str) -> str:
    """The regular expression of a form's words."""
    escaped = re.escape(words).replace(r"\ \[", "(?: ").replace(r"\]", ")?")
    return re.sub(r"\\\{(\w+)\\\}", lambda slot: f"(?P<{slot[1]}>{SLOTS[slot[1]].pattern})", escaped)


FORM_OF = {form.verb: form for form in FORMS}
PATTERN_OF = {form.verb: pattern(form.words) for form in FORMS}
