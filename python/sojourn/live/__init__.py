"""A live link: measuring it, what comes of a measurement, watching it, curing it."""
