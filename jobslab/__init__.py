"""jobslab: the contract behind 202 Accepted, as a job engine with five flags and a lab that breaks it on purpose.

Importing the package is cheap: it brings the contract, the row and the store, and neither pandas, matplotlib nor a
web framework.
"""

from jobslab.contract import Contract
from jobslab.job import TERMINAL, Job, State
from jobslab.stores import open_store

__all__ = ["TERMINAL", "Contract", "Job", "State", "open_store"]
__version__ = "0.1.0"
