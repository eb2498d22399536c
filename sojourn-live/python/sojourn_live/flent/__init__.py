"""`.flent.gz`, version 4, as flent 2.3.0 reads and writes it: `out` exports a phase of a
measurement, `back` imports one of flent's tests."""

from sojourn_live.flent.back import measurement, read
from sojourn_live.flent.form import TIME
from sojourn_live.flent.out import FlentChoice, check_name, document, export

__all__ = ["TIME", "FlentChoice", "check_name", "document", "export", "measurement", "read"]
