"""Files that survive crashes: atomic folders, arrays, locks, spill directories."""
