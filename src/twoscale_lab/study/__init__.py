"""Studies as data: what to run, the records of what was run, and the paper's numbers."""
