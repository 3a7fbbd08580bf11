"""The tree view: label trees."""
