"""Run folders, which a run writes and resumes from."""
