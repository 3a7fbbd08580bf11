"""A trained model: views, how their scores are combined, and how it is stored."""
