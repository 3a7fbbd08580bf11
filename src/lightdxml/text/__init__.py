"""Texts to TF-IDF features, and word vectors."""
