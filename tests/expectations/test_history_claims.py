"""What a register says of a coming version is held against everything else there is: whatever differs is told."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from funnel.alphabet import Alphabet
from funnel.history.decisions import channel_digest, numbered
from funnel.pipeline.expectations import Finished, keyed_answers
from funnel.pipeline.expectations.custom import ReleaseExpectation
from funnel.pipeline.expectations.finished_folder import Prepared
from funnel.pipeline.expectations.history_claims import register_claims
from funnel.pipeline.flows.pipeline import run_release
from funnel.recount.noisy_moves import NoisyMeans
from funnel.release.files import FileRef
from funnel.release.layout import ReleaseFolder, find_release
from funnel.spec import ReleaseSpec
from tests.projects import SPEC, adult_rows, make_project

KEYED = SPEC.replace('publish = ["relationship"]', 'publish = ["relationship"]\nrecord_key = ["id"]')
TEXT = KEYED.replace('"different"', '"same"\nregister = "adults"')


@dataclass(frozen=True)
class Made:
    """A second version, and what it was judged by before it was published."""

    spec: Path
    folder: Path
    evidence: Finished


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder, kept = tmp_path_factory.mktemp("histories"), tmp_path_factory.mktemp("kept")
    judged: dict[str, Finished] = {}
    as_it_is = Finished.declared

    def declared(self: Finished) -> list[ReleaseExpectation]:
        # The report is compared with what is declared, which asks again.
        if self.version in judged or self.prepared is None:
            return as_it_is(self)
        number = len(judged)
        register = self.prepared.register
        copied, data = kept / str(number) / register.name, kept / f"{number}.parquet"
        shutil.copytree(register, copied)
        coming = self.prepared.coming
        if coming.is_relative_to(register):
            place = copied / coming.relative_to(register)
        else:
            place = kept / f"coming-{number}"
            shutil.copytree(coming, place)
        shutil.copyfile(self.snapshot.data.path, data)
        snapshot = replace(self.snapshot, data=FileRef(str(data), self.snapshot.data.sha256))
        judged[self.version] = with_parts(self, prepared=Prepared(copied, place), snapshot=snapshot)
        return as_it_is(self)

    def people(start: int) -> pa.Table:
        return adult_rows(start, 400).append_column("id", pa.array(range(start, start + 400)))

    path = make_project(folder, TEXT, people(0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Finished, "declared", declared)
        run_release(ReleaseSpec.load(path), False, False)
        pq.write_table(people(100), folder / "people.parquet")
        told, _ = run_release(ReleaseSpec.load(path), False, False)
    assert told["version"] == "1.1.0"
    published = Path(told["folder"])
    return Made(path, published, with_parts(judged["1.1.0"], folder=find_release(published)))


def with_parts(evidence: Finished, **parts: object) -> Finished:
    """The same, with other parts."""
    changed = copy.copy(evidence)
    changed.__dict__.update(parts)
    return changed


def failures(evidence: Finished) -> dict[str, str]:
    return {one.name: one.failure for one in register_claims(evidence) if one.failure is not None}


def test_what_was_published_holds(made: Made) -> None:
    assert failures(made.evidence) == {}


def test_answers_are_derived_with_the_secret_alone(made: Made) -> None:
    assert made.evidence.key is not None
    assert failures(with_parts(made.evidence, key=None)) == {
        "answers": "cannot be derived: the run hands on no release secret"
    }
    key = replace(made.evidence.key, secret=bytes(range(32)))
    found = failures(with_parts(made.evidence, key=key))
    assert set(found) == {"entry", "answers"}
    assert found["entry"].startswith("secret ")


def test_other_values_than_those_of_the_source_are_told(made: Made) -> None:
    recount = replace(made.evidence.recount, secret=(*made.evidence.recount.secret, ("nobody",)))
    assert failures(with_parts(made.evidence, recount=recount)) == {
        "entry": "alphabets have other values than the source"
    }


def test_other_outputs_than_those_of_the_register_are_told(made: Made) -> None:
    outputs = tuple((f"{symbol[0]}?",) for symbol in made.evidence.released.outputs)
    found = failures(with_parts(made.evidence, released=replace(made.evidence.released, outputs=outputs)))
    assert found == {
        "drawing": "outputs are not those of the published protocol",
        "channel": "does not hold: has other values than the register",
    }


def test_another_channel_than_that_of_the_histories_is_told(made: Made) -> None:
    released = made.evidence.released
    turned = replace(released, weights=tuple(row[1:] + row[:1] for row in released.weights))
    found = failures(with_parts(made.evidence, released=turned))
    assert set(found) == {"channel"}
    assert "is not the effective channel, rounded to a grid" in found["channel"]


def test_how_far_the_channel_is_rounded_is_told_and_judged(made: Made) -> None:
    protocol = made.evidence.protocol
    rounded = protocol["rounded"]
    assert failures(with_parts(made.evidence, protocol={**protocol, "rounded": None})) == {
        "channel": "does not hold: does not say by how much it is rounded"
    }
    for other in (rounded / 2, rounded + 2.0**-28):
        found = failures(with_parts(made.evidence, protocol={**protocol, "rounded": other}))
        assert set(found) == {"channel"}
        assert "is said to be within" in found["channel"]


def _with_means(made: Made) -> Finished:
    """As if the version had published means, of which the register's people tell nothing."""
    found, means = made.evidence.histories, NoisyMeans(0.5, 4.0, (9, 1))
    entry = replace(found.entries[-1], means=means)
    version = replace(found.versions[-1], noise=[])
    evidence = with_parts(made.evidence)
    evidence.__dict__["histories"] = replace(
        found, entries=(*found.entries[:-1], entry), versions=(*found.versions[:-1], version)
    )
    return evidence


def test_tables_of_changes_about_other_people_are_told(made: Made) -> None:
    """What the tables are about is not known then, and so is their noise."""
    assert failures(_with_means(made))["noise"] == "cannot be told: tables are not about the versions of the register"


def test_another_level_of_people_who_are_moved_is_told(made: Made) -> None:
    found, stated = made.evidence.histories, made.evidence.stated_history
    for known, said, wrong in (
        (None, 0.5, True),
        (1.5, 1.5 + 1e-9, False),
        (1.5, 1.4, True),
        (1.5, None, True),
        (float("inf"), None, False),
        (float("inf"), 9.0, True),
    ):
        told = {"moved_level": said}
        observers = [{**one, **told} for one in stated["observers"]]
        evidence = with_parts(made.evidence, stated_history={**stated, **told, "observers": observers})
        one = found.versions[-1]
        version = replace(one, observers=tuple(replace(of, moved_level=known) for of in one.observers))
        evidence.__dict__["histories"] = replace(found, versions=(*found.versions[:-1], version))
        assert ("level of the moved" in failures(evidence).get("findings", "")) == wrong


def test_another_figure_of_an_observer_is_told(made: Made) -> None:
    found, stated = made.evidence.histories, made.evidence.stated_history
    first, *others = stated["observers"]
    for change, complaint in (
        ({"level": first["level"] / 2}, "the level for transitions"),
        ({"level": None}, "the level for transitions"),
        ({"moved": first["moved"] + 1}, "are moved for transitions"),
        ({"outside": first["outside"] + 1}, "are outside for transitions"),
        ({"moved_level": 9.0}, "the level of the moved for transitions"),
        ({"observer": "stayers"}, "other observers and secrets were stated"),
        ({"bounded": False}, "other observers and secrets were stated"),
    ):
        evidence = with_parts(made.evidence, stated_history={**stated, "observers": [{**first, **change}, *others]})
        assert complaint in failures(evidence)["findings"]
    # The text of the spec says for whom; an entry for others is none of it.
    for observers in ([*found.entries[-1].observers], ["mover-stayer"]):
        said, history = made.evidence.spec_text, dict(made.evidence.spec_text.section("history"))
        said = replace(said, settings={**said.settings, "history": {**history, "observers": observers}})
        asked = failures(with_parts(made.evidence, spec_text=said))
        assert asked == {} if "transitions" in observers else "is bounded for transitions" in asked["entry"]


def _with_input(drawing: dict[str, Any], symbol: list[str]) -> dict[str, Any]:
    symbols = drawing["inputs"]["symbols"]
    return drawing | {"inputs": drawing["inputs"] | {"symbols": [symbol, *symbols[1:]]}}


def _fewer_inputs(drawing: dict[str, Any]) -> dict[str, Any]:
    symbols = drawing["inputs"]["symbols"]
    weights = [row[1:] for row in drawing["weights"]]
    drawn_by = drawing["inputs"] if drawing["drawn_by"] is None else drawing["drawn_by"]
    fewer = drawing["inputs"] | {"symbols": symbols[1:]}
    return drawing | {"inputs": fewer, "drawn_by": drawn_by, "weights": weights}


def _other_order(drawing: dict[str, Any]) -> dict[str, Any]:
    outputs = drawing["outputs"]
    return drawing | {"outputs": outputs | {"symbols": outputs["symbols"][::-1]}}


def _one_more(drawing: dict[str, Any]) -> dict[str, Any]:
    first = drawing["weights"][0]
    return drawing | {"weights": [[str(int(first[0]) + 1), *first[1:]], *drawing["weights"][1:]]}


@pytest.mark.parametrize(
    "change",
    [
        lambda _: None,
        _other_order,
        _one_more,
        _fewer_inputs,
        lambda drawing: _with_input(drawing, ["99", *drawing["inputs"]["symbols"][0][1:]]),
        lambda drawing: _with_input(drawing, [drawing["inputs"]["symbols"][0][0], "nobody"]),
    ],
)
def test_rows_that_were_drawn_from_other_channels_are_told(
    made: Made, change: Callable[[dict[str, Any]], dict[str, Any] | None]
) -> None:
    assert made.evidence.drawn_from is not None
    changed = change(dict(made.evidence.drawn_from))
    found = failures(with_parts(made.evidence, drawn_from=changed))
    assert found["drawing"] == "channels that rows were drawn from are not those of the register"
    # Who is forgotten is told by the drawing as well.
    assert set(found) <= {"drawing", "people"}


def test_channels_are_told_apart_as_the_sampler_does(made: Made) -> None:
    """Where people have several rows outputs are known by their numbers: their names are given after all draws."""
    for entry in made.evidence.histories.entries:
        chapter = entry.chapter
        inputs, outputs = Alphabet(entry.input_columns, chapter.inputs), Alphabet(entry.output_columns, chapter.outputs)
        of_units = replace(entry, chapter=replace(chapter, units=chapter.counts))
        for rows in chapter.channels.values():
            weights = np.zeros((chapter.b, chapter.a), dtype=np.uint64)
            for y, row in enumerate(rows):
                for x, weight in row:
                    weights[y, x] = weight
            assert keyed_answers.channel_digest(rows, entry) == channel_digest(weights, inputs, outputs)
            named_later = channel_digest(weights, inputs, numbered(outputs))
            assert keyed_answers.channel_digest(rows, of_units) == named_later


def test_without_the_register_nothing_is_taken_to_hold(made: Made) -> None:
    folder = ReleaseFolder(made.folder)
    finished = Finished(ReleaseSpec.load(made.spec), folder, "1.1.0", made.evidence.snapshot)
    assert [one.failure for one in register_claims(finished)] == ["cannot be judged: no register is handed on"]
