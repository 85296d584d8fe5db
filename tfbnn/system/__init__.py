"""The operating system: processes, signals, threads, locks, atomic files."""
