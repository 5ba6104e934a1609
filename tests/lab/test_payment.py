"""Is the payment service what the chapter says: real, with a ledger of its own, and true to its keys?"""

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from jobslab.lab.child import LabError
from jobslab.lab.payment import LIMIT, Declined, PaymentError, Service, service, shared


@pytest.fixture(scope="module")
def bank() -> Iterator[Service]:
    with service() as bank:
        yield bank


def test_a_payment_without_a_key_is_made_each_time(bank: Service) -> None:
    account = bank.account()
    first, second = account.pay("job-1"), account.pay("job-1")
    assert first.n != second.n
    assert [movement.reference for movement in account.movements()] == ["job-1", "job-1"]
    assert account.balance == 200


def test_a_payment_with_the_same_key_is_made_once_and_answered_the_same(bank: Service) -> None:
    account = bank.account()
    assert account.pay("job-1", key="k") == account.pay("job-1", key="k")
    assert len(account.movements()) == 1
    assert account.refund("job-1", key="undo") == account.refund("job-1", key="undo")
    assert account.balance == 0


def test_a_key_belongs_to_one_request(bank: Service) -> None:
    account = bank.account()
    account.pay("job-1", key="k")
    for other in (lambda: account.pay("job-2", key="k"), lambda: account.refund("job-1", key="k")):
        with pytest.raises(PaymentError, match="422"):
            other()
    assert len(account.movements()) == 1


def test_another_account_has_keys_of_its_own(bank: Service) -> None:
    one, other = bank.account(), bank.account()
    one.pay("job-1", key="k")
    other.pay("job-1", key="k")
    assert (len(one.movements()), len(other.movements())) == (1, 1)


def test_a_mail_has_no_key_whatever_the_header_says(bank: Service) -> None:
    account = bank.account()
    account.mail("job-1", key="k")
    account.mail("job-1", key="k")
    assert len(account.movements("mail")) == 2


def test_too_large_a_payment_is_declined_for_good_and_leaves_nothing(bank: Service) -> None:
    account = bank.account()
    for _ in range(2):
        with pytest.raises(Declined, match="more than 1000"):
            account.pay("job-1", LIMIT + 1, key="k")
    assert account.movements() == []


def test_a_service_that_ignores_keys_pays_again() -> None:
    with service("--ignore-keys") as bank:
        account = bank.account()
        account.pay("job-1", key="k")
        account.pay("job-1", key="k")
        assert len(account.movements()) == 2


def test_its_ledger_outlives_it_and_it_ends_with_its_owner(tmp_path: Path) -> None:
    first = Service(tmp_path / "ledger.db")
    first.account("ann").pay("job-1", key="k")
    first.close()
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(first.url)
    second = Service(tmp_path / "ledger.db")
    second.account("ann").pay("job-1", key="k")
    assert len(second.account("ann").movements()) == 1
    second.close()


def test_one_that_does_not_start_is_a_named_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(LabError, match="the payment service did not start"):
        Service(tmp_path / "no" / "ledger.db")
    assert "unable to open database file" in capfd.readouterr().err


def test_the_shared_one_is_one() -> None:
    assert shared() is shared()
    assert shared().account().name != shared().account().name
