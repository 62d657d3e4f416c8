"""``python -m funnel`` is the ``funnel`` command."""

from funnel.cli import main

main(prog_name="funnel")
