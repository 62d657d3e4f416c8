"""The pipeline around the method: flows, tasks and expectations, which are folders at the top of the project."""
