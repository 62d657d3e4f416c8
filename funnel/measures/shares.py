"""Share of records whose published values differ from their true ones."""

from __future__ import annotations

import numpy as np

from funnel.errors import DataError
from funnel.joint import FloatArray, Joint
from funnel.measures.laws import input_output_law
from funnel.protocol import Protocol


def changed_share(joint: Joint, protocol: Protocol) -> float:
    """P(Y ≠ X): the expected share of records that are not released with exactly their own values.

    Outputs and inputs are compared by their texts. A record counts as unchanged only if every published column shows
    the record's own value; an output named ``"A or B"``, since several values lead to it, matches neither.

    Raises
    ------
    DataError
        If the outputs are not over the columns of the joint's inputs.

    Examples
    --------
    >>> identity = funnel.fit("identity", joint, funnel.MutualInformation(1.0))
    >>> funnel.measures.changed_share(joint, identity), funnel.measures.changed_share(joint, protocol)
    (0.0, 1.0)
    """
    law = _comparable_law(joint, protocol)
    rows = [joint.inputs.get(symbol) for symbol in protocol.outputs.symbols]
    kept = sum(law[x, y] for y, x in enumerate(rows) if x >= 0)
    return min(1.0, max(0.0, 1.0 - float(kept)))


def changed_share_by_column(joint: Joint, protocol: Protocol) -> FloatArray:
    """P(Y_j ≠ X_j) for every published column j, shape (number of columns,); each at most `changed_share`.

    Raises
    ------
    DataError
        If the outputs are not over the columns of the joint's inputs.

    Examples
    --------
    >>> identity = funnel.fit("identity", joint, funnel.MutualInformation(1.0))
    >>> funnel.measures.changed_share_by_column(joint, identity).tolist()
    [0.0]
    """
    law = _comparable_law(joint, protocol)
    true = np.array(joint.inputs.symbols, dtype=object)
    shown = np.array(protocol.outputs.symbols, dtype=object)
    kept = [float(law[true[:, j][:, None] == shown[:, j][None, :]].sum()) for j in range(true.shape[1])]
    return np.clip(1.0 - np.array(kept), 0.0, 1.0)


def _comparable_law(joint: Joint, protocol: Protocol) -> FloatArray:
    if protocol.outputs.columns != joint.inputs.columns:
        raise DataError(
            f"the outputs are over the columns {list(protocol.outputs.columns)} and the inputs over "
            f"{list(joint.inputs.columns)}; a share of changed records needs the same columns"
        )
    return input_output_law(joint, protocol)
