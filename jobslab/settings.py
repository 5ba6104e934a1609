"""Which numbers does the engine use when nobody says otherwise?  All of them, in one table, units in the names."""

from dataclasses import dataclass

KEY_LENGTH = 255  # characters of an idempotency key, as Stripe documents its own
MOST_ATTEMPTS = 1000  # that a job may be given


@dataclass(frozen=True)
class Settings:
    """Durations in seconds; in the lab a second is a unit of lab time."""

    lease_seconds: float = 30  # how long a claim is good for without a renewal
    renewals_per_lease: int = 3  # a worker renews, and a sweeper looks, this often within one lease
    max_attempts: int = 3  # claims of one job before it is given up
    retry_base_seconds: float = 1  # the wait before retry n is drawn from 0 to base * 2 ** n (full jitter) ...
    retry_cap_seconds: float = 60  # ... and is never longer than this
    retention_seconds: float = 24 * 3600  # how long a finished job and its result are kept
    expired_seconds: float = 7 * 24 * 3600  # how long after that its id is known to be expired (410, not 404)
    queue_limit: int = 10_000  # waiting jobs, beyond which a new one is refused (503)
    body_bytes: int = 1024 * 1024  # of a request
    poll_seconds: float = 0.5  # how often an idle worker asks for work
    grace_seconds: float = 10  # what a job in hand has to finish in, once its worker is asked to end

    @property
    def renew_seconds(self) -> float:
        """The time between two renewals of a lease, and between two sweeps."""
        return self.lease_seconds / self.renewals_per_lease


SERVICE = Settings()
LAB = Settings(lease_seconds=10, retry_base_seconds=0)
