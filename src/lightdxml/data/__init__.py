"""Reading, writing and getting data: `load` is the way in."""
