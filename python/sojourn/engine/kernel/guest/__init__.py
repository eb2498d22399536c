"""The kernel's guests: made of packages, kept in a cache, booted, and how they end."""
