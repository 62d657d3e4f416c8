"""Catalogue entries of releases under anybody's SHACL shapes, and what those ask that our own shapes do not.

``python scripts/official_shapes.py SHAPES.ttl RELEASE ...`` takes a file of shapes, such as the one that SEMIC has for
DCAT-AP, and folders of versions or of series. Every dcat.jsonld is judged by itself, and all of them together as a
harvester has them; nothing is inferred. The status is 1 if a constraint is violated, or if one is about something that
an entry has and is not among those that the tests hold every release to.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyshacl
from rdflib import RDF, SH, BNode, Graph, Literal, Namespace, URIRef
from rdflib.collection import Collection
from rdflib.term import Node

OURS = Path(__file__).parents[1] / "tests" / "funnel" / "release" / "standards" / "dcat-ap-3.shapes.ttl"
ENTRY = "dcat.jsonld"
# Of SHACL's own words, what asks nothing of data: where shapes apply, texts and order.
_ASKS_NOTHING = {
    *(SH.property, SH.path, SH.targetClass, SH.targetNode, SH.targetSubjectsOf, SH.targetObjectsOf),
    *(SH.name, SH.description, SH.message, SH.order, SH.group, SH.severity, SH.defaultValue),
}
_NAMES = Graph(bind_namespaces="rdflib").namespace_manager
_NAMES.bind("spdx", Namespace("http://spdx.org/rdf/terms#"))


@dataclass(frozen=True, order=True)
class Constraint:
    """What is asked of all nodes of a class: of the values of a path or, without one, of the nodes themselves."""

    target: str
    path: str
    component: str
    value: str

    def __str__(self) -> str:
        return " ".join(filter(None, (self.target, self.path, self.component, self.value)))


def entry(text: bytes, address: str) -> Graph:
    """The statements of JSON-LD that lies at an address."""
    with warnings.catch_warnings():
        # Of the library about itself.
        warnings.filterwarnings("ignore", "ConjunctiveGraph is deprecated")
        return Graph().parse(data=text, format="json-ld", publicID=address)


def take_out_undefined(shapes: Graph) -> list[str]:
    """Shapes of properties that are referred to and say of no property: no validator can run them."""
    found = {shape for shape in shapes.objects(None, SH.property) if (shape, SH.path, None) not in shapes}
    for shape in found:
        shapes.remove((None, SH.property, shape))
    return sorted(_text(shapes, shape) for shape in found)


def constraints(shapes: Graph) -> set[Constraint]:
    """All that is asked of nodes by their class."""
    return {
        Constraint(
            _text(shapes, target),
            "".join(_text(shapes, path) for path in shapes.objects(part, SH.path)),
            _text(shapes, component),
            _text(shapes, value),
        )
        for shape, target in shapes.subject_objects(SH.targetClass)
        for part in (shape, *shapes.objects(shape, SH.property))
        for component, value in shapes.predicate_objects(part)
        # Words of others tell people, and shapes that are not closed ask nothing by saying so.
        if component in SH and component not in _ASKS_NOTHING and (component, value) != (SH.closed, Literal(False))
    }


def with_what_follows(asked: set[Constraint]) -> set[Constraint]:
    """These constraints, and which kinds of nodes follow from them: whatever has a class is no text, for instance."""
    follows = {
        ("sh:class", None): ("sh:BlankNodeOrIRI",),
        ("sh:datatype", None): ("sh:Literal", "sh:BlankNodeOrLiteral", "sh:IRIOrLiteral"),
        ("sh:nodeKind", "sh:IRI"): ("sh:BlankNodeOrIRI", "sh:IRIOrLiteral"),
        ("sh:nodeKind", "sh:BlankNode"): ("sh:BlankNodeOrIRI", "sh:BlankNodeOrLiteral"),
        ("sh:nodeKind", "sh:Literal"): ("sh:BlankNodeOrLiteral", "sh:IRIOrLiteral"),
    }
    return asked | {
        replace(one, component="sh:nodeKind", value=kind)
        for one in asked
        for value in (one.value, None)
        for kind in follows.get((one.component, value), ())
    }


def nodes(data: Graph) -> dict[str, set[Node]]:
    """The nodes of every class."""
    found: dict[str, set[Node]] = {}
    for node, kind in data.subject_objects(RDF.type):
        found.setdefault(_text(data, kind), set()).add(node)
    return found


def properties(data: Graph) -> set[tuple[str, str]]:
    """Which class has which properties; none, which every class has, stands for its nodes themselves."""
    return {
        (kind, said)
        for kind, members in nodes(data).items()
        for node in members
        for said in ("", *(_text(data, name) for name in data.predicates(node)))
    }


def violations(data: Graph, shapes: Graph) -> list[str]:
    """What breaks the shapes, a line each."""
    _, report, words = pyshacl.validate(data, shacl_graph=shapes)
    if not isinstance(report, Graph):
        raise SystemExit(f"these shapes cannot be run: {words}")
    return sorted(_violation(report, result) for result in report.subjects(RDF.type, SH.ValidationResult))


def _violation(report: Graph, result: Node) -> str:
    parts = [report.value(result, part) for part in (SH.focusNode, SH.resultPath, SH.sourceConstraintComponent)]
    names = ["a nameless node" if isinstance(part, BNode) else _text(report, part) for part in parts if part]
    return f"{' '.join(names)}: {'; '.join(sorted(map(str, report.objects(result, SH.resultMessage))))}"


def _text(graph: Graph, node: Node) -> str:
    """A term as a text that is the same in every file: lists, and nodes without a name, by what they hold."""
    if isinstance(node, BNode):
        if (node, RDF.first, None) in graph:
            return f"({' '.join(_text(graph, part) for part in Collection(graph, node))})"
        held = sorted(f"{_text(graph, key)} {_text(graph, value)}" for key, value in graph.predicate_objects(node))
        return f"[{'; '.join(held)}]"
    return node.n3(_NAMES) if isinstance(node, URIRef) else str(node)


def versions(folders: Sequence[Path]) -> list[Path]:
    """The folders of versions that are named, by themselves or with the folder of their series."""
    found: list[Path] = []
    for folder in folders:
        inside = [folder] if (folder / ENTRY).exists() else [entry.parent for entry in folder.glob(f"*/{ENTRY}")]
        if not inside:
            raise SystemExit(f"{folder} has no {ENTRY}, and neither have the folders in it")
        found += sorted(version.resolve() for version in inside)
    return list(dict.fromkeys(found))


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge, and print what was found; 0 if nothing was."""
    asked = argparse.ArgumentParser(description="Hold catalogue entries of releases against a file of SHACL shapes.")
    asked.add_argument("shapes", type=Path, help="a file of shapes in Turtle")
    asked.add_argument("releases", type=Path, nargs="+", metavar="RELEASE", help="folder of a version, or of a series")
    asked.add_argument("--all", action="store_true", help="list what is asked of properties that no entry has, too")
    told = asked.parse_args(arguments)

    shapes = Graph().parse(told.shapes, format="turtle")
    print(f"{told.shapes.name}, SHA-256 {hashlib.sha256(told.shapes.read_bytes()).hexdigest()}")
    _listed("left out, since the file does not say what they ask", take_out_undefined(shapes))
    graphs = {
        f"{folder.parent.name}/{folder.name}": entry((folder / ENTRY).read_bytes(), f"{folder.as_uri()}/{ENTRY}")
        for folder in versions(told.releases)
    }
    together = Graph()
    for graph in graphs.values():
        together += graph
    judged = {**graphs, "all together": together} if len(graphs) > 1 else graphs
    wrong = sum(_listed(f"{name}: violated", violations(graph, shapes)) for name, graph in judged.items())
    return 1 if wrong + _compared(together, constraints(shapes), told.all) else 0


def _compared(data: Graph, theirs: set[Constraint], everything: bool) -> int:
    """What of the constraints is about these data, and how many of those that are about what is there are not ours."""
    members, had = nodes(data), properties(data)
    about = {one for one in theirs if one.target in members}
    for target in sorted({one.target for one in about}):
        here = [(one.target, one.path) in had for one in about if one.target == target]
        print(f"{target}: {len(members[target])} nodes, {len(here)} constraints, {sum(here)} of them on what is there")
    ours = with_what_follows(constraints(Graph().parse(OURS)))
    there = {one for one in about if (one.target, one.path) in had}
    missing = _listed("on what is there, and not among our own shapes", sorted(map(str, there - ours)))
    _listed("on properties that no entry has", sorted(map(str, about - there)), short=not everything)
    return missing


def _listed(what: str, lines: Sequence[str], *, short: bool = False) -> int:
    print(f"{what}: {len(lines)}")
    print("".join(f"  {line}\n" for line in lines if not short), end="")
    return len(lines)


if __name__ == "__main__":
    sys.exit(main())
