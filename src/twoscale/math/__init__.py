"""PCA, regression, transforms, iterative solvers, and measures of fields."""
