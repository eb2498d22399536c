"""`sojourn`, and `python -m sojourn`.

Until the command line is imported, which takes some tenths of a second, Ctrl-C ends this process as
it ends any other: at once and without a traceback. From then on the verbs are interrupted, and see
to what they have begun.
"""

import signal


def main() -> None:
    """Runs the command line and exits."""
    # Ignored, as for a job in the background, it stays.
    heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if heeded:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from sojourn.cli import main as command_line

    if heeded:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    command_line()


if __name__ == "__main__":
    main()
