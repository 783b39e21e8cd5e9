"""`python -m twoscale`."""

from twoscale.cli import main

if __name__ == "__main__":
    main()
