"""The linear view: sparse linear classifiers on the features."""
