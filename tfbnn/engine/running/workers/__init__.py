"""Worker processes: as their parent sees them, and the program that each of them runs."""
