"""What a run is: its arguments, identity, plan, session, progress, result and report."""
