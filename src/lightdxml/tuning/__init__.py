"""The search for settings: `study.tune` runs trials, each of which is a training run, and keeps them in a storage."""
