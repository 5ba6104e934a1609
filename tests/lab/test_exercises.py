"""Is each answer judged by what it does: the right one, each wrong one, the untouched one, and one that raises?"""

import pytest

from jobslab.lab.exercises import CHAPTERS, ___, chapter, exercise, predict
from jobslab.lab.exercises import answer as answers
from jobslab.lab.exercises.answer import NOT_ATTEMPTED, RAISED, RIGHT, WRONG
from jobslab.lab.exercises.exercise import Exercise
from jobslab.lab.exercises.judges import breaks, guard
from jobslab.lab.exercises.prediction import BadPrediction

EXERCISES = [one for name in CHAPTERS for one in chapter(name)]
each_exercise = pytest.mark.parametrize("one", EXERCISES, ids=lambda one: one.number)


def test_each_chapter_has_two_or_three_exercises_that_predict_complete_and_break() -> None:
    assert list(CHAPTERS) == [f"{n:02}" for n in range(len(CHAPTERS))]
    for name in CHAPTERS:
        numbers, kinds = [one.number for one in chapter(name)], [one.kind for one in chapter(name)]
        assert numbers == sorted(set(numbers)), name
        assert all(number.startswith(f"{name}.") for number in numbers)
        assert set(kinds) <= {"predict", "complete", "break it"}
        assert {"predict", "break it"} <= set(kinds)
        assert 2 <= len(kinds) <= 3


@each_exercise
def test_the_right_answer_is_right(one: Exercise) -> None:
    assert one.check(one.right).outcome == RIGHT


@each_exercise
def test_every_wrong_answer_is_wrong_with_words_of_its_own(one: Exercise) -> None:
    said = [one.check(wrong.answer) for wrong in one.wrong]
    assert [feedback.outcome for feedback in said] == [WRONG] * len(one.wrong)
    assert len(one.wrong) >= 2
    assert len({feedback.says for feedback in said}) == len(said)
    for wrong, feedback in zip(one.wrong, said):
        assert feedback.says.startswith(wrong.says)


@each_exercise
def test_what_a_wrong_answer_does_is_shown_by_a_schedule(one: Exercise) -> None:
    """But for a state that no schedule can bring about, since no server has it yet."""
    for wrong in one.wrong:
        feedback = one.check(wrong.answer)
        assert feedback.schedule or "never heard of" in feedback.says, wrong


@each_exercise
def test_an_untouched_answer_is_not_attempted(one: Exercise) -> None:
    assert one.check(___).outcome == NOT_ATTEMPTED
    assert one.check("client submits / ___").outcome == NOT_ATTEMPTED
    assert str(one.check(___)).startswith("· not attempted: write your answer in place of ___")


@each_exercise
def test_an_answer_that_raises_says_what_it_raised_and_shows_no_traceback(one: Exercise) -> None:
    feedback = one.check("this is no answer (to anything")
    assert feedback.outcome == RAISED
    assert str(feedback).startswith("! raised: your answer raised ")
    assert "Traceback" not in str(feedback)


@each_exercise
def test_hints_grow_and_the_solution_is_text(one: Exercise) -> None:
    assert len(one.hints) >= 2
    assert str(one.hint(1)) == f"hint 1 of {len(one.hints)}: {one.hints[0]}"
    assert one.hint(99) == one.hint(len(one.hints))
    assert one.because in str(one.solution())
    assert one.task in one._repr_markdown_()
    assert one.task in repr(one)


@each_exercise
def test_a_task_does_not_give_its_answer_away(one: Exercise) -> None:
    if one.kind != "predict":
        assert str(one.right) not in one.task


def test_a_function_that_still_returns_the_placeholder_is_not_attempted() -> None:
    assert exercise("02.2").check(lambda document: ___).outcome == NOT_ATTEMPTED
    assert exercise("01.2").check(lambda document: ___).outcome == NOT_ATTEMPTED
    assert exercise("10.2").check(lambda job: ___).outcome == NOT_ATTEMPTED


def test_a_function_that_returns_nothing_is_not_attempted() -> None:
    for number in ("01.2", "02.2", "10.2"):
        assert exercise(number).check(lambda _: None).outcome == NOT_ATTEMPTED


def test_a_function_that_raises_is_told_so() -> None:
    feedback = exercise("02.2").check(lambda document: document["status"])
    assert str(feedback) == "! raised: your answer raised KeyError: 'status'"


def test_another_right_answer_is_right_too() -> None:
    """No hidden constant: whoever reaches the goal in another way has reached it."""
    assert exercise("02.2").check(lambda document: document["done"]).outcome == RIGHT
    longer = "client submits / A claims next / A progresses 10% / 12 units pass / sweep / B claims next"
    assert exercise("04.3").check(longer).outcome == RIGHT
    assert exercise("03.2").check("persistence, idempotency_key").outcome == RIGHT
    lost = exercise("11.3").check("fetch / claim / report / ack / dies")
    assert (lost.outcome, lost.says) == (RIGHT, "the job is SUCCEEDED, done 0 times, and nobody will ever come for it")


def test_a_wrong_answer_that_nobody_thought_of_is_judged_too() -> None:
    feedback = exercise("02.2").check(lambda document: True)
    assert str(feedback) == (
        "✗ wrong: Your rule says that the job is over while the state is QUEUED.\n"
        "  by this schedule:\n    1  client submits\n    2  client polls"
    )


def test_a_job_that_was_done_and_reported_is_not_lost() -> None:
    feedback = exercise("11.3").check("fetch / claim / work / report / ack / dies")
    assert (feedback.outcome, feedback.says) == (WRONG, "The job is SUCCEEDED, done once.")


def test_a_schedule_that_is_longer_than_asked_for_is_not_right() -> None:
    longer = "client submits / A picks / B picks / A claims / A progresses 10% / B claims"
    judge = breaks("one live claim per job", "all but conditional_updates", longest=5)
    assert str(judge(longer)).startswith("✗ wrong: That is 6 steps; 5 are enough.")


def test_a_prediction_is_compared_with_what_the_run_showed() -> None:
    options = {"a": "404", "b": "200; state RUNNING; attempt 1"}
    open_, right, wrong = (predict("Which?", options, answer, {"a": "It is kept."}) for answer in (___, "b", "a"))
    shown = "200; state RUNNING; attempt 1"
    assert str(open_).endswith("no prediction yet: write one of the letters in place of ___")
    assert str(open_.compare(shown)) == f"· not attempted: no prediction; the run shows b: {shown}"
    assert str(right.compare(shown)) == f"✓ right: the run shows b: {shown}"
    assert str(wrong.compare(shown)) == f"✗ wrong: you said a, the run shows b: {shown}. It is kept."


def test_a_prediction_that_can_t_be_is_refused_in_a_sentence() -> None:
    with pytest.raises(BadPrediction, match="one of a, b, not 'c'"):
        predict("Which?", {"a": "404", "b": "410"}, "c")
    with pytest.raises(BadPrediction, match="no option says that"):
        predict("Which?", {"a": "404", "b": "410"}, ___).compare("200")


def test_the_placeholder_shows_itself_and_is_nothing_else() -> None:
    assert (repr(___), str(___)) == ("___", "___")
    assert answers.is_blank("state = ___")
    assert not answers.is_blank("state = 'RUNNING'")


def test_a_rule_of_one_s_own_is_tried_in_every_order_of_events() -> None:
    judge = guard("unfinished")
    assert judge("state = 'RUNNING'").outcome == RIGHT
    assert judge("NOT state <> 'RUNNING'").outcome == RIGHT
    loose = judge("state <> 'SUCCEEDED'")
    assert (loose.outcome, loose.promise) == (WRONG, "a terminal state is final")
    assert loose.schedule[-1] == "A progresses late"
    assert judge("FALSE").says == "No promise breaks, but a job that is tried again never succeeds."


def test_a_rule_that_is_no_sql_raises_what_the_database_says() -> None:
    feedback = exercise("04.2").check("lease_until <")
    assert feedback.outcome == RAISED
    assert feedback.says.startswith("your answer raised BadRule: this can't be a rule, says the database: near")
