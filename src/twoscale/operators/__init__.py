"""Maps from input fields to solution fields, and what accompanies their fit."""
