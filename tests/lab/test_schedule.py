"""Does the one text form of schedules read what it writes, and say kindly what it can't read?"""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobslab.lab.running import VERBS
from jobslab.lab.schedule import ACTORS, FORMS, MAY_LOSE, SHOWN, BadSchedule, Form, Step, parse, read, text

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "client": st.sampled_from(["client", "client2", "client10"]),
    "worker": st.sampled_from(["A", "B", "Worker_2"]),
    "sweeper": st.sampled_from(["S", "T"]),
    "job": st.integers(1, 999_999_999).map("job-{}".format),
    "attempt": st.integers(0, 999_999_999),
    "percent": st.integers(0, 99),
    "units": st.integers(0, 999_999_999) | st.decimals(0, 10_000, places=3, allow_nan=False).map(float),
    "rule": st.sampled_from(["not RUNNING", "terminal set"]),
    "show": st.lists(st.sampled_from(SHOWN), min_size=1, unique=True).map(tuple),
}
LABELS = st.from_regex(r"[A-Z](?: ?[A-Za-z0-9,()'/-]){0,30}[a-z]", fullmatch=True).filter(lambda x: " / " not in x)


def steps_of(form: Form) -> st.SearchStrategy[Step]:
    """All steps that this form can write."""
    required, *optional = form.words.split(" [")
    optional_slots = {slot for group in optional for slot in slots_in(group)}
    slots = [slot for slot in slots_in(form.words) if slot not in ACTORS]
    actor = next((VALUES[slot] for slot in slots_in(required) if slot in ACTORS), st.just(form.actor))

    @st.composite
    def step(draw: st.DrawFn) -> Step:
        left_out = {slot for group in optional if draw(st.booleans()) for slot in slots_in(group)}
        assert left_out <= optional_slots
        arguments = [(slot, draw(VALUES[slot])) for slot in slots if slot not in left_out]
        arguments += [(name, draw(VALUES.get(name, st.text()))) for name in form.options if draw(st.booleans())]
        arguments += [("lost", True)] if form.verb in MAY_LOSE and draw(st.booleans()) else []
        return Step(draw(actor), form.verb, tuple(arguments), draw(st.none() | LABELS))

    return step()


def slots_in(words: str) -> list[str]:
    return [part.partition("}")[0] for part in words.split("{")[1:]]


STEPS = st.sampled_from(FORMS).flatmap(steps_of)


@given(st.lists(STEPS, min_size=1, max_size=5))
def test_what_is_written_is_read_back_to_the_same_steps(steps: list[Step]) -> None:
    assert parse(text(steps)) == tuple(steps)


@given(st.lists(STEPS, min_size=1, max_size=5))
def test_a_schedule_on_one_line_is_the_same_schedule(steps: list[Step]) -> None:
    assert parse(text(steps).replace("\n", " / ")) == tuple(steps)


WORDS = st.sampled_from([*'AS/:"=[]{}%', "client", "submits", "key", "late", "response lost", " / ", " ", "\n"])


@given(st.text() | st.lists(WORDS).map("".join))
def test_any_other_text_is_a_bad_schedule_and_nothing_worse(anything: str) -> None:
    try:
        steps = parse(anything)
    except BadSchedule:
        return
    assert parse(text(steps)) == steps


def test_every_verb_of_the_text_form_can_be_carried_out_and_no_other() -> None:
    assert set(VERBS) == {form.verb for form in FORMS}


def test_a_schedule_reads_as_the_documentation_writes_it() -> None:
    schedule = """
        # A remark.
        first submit: client submits key=k1 / response lost

        client2 polls job-1 / A picks/ A claims
        100 units pass
        POST /jobs: client submits show=id,state  table="my / table: 1"
        A sends progress 20%
        the old worker's completion, late: A succeeds late job-1 attempt 1
        count workers running job-1
        0.5 units pass / S looks / S requeues / sweep / restart / purge
        over?: client judges "terminal set"
    """
    with pytest.raises(BadSchedule, match=r"line 5: 'A picks/ A claims' is no step"):
        parse(schedule)
    assert parse(schedule.replace("picks/", "picks /")) == (
        Step("client", "submit", (("key", "k1"), ("lost", True)), "first submit"),
        Step("client2", "poll", (("job", "job-1"),)),
        Step("A", "pick"),
        Step("A", "claim"),
        Step("time", "pass", (("units", 100),)),
        Step("client", "submit", (("table", "my / table: 1"), ("show", ("id", "state"))), "POST /jobs"),
        Step("A", "send progress", (("percent", 20),)),
        Step("A", "succeed late", (("job", "job-1"), ("attempt", 1)), "the old worker's completion, late"),
        Step("lab", "count workers", (("job", "job-1"),)),
        Step("time", "pass", (("units", 0.5),)),
        Step("S", "look"),
        Step("S", "requeue"),
        Step("sweeper", "sweep"),
        Step("server", "restart"),
        Step("server", "purge"),
        Step("client", "judge", (("rule", "terminal set"),), "over?"),
    )


@pytest.mark.parametrize(
    ("schedule", "sentence"),
    [
        ("A pick", "'A pick' is no step; did you mean 'A picks'?"),
        ("A picks / a claims next", "'a claims next' is no step; did you mean 'A claims next'?"),
        ("client3 pols", "'client3 pols' is no step; did you mean 'client3 polls [job-1]'?"),
        ("B stops late job-1", "'B stops late job-1' is no step; did you mean 'B stops late [job-1 attempt 1]'?"),
        ("A progresses 100%", "'A progresses 100%' is no step; did you mean 'A progresses [50%]'?"),
        ("later: 100 unit pass", "'100 unit pass' is no step; did you mean '100 units pass'?"),
        ("client submits kye=1", "there is no kye= here: 'client submits' understands key=, kind=, table=, show="),
        ("client polls key=1", "there is no key= here: 'client polls [job-1]' understands show="),
        ("sweep key=1", "there is no key= here: 'sweep' understands no option"),
        ("client submits key=1 key=2", "key= is there more than once"),
        ('client submits key="\\x"', 'the value of key= is no JSON string: "\\x"'),
        ("client submits show=id,sate", "show= has no 'sate'; it understands " + ", ".join(SHOWN)),
    ],
)
def test_what_can_not_be_read_is_said_with_what_would_be_understood(schedule: str, sentence: str) -> None:
    with pytest.raises(BadSchedule) as wrong:
        parse(schedule)
    assert str(wrong.value) == f"line 1: {sentence}"


def test_the_line_of_a_bad_step_counts_remarks_and_blank_lines() -> None:
    with pytest.raises(BadSchedule, match=r"^line 4: 'A pick' is no step"):
        parse("restart\n\n# remark\nsweep / A pick\nA picks")


@pytest.mark.parametrize("before", ["", "A picks / ", 'client submits / client judges "terminal set" / '])
def test_a_response_is_lost_only_where_one_is_waited_for(before: str) -> None:
    with pytest.raises(BadSchedule, match="'response lost' follows a step in which a client asks the server, as "):
        parse(f"{before}response lost")


def test_of_a_step_that_is_like_no_other_all_that_the_actor_can_do_is_said() -> None:
    with pytest.raises(BadSchedule, match=r"'A yodels' is no step; A may be followed by: picks, claims, .*, requeues$"):
        parse("A yodels")
    with pytest.raises(BadSchedule, match="client may be followed by: submits, submits again, polls"):
        parse("client yodels")
    with pytest.raises(BadSchedule, match=r"a step is what a client does .*'sweep', '100 units pass', 'restart'"):
        parse("???")


def test_a_schedule_without_a_step_says_what_a_step_is() -> None:
    with pytest.raises(BadSchedule, match="the schedule has no step: a step is what a client does"):
        parse("# nothing but this\n\n")


def test_a_schedule_is_read_from_a_file_or_is_the_text_itself(tmp_path: Path) -> None:
    file = tmp_path / "my schedule"
    file.write_text("A picks\nA claims\n")
    assert read(str(file)) == read("A picks / A claims") == (Step("A", "pick"), Step("A", "claim"))
    assert read("restart") == (Step("server", "restart"),)


def test_a_name_that_is_neither_file_nor_schedule_is_said_to_be_neither(tmp_path: Path) -> None:
    for name in ("no-such-file.txt", str(tmp_path), "\0"):
        with pytest.raises(BadSchedule, match=r"^there is no file .*, and it is no schedule: a step is what "):
            read(name)
    with pytest.raises(BadSchedule, match="can't be read: File name too long"):
        read("x" * 5000)
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadSchedule, match="is no text; a schedule is a text file in UTF-8"):
        read(str(binary))
