"""The host's own programs for its network."""

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
"""Where ip and tc are, which a user's own PATH may leave out."""
