"""The ``funnel`` command: init, plan, share, audit and estimate; others register more."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from funnel.commands import STOPPED, json_option, main, renamed_option, spec_argument
from funnel.console import Console, json_line
from funnel.errors import NotChecked, PipelineError, SpecError
from funnel.wording import names_in, printable

__all__ = ["STOPPED", "json_option", "main", "spec_argument"]


@main.command("init")
@click.argument("source")
@click.option("--secret", "secrets", multiple=True, metavar="A[,B]", help="Columns that are sensitive.")
@click.option(
    "--publish",
    multiple=True,
    metavar="A,B|all",
    help="Columns to publish; all adds those that can be, not the secret.",
)
@click.option("--key", multiple=True, metavar="ID", help="Column that identifies a person, who has one row.")
@click.option("--unit", multiple=True, metavar="ID", help="Column that identifies a person, who may have several rows.")
@click.option("--people", type=click.Choice(["same", "different"]), help="Whether a person may be in a later version.")
@click.option("--known", multiple=True, metavar="A,B", help="Published columns that observers may know of a person.")
@click.option("--table", help="Of a database: the table to read, or SCHEMA.TABLE; of a workbook: the sheet.")
@click.option("--query", help="Of a database: the query to read.")
@click.option("--format", "kind", help="What SOURCE is written in, where its name does not tell, such as csv.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="The spec to write; by default named after SOURCE, here."
)
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@json_option
def init_command(
    source: str,
    secrets: tuple[str, ...],
    publish: tuple[str, ...],
    key: tuple[str, ...],
    unit: tuple[str, ...],
    people: str | None,
    known: tuple[str, ...],
    table: str | None,
    query: str | None,
    kind: str | None,
    output: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Look at SOURCE and write a spec that funnel release takes as it stands.

    SOURCE is what path in [source] may be: a file, a folder, a pattern, a URL, or a database. --secret and --publish
    say what is sensitive and what is released, --key or --unit which column identifies a person, --known what
    observers may know. Without them five questions are asked on a terminal; elsewhere a draft with comments is written,
    in which a person chooses the secret.

    Guarantee, protection of counts, categories and groups follow from the answers and from what the columns hold, which
    is found out in one pass: types, texts that mean missing, identifiers, many or rare values. The spec has a line of
    comment for each that says why.
    """
    from funnel.drafting.asking import ask
    from funnel.drafting.choice import Answers
    from funnel.drafting.command import GivenSource, draft_file
    from funnel.drafting.look import Look
    from funnel.drafting.roles import Roles

    answers = None
    if secrets or publish or key or unit or people or known:
        secret, published = names_in(secrets), names_in(publish)
        if not secret or not published:
            raise SpecError(
                "a spec that is released as it stands needs --secret and --publish; give both, or none for a draft"
            )
        answers = Answers(
            secret,
            published,
            names_in(key),
            names_in(unit),
            people,
            names_in(known),
        )
    terminal = sys.stdin.isatty() and sys.stderr.isatty() and not as_json
    with Console(as_json) as console:

        def asking(look: Look, roles: Roles) -> Answers | None:
            with console.paused():
                return ask(look, roles)

        named = GivenSource(source, table, query, kind)
        said = draft_file(named, output, force, console.progress, answers, asking if terminal else None)
    if as_json:
        click.echo(json_line(said))
        return
    for note in said["notes"]:
        click.echo(f"Note: {printable(note)}.")
    if said["status"] == "written":
        click.echo(f"wrote {said['spec']}: look at it, choose its licence, then funnel release {said['spec']}")
    else:
        click.echo(f"wrote {said['spec']}: choose the secret in it, then funnel plan {said['spec']}")


@main.command("plan")
@spec_argument
@click.option(
    "--guarantee",
    "guarantees",
    multiple=True,
    metavar="TEXT",
    help="Compare under this bound instead of the one of SPEC, such as alip:1.3,0.7; may be given several times.",
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Fit also the mechanisms that SPEC does not allow, those that read the secret; they can take long.",
)
@click.option(
    "--suggest",
    "suggesting",
    is_flag=True,
    help="Also propose the grouping of values that keeps most under [disclosure], as lines for SPEC.",
)
@click.option(
    "--frequencies",
    "costing",
    is_flag=True,
    help="Also show what noise on the frequencies costs, by its epsilon and for 1,000, 10,000 and 100,000 records.",
)
@click.option(
    "--matrix",
    "matrices",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also check the transition matrix in this csv file, such as one of PRAM, beside the best under the bound; of "
    "several columns one each, in their order.",
)
@click.option(
    "--page",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where to write the page; by default plan.html in the private workspace of SPEC, and none with --json.",
)
@click.option("--no-page", is_flag=True, help="Write no page: the table alone, sooner.")
@json_option
def plan_command(
    spec: Path, guarantees: tuple[str, ...], page: Path | None, no_page: bool, as_json: bool, **asked: Any
) -> None:
    """Show what every mechanism would give under the bound of SPEC; no record is drawn and nothing is released.

    A page, plan.html, draws what every mechanism keeps at smaller and larger budgets below the most that any protocol
    could, says what each budget means for one person, and what every column and rare value costs, with the lines for
    SPEC. It is made on all cores, and what was looked at is remembered, so that a run that was stopped goes on where it
    was.

    Where noise is to protect the frequencies, all figures are those of the noisy counts that the release would be made
    from: the noise is drawn if it was not before, and kept in the private workspace, so that looking again, and the
    release itself, spend nothing more.

    For each mechanism: its utility I(X;Y) in nats and as a share of H(X), all there is to know, or the share that it
    explains of the variance where SPEC has utility = "variance"; its exact level; the
    time it took; and why it cannot be used, where it cannot. The one that mechanism = "auto" would take comes first,
    and it is said how exactly its release would let shares be estimated: information that is kept is no accuracy.
    Ctrl-C during an optimisation ends it with the best protocol found so far.

    Where the bound holds for more than the frequencies as they are, for all distributions that the sample leaves open
    or all counts that the noise does, a sentence sets it beside the same bound for these alone and says what the
    difference buys.

    Where SPEC says that its versions are about the same people, the register of what was published about them is read:
    how many histories they have, what can be kept given these, whom earlier versions take out of the bound by now, and
    what a reserve costs and saves; for a first version also what it costs to begin with less of the bound.

    What breaks the rules of [disclosure] is told in numbers. With --suggest, the groups of values that mend it and keep
    most information are computed, and what the best mechanism keeps with them; the lines go into SPEC in place of the
    sections of the same name.

    With --frequencies, what the best protocol that reads the published columns alone keeps whatever counts the noise
    leaves open, for several sizes of noise and numbers of records, and what the protocol made without noise would reach
    there. Where the table is too small, a sentence says what would help. Some seconds for each bound.

    With --matrix, a transition matrix that others made is checked, in exact arithmetic: whether the bound holds, the
    level and where it is attained, what stays unchanged, and beside it the best matrix under the bound and at that
    level. SPEC publishes its column, or the columns of as many matrices, in their order, each of which changes its own
    column independently; FILE has a row for each true value and a column for each published one, as write.csv of R
    writes a matrix with names.
    """
    from funnel.preview.spec_plan import Planner
    from funnel.rendering import plan_writer
    from funnel.spec import ReleaseSpec

    if page is not None and no_page:
        raise SpecError("--page says where to write a page and --no-page to write none; give one of them")
    described = ReleaseSpec.load(spec)
    # A library that was installed without the extra "pipeline" has nothing to render pages with.
    write_page = None if no_page or (as_json and page is None) else plan_writer()
    if page is not None and write_page is None:
        raise PipelineError("what renders pages is not installed (jinja2 is missing): pip install 'funnel[pipeline]'")
    with Console(as_json) as console:
        planner = Planner(described, guarantees, console.progress)
        planner.warn_of_rare_secrets()
        if asked["matrices"]:
            planner.check(asked["matrices"])
        with console.comparing(planner.spec, planner.joint, planner.guarantees, planner.protection) as shown:
            planner.compare(asked["everything"], shown)
        planned, written = planner.planned(asked["suggesting"], asked["costing"]), None
        if write_page is not None and not planner.spec.is_by_class:
            written = write_page(planned, planner.found, page, console.progress)
    console.print_plan(planned, written)


@main.command("classes")
@spec_argument
@click.argument("source")
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where to write the file; by default where classes in [groups] of SPEC says.",
)
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@json_option
def classes_command(spec: Path, source: str, output: Path | None, force: bool, as_json: bool) -> None:
    """Choose the questions that cut the records of SPEC into classes by SOURCE, which is about other people.

    Frequencies with noise, and bounds in a population, need classes that do not depend on the records that are
    released. SOURCE has the columns of SPEC: the records of an earlier year, say, or of people who are set aside. Which
    questions were chosen is public with every release, and tells of these people what exact counts do.
    """
    from funnel.release.classified import write_classes
    from funnel.spec import ReleaseSpec

    with Console(as_json) as console:
        file = write_classes(ReleaseSpec.load(spec), source, output, force, console.progress)
    click.echo(json_line({"classes": str(file)}) if as_json else f"wrote {file}")


@main.command("share")
@click.argument("release", type=click.Path(path_type=Path))
@click.argument("target")
@click.option("--ckan", is_flag=True, help="TARGET is a CKAN portal; its token is in FUNNEL_CKAN_TOKEN.")
@click.option(
    "--dataverse", is_flag=True, help="TARGET is a collection of a Dataverse; its token is in FUNNEL_DATAVERSE_TOKEN."
)
@click.option("--organisation", metavar="NAME", help="The organisation of the portal that owns the dataset.")
@json_option
def share_command(
    release: Path, target: str, ckan: bool, dataverse: bool, organisation: str | None, as_json: bool
) -> None:
    """Put the public files of a published RELEASE somewhere else too, whole or not at all.

    RELEASE is the folder of a version, or of a series, whose latest version is meant. TARGET is a URL of any storage
    that fsspec knows, where the version appears as TARGET/NAME/VERSION. With --ckan it is a portal, and with
    --dataverse a collection, such as https://dataverse.example/dataverse/office, where the version becomes a dataset.
    Only what was signed is shared. Running again finishes what was interrupted, and changes nothing else.
    """
    from funnel.release.sharing import share_at, whole_release
    from funnel.storage import check_address, is_url

    if organisation is not None and not ckan:
        raise SpecError("an organisation is one of a portal; add --ckan, or leave it out")
    if ckan and dataverse:
        raise SpecError("TARGET is a CKAN portal or a collection of a Dataverse; give one of --ckan and --dataverse")
    with Console(as_json) as console:
        if ckan:
            from funnel.release.ckan import open_portal, share_on_portal

            portal = open_portal(target, os.environ.get("FUNNEL_CKAN_TOKEN"))
            shared = share_on_portal(whole_release(release), portal, organisation, console.progress)
        elif dataverse:
            from funnel.release.dataverse import TOKEN, open_collection, share_in_collection

            collection = open_collection(target, os.environ.get(TOKEN))
            shared = share_in_collection(whole_release(release), collection, console.progress)
        else:
            try:
                if not is_url(check_address(target)):
                    raise SpecError(f"{target} is no URL; name one, such as s3://bucket/open or file:///srv/open")
            except ValueError as error:
                raise SpecError(f"the address {error}") from None
            shared = share_at(whole_release(release), target, console.progress)
    said = f"{'shared' if shared.changed else 'already there'}: {shared.place}"
    click.echo(json_line({"place": shared.place, "changed": shared.changed}) if as_json else said)


@main.command("export")
@click.argument("release", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@json_option
def export_command(release: Path, file: Path, force: bool, as_json: bool) -> None:
    """Write the records of a published RELEASE to FILE for SPSS, Stata or parquet, or a DDI codebook.

    RELEASE is the folder of a version, or of a series, whose latest version is meant. FILE ends in .sav or .zsav
    (SPSS), .dta (Stata), .parquet, or .xml (DDI-Codebook 2.5, for data archives). Categories are numbered in the order
    of the release, with themselves as labels; missing values are those of the format. A sentence names the title and
    the labels of columns that SPSS or Stata cut: whole they are in the notes of a file of SPSS, and in a codebook. The
    release is checked first: where a check of funnel audit --public fails, nothing is written.
    """
    from contextlib import suppress

    from funnel.analysis.exported import cut_labels, export_release
    from funnel.analysis.release import load_release

    with Console(as_json) as console:
        console.progress("checking the release", 0, None)
        found = load_release(release)
        # A copy without the index of its series cannot be checked for newer versions, and can be read all the same.
        with suppress(NotChecked):
            found.verify()
        console.progress("writing", 0, None)
        written = export_release(found, file, force)
    cut = cut_labels(found, file)
    click.echo(json_line({"file": str(written), "cut": cut}) if as_json else f"wrote {written}")
    if cut is not None and not as_json:
        click.echo(cut)


@main.command("audit")
@click.argument("release")
@click.option(
    "--public-key",
    "key",
    metavar="KEY",
    help="The publisher's public key, from elsewhere than the release: hexadecimal, base64, PEM, or a file with one.",
)
@renamed_option("--key", "--public-key")
@click.option(
    "--public",
    is_flag=True,
    help="Check only what the public files tell, as their readers can.",
)
@click.option(
    "--evidence",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The folder of the internal evidence, where it is not in the workspace near RELEASE.",
)
@click.option(
    "--register",
    type=click.Path(path_type=Path),
    help="The folder of the register of the people, where it is not in the workspace near RELEASE.",
)
@click.option(
    "--index",
    metavar="PLACE",
    help="The publisher's versions.json of the series, a file or a URL, where it is not beside RELEASE.",
)
@json_option
def audit_command(
    release: str,
    key: str | None,
    public: bool,
    evidence: Path | None,
    register: Path | None,
    index: str | None,
    as_json: bool,
) -> None:
    """Check a published RELEASE again, from its files alone.

    RELEASE is the folder of a version, or of a series (then its latest version is checked), or the URL of one. Every
    public file is checked: that it is signed, written to the byte as funnel writes it, and says what follows from the
    others; and that the released counts can have been drawn from the public shares. Where its internal evidence is,
    in the workspace near RELEASE or where --evidence says, the level under the estimated joint distribution and the
    draws are checked too, and, of versions about the same people, from their register, the level of everything
    published about them. At a URL it is not looked for: the publisher keeps it.

    The signed index of the series, versions.json beside the versions, says which version is the newest, and which were
    withdrawn: these fail, and so does an older one, unless RELEASE names it by its number. Without the index that
    cannot be checked.

    Each check passes, fails, or could not be made. Exit status 0 if all passed; 7 if any failed; 13 if none failed and
    some could not be made, such as all that needs internal evidence on a public copy, unless --public leaves that out;
    4 if a public document cannot be read. Without --public-key the signature proves only that nothing was changed.
    """
    from funnel.audit.check import error_of
    from funnel.audit.recheck import Told, recheck_address
    from funnel.release.signature import parse_public_key
    from funnel.rendering import figures_again, page_renderer

    known = None if key is None else parse_public_key(key)
    with Console(as_json) as console:
        told = Told(known, public, render=page_renderer(), figures=figures_again(), register=register)
        root, checks = recheck_address(release, index, told, console.progress, evidence)
    console.print_checks(root, checks)
    if (complaint := error_of(root, checks)) is not None:
        if as_json:
            # One document: it says all that the sentence would.
            click.get_current_context().exit(complaint.exit_code)
        raise complaint


@main.command("estimate")
@click.argument("releases", metavar="RELEASE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--by", "by", multiple=True, metavar="A[,B]", help="Estimate this column; several are crossed.")
@click.option("--within", multiple=True, metavar="A[,B]", help="Shares among the records with the same value here.")
@click.option("--of", "of", metavar="COLUMN", help="Mean, total and quantiles of this column of numbers instead.")
@click.option(
    "--quantile", "quantiles", multiple=True, type=float, metavar="SHARE", help="With --of; quartiles by default."
)
@click.option(
    "--number",
    "numbers",
    multiple=True,
    metavar="VALUE=NUMBER",
    help="What a value means, or VALUE=LEAST..LARGEST.",
)
@click.option("--odds", is_flag=True, help="Odds ratios of the two columns of --by, against the commonest values.")
@click.option("--sampling", is_flag=True, help="Errors also of a sample: estimates are of the population it is from.")
@click.option(
    "--method",
    type=click.Choice(["count", "em", "inverse"]),
    help="Plain counts, likeliest, or without bias. Default: count of invariant releases, else em.",
)
@click.option("--weighted", is_flag=True, help="Of the population that the published classes of weights stand for.")
@click.option(
    "--design-effect",
    type=float,
    metavar="NUMBER",
    help="With --weighted --sampling: of the sample, by its publisher.",
)
@json_option
def estimate_command(releases: tuple[Path, ...], as_json: bool, **asked: Any) -> None:
    """Estimate how common true values are, from the records of a published RELEASE.

    RELEASE is the folder of a version, or of a series (then its latest version is read); its records, protocol.json and
    the published frequencies are all that is read. Each share comes with a standard error and an interval that holds
    the true one in 95 of 100 draws. By default they are about these records: only the random draws err.

    Records of an invariant release are counted as usual, and each share comes with r: the usual standard error for the
    population, times the root of 1 + r, has room for the records that were changed. --odds gives odds ratios, and --of
    means, totals and quantiles.

    In other releases, values that the records can tell only in sum are listed so, with what is left of each of them.
    Where that is because some values hardly occur, they are taken to be as rare as is published, and named.

    Of several releases, such as the versions of a series in their order, it is also estimated how shares change.
    """
    from funnel.analysis.question import Question

    with Console(as_json) as console:
        console.progress("counting records", 0, None)
        found = Question(**asked).answer(releases)
    for line in [json_line(found.to_dict())] if as_json else map(printable, str(found).splitlines()):
        click.echo(line)
