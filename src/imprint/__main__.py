"""The first line that runs: small, so that a Ctrl-C while the rest is being loaded is answered too."""

import sys
from io import TextIOWrapper


def main() -> None:
    """Run the command line."""
    try:
        from imprint.main import run  # noqa: PLC0415 - loading takes half a second, in which a person may change their mind

        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors="replace")  # a terminal that lacks a letter still gets the rest
        sys.exit(run(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
