"""Studies as data: their cells, the records of measured ones, and the paper's numbers beside."""
