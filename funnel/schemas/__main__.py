"""Renew the published JSON Schemas after a change of the documents: `python -m funnel.schemas`."""

from __future__ import annotations

from funnel.schemas import renew

if __name__ == "__main__":
    for path in renew():
        print(f"renewed {path.name}")
