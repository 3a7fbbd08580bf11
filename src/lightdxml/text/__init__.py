"""From texts to TF-IDF features."""
