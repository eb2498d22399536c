"""Lines measured: sessions with a server of ours, kept as Runs, and what a Run of them says."""
