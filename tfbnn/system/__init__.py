"""Operating system: processes, signals, threads, locks, terminals and atomic files."""
