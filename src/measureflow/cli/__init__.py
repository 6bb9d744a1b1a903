"""The command line, a module for each command. Heavy packages load inside them, so that ``--help`` answers at once."""

from measureflow.cli import cluster, explore, simulate, reproduce, train, doctor  # noqa: F401, I001 (the order of --help)
from measureflow.cli.app import main

__all__ = ["main"]
