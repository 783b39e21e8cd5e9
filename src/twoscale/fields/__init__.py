"""What a field is: grids, patches, symmetries, sources, and measures of fields."""
