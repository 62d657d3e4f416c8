"""Whether records of groups were drawn by the weights: exact tests at every stage, channel and input."""

from __future__ import annotations

import numpy as np

from funnel.audit.consistency import Consistency, law_p_values
from funnel.groups.protocol import GroupedProtocol
from funnel.joint import IntArray


def groups_consistency(cells: IntArray, records: IntArray, protocol: GroupedProtocol) -> Consistency:
    """Test what was drawn at every stage against its channels, as `funnel.audit.draw_consistency` does.

    Given its class and its input, a record draws by the weights of one channel, whatever was drawn before: so all
    records of a stage, channel and input are draws from one law, and that theorem holds of the tests of all of them.

    Parameters
    ----------
    cells : ndarray of int64, shape (m, 5)
        Stage, class, input, output and secret.
    records : ndarray of int64, shape (m,)
    protocol : GroupedProtocol
    """
    p_values: list[float] = []
    impossible = 0
    for number, stage in enumerate(protocol.stages):
        here = cells[:, 0] == number
        channels = np.array([channel for channel, _ in stage.classes], dtype=np.int64)[cells[here, 1]]
        places, outputs, counts = cells[here, 2], cells[here, 3], records[here]
        order = np.lexsort((places, channels))
        channels, places, outputs, counts = channels[order], places[order], outputs[order], counts[order]
        if not len(order):
            continue
        starts = np.flatnonzero(np.r_[True, (np.diff(channels) != 0) | (np.diff(places) != 0)])
        tables = {c: stage.channels[c].words(stage.size) for c in np.unique(channels).tolist()}
        for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(order)], strict=True):
            weights, marginal = tables[int(channels[start])]
            law = marginal if places[start] < 0 else weights[:, places[start]]
            drawn = np.bincount(outputs[start:stop], weights=counts[start:stop], minlength=len(law)).astype(np.int64)
            forbidden = int(drawn[law == 0].sum())
            impossible += forbidden
            drawn[law == 0] = 0
            if not drawn.any():
                continue
            single, together, classes = law_p_values(drawn, law)
            p_values.extend(single.tolist())
            if classes > 2:
                p_values.append(together)
    if impossible:
        return Consistency(0.0, 0, len(p_values), impossible)
    return Consistency(min(1.0, min(p_values, default=1.0) * max(1, len(p_values))), 0, len(p_values), 0)
