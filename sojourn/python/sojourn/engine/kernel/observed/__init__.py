"""From a guest's archive to tables."""
