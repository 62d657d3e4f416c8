"""What judges releases of groups of columns, for the gate and for `funnel audit`: from texts, files and counts."""
