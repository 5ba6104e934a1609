"""A world on a store, for tests that look into it."""

from jobslab.lab import checker
from jobslab.lab.explore import standing_for_all
from jobslab.lab.memo import Memo
from jobslab.lab.properties import NAMES, SOMETIMES
from jobslab.lab.world import Bounds, World
from jobslab.stores import Store


def worlds(store: Store, bounds: Bounds, *, alike: bool = True) -> tuple[World, checker.System]:
    """The world, and how it is searched: one of all states that are `alike` for all, or every state."""
    world = World(Memo(store), bounds, alike)
    one_for_all = standing_for_all(world, (*NAMES, *SOMETIMES))
    return world, checker.System([world.start], world.enabled, one_for_all and one_for_all.canon)
