"""Is each stage of an export what it says: accepted before the work, done before it is reported, reported before it
is delivered?"""

from jobslab.lab.stages import stages


def test_every_stage_of_three_exports() -> None:
    table = stages("orders", "refunds", "nowhere")
    assert table.index.tolist() == ["accepted", "claimed", "the work is done", "reported", "delivered"]
    assert table.loc["accepted"].tolist() == ["202, QUEUED"] * 3
    assert table.loc["the work is done"].tolist() == [
        "RUNNING, a file of 4000 rows",
        "RUNNING, a file of 0 rows",
        "RUNNING, no file",
    ]
    assert table.loc["reported"].tolist() == ["SUCCEEDED", "SUCCEEDED", "FAILED: source table missing"]
    assert table.loc["delivered"].tolist()[:2] == ["4000 rows", "0 rows"]
    assert "(HTTP 409)" in table.loc["delivered", "nowhere"]
