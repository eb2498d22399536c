"""The verbs of live lines, a file each."""
