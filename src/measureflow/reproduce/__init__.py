"""Every table and figure of the four papers, one module for each, made by one command.

The package of a paper says in ``ARTEFACTS`` where each lives: in a module of its own, or as ``module:name`` in the
``BY_NAME`` of a module that several share. An artefact has these names:

- ``TITLE``: what it is, in one line;
- ``compute(size, cache)``: the work, returning tables by name; ``size`` is "tiny", "small" or "paper", and
  ``cache`` a folder where long work keeps what it has finished, so that an interrupted run goes on;
- ``render(tables)``: figures by name, made from the tables alone;
- ``findings(tables)``: a paragraph, made from the tables alone: what the paper says, and what was found;
- ``verdicts(tables)``: for each claim of the paper what is printed, what was found, and whether it holds;
- ``budget(size)``: what the run spends, and where the paper spent more;
- ``tabulate(tables)`` and ``WEIGHTS``, if it has them: tables for the page, and the models by name that it shows.
"""

from measureflow.reproduce.provenance import shown
from measureflow.reproduce.run import PAPERS, SIZES, artefacts, reproduce
from measureflow.reproduce.verdicts import Verdict

__all__ = ["reproduce", "artefacts", "shown", "Verdict", "PAPERS", "SIZES"]
