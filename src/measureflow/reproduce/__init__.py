"""Every table and figure of the four papers, one module for each, made by one command.

An artefact is a module ``reproduce/<paper>/<name>.py`` with four names:

- ``TITLE``: what it is, in one line;
- ``compute(size, cache)``: the work, returning tables by name; ``size`` is "tiny", "small" or "paper", and
  ``cache`` a folder where long work keeps what it has finished, so that an interrupted run goes on;
- ``render(tables)``: figures by name, made from the tables alone;
- ``findings(tables)``: a paragraph, made from the tables alone: what the paper says, and what was found.
"""

from measureflow.reproduce.run import PAPERS, SIZES, artefacts, reproduce

__all__ = ["reproduce", "artefacts", "PAPERS", "SIZES"]
