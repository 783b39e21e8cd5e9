"""The methods by name: recipes, their settings and traits."""
