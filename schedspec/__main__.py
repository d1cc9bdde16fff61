"""`python -m schedspec`: the command line, where the console script is not installed."""

from .cli import main

if __name__ == "__main__":
    main()
