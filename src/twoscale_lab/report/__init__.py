"""Pages, tables and charts of studies, and the generated parts of the documentation."""
