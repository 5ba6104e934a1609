"""`make figures`: the picture in README, one scenario under two contracts, drawn by the code that the notebooks use."""

from pathlib import Path

from jobslab.lab.drawing import timeline
from jobslab.lab.picture import Picture
from jobslab.lab.trial import variants

TIMELINE = Path(__file__).resolve().parents[1] / "docs" / "timeline.png"
SCENARIO = "late progress"


def picture() -> Picture:
    return timeline(SCENARIO, [trial.side for trial in variants(SCENARIO)])


if __name__ == "__main__":
    drawn = picture()
    TIMELINE.parent.mkdir(exist_ok=True)
    TIMELINE.write_bytes(drawn.png)
    print(f"{TIMELINE.name}: {drawn.alt}")
