"""What a guest's program measured, to the tables."""
