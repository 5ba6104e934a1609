"""What was paid and not recorded, recorded and not paid, or paid twice: does asking the service bring it to light?"""

from jobslab.lab.reconciling import FILE, LOST, PAYMENT, Shop, shop
from jobslab.reconcile import Action


def told(made: Shop) -> list[tuple[str, Action, bool]]:
    return [(one.id, one.action, one.open) for one in made.reconcile()]


def test_the_three_are_found_and_mended_and_the_second_time_all_agrees() -> None:
    with shop() as made:
        assert told(made) == [
            (FILE, Action.REPORT, False),
            (LOST, Action.AGAIN, False),
            (PAYMENT, Action.REPORT, False),
        ]
        assert made.reconcile() == []
        assert made.books() == "paid 1, in the ledger 1"


def test_after_the_sweep_it_is_too_late_to_report_and_what_was_paid_is_still_found() -> None:
    with shop() as made:
        made.sweep()
        assert told(made)[-1] == (PAYMENT, Action.MEND, False)
        assert made.books() == "paid 1, in the ledger 1"
        assert told(made) == [(FILE, Action.PERSON, True), (PAYMENT, Action.PERSON, True)]
        assert made.states()[PAYMENT] == "FAILED"


def test_what_was_recorded_and_never_paid_is_paid_once() -> None:
    with shop() as made:
        made.reconcile()
        customer = made.account._replace(name="another")  # who has paid nothing yet
        other = made._replace(account=customer)
        for _ in range(2):
            other.reconcile()
        assert other.books() == "paid 1, in the ledger 1"


def test_what_was_paid_twice_is_left_to_a_person() -> None:
    with shop() as made:
        made.account.pay(PAYMENT)
        assert told(made)[-1] == (PAYMENT, Action.PERSON, True)
        assert made.states()[PAYMENT] == "RUNNING"


def test_a_payment_without_a_reference_is_found_by_nobody() -> None:
    with shop() as made:
        made.store.submit("another", "work", {}, max_attempts=1, now=0)
        made.store.claim("another", "A", now=0)
        made.account.pay("")
        assert "another" not in [one.id for one in made.reconcile()]
