"""Where fields live: grids, cuts, patches, symmetries."""
