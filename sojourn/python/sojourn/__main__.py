"""`sojourn`, and `python -m sojourn`.

The import of the command line takes some tenths of a second. Until then, Ctrl-C ends this process
at once and without a traceback. Afterwards the verbs handle Ctrl-C and clean up.
"""

import signal


def main() -> None:
    """Runs the command line and exits."""
    # In a background job SIGINT is ignored; it stays ignored.
    handled = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if handled:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from sojourn.cli import main as command_line

    if handled:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    command_line()


if __name__ == "__main__":
    main()
