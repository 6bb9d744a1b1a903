"""``python -m measureflow.cli`` is the command ``measureflow``."""

from measureflow.cli import main

if __name__ == "__main__":
    main()
