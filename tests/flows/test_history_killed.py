"""SIGKILL while a version about known people is made and published: nothing is forgotten, and nothing drawn twice."""

from __future__ import annotations

import signal

from tests.panel_project import PanelProject, digest_of_rows

# In the order in which a run gets there: in every step, and between what it does last.
BEFORE_IT_IS_THERE = (
    "says taking the snapshot",
    "says counting",
    "says fitting grr",
    "says looking up histories",
    "says following histories",
    "says best rows",
    "says noting histories",
    "says drawing",
    "says computing exact leakage",
    "before funnel.register.preparing.sync_tree",
    "after funnel.pipeline.tasks.follow.prepare_entry",
    "says judging the release",
    "after funnel.pipeline.ledger.account.Account.publishing",
    "after funnel.release.record.Records.announce",
)
# From the moment that the version is in its place.
AFTER_IT_IS_THERE = (
    "before funnel.release.record.Records.complete",
    "after funnel.release.record.Records.complete",
    "before funnel.register.register.Register._take_head",
    "after funnel.register.register.Register.commit",
    "after funnel.pipeline.ledger.account.Account.published",
)
# Rows are whole by then.
_DRAWN = BEFORE_IT_IS_THERE.index("says computing exact leakage")


def test_killed_before_a_version_is_in_its_place(panel: PanelProject) -> None:
    """Nothing is published, whenever it was; and the next run draws the very rows that a killed one had drawn."""
    drawn = set()
    for number, point in enumerate(BEFORE_IT_IS_THERE):
        killed = panel.release(dies=point)
        assert killed.status == -signal.SIGKILL, (point, killed.stderr)
        assert panel.in_folders() == ["1.0.0", "1.1.0"]
        assert panel.in_register() == ["panel/1.0.0", "panel/1.1.0"]
        if number >= _DRAWN:
            (incoming,) = panel.series.glob(".incoming-*")
            drawn.add(digest_of_rows(incoming))
    said = panel.release().said
    assert (said["status"], said["version"], said["history"]["versions"]) == ("published", "1.2.0", 3)
    assert drawn == {panel.rows("1.2.0")}
    panel.require_whole("1.2.0")


def test_killed_after_a_version_is_in_its_place(panel: PanelProject) -> None:
    """It is published, and the next run lets register and ledger say so, whatever the killed one had not done yet."""
    for number, point in enumerate(AFTER_IT_IS_THERE):
        killed = panel.release("--again", dies=point)
        assert killed.status == -signal.SIGKILL, (point, killed.stderr)
        assert panel.in_folders()[-1] == f"1.2.{number}", point
        said = panel.release().said
        assert (said["status"], said["version"]) == ("unchanged", f"1.2.{number}"), point
        panel.require_agreement()
    panel.require_whole(f"1.2.{number}")
