"""Training and prediction on the machines of a Ray cluster: the only package that imports Ray."""
