"""The papers' experiments, done again: every figure below the certified optimum, every quoted number beside ours.

An experiment is declared (`experiment.py`): its distributions, what is measured of each, what is drawn, which orders
must hold and what the text says of it. `points.py` measures, and keeps what it has measured; `drawing.py` and `page.py`
show it.
"""
