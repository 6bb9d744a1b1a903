"""The pages tell the truth: figures come from files, examples run, links lead somewhere."""

import doctest
import re
from pathlib import Path

import pytest

import pages

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES += sorted(ROOT.glob("docs/howto/*.md")) + sorted(ROOT.glob("docs/papers/*.md"))
WITH_EXAMPLES = [page for page in PAGES if ">>> " in page.read_text(encoding="utf-8")]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_every_figure_is_what_its_source_says():
    assert pages.stale() == [], "run `make scoreboard FROM=results` and commit what it writes"


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=name)
def test_the_examples_in_a_page_run(page):
    text = re.sub(r"^```.*$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    test = doctest.DocTestParser().get_doctest(text, {}, name(page), name(page), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert runner.run(test).failed == 0


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_inside_the_repository_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if "://" not in target:
            made = target.startswith("gallery/")  # by sphinx-gallery, when the pages are built
            assert made or (page.parent / target).exists(), f"{name(page)} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_make_targets_named_in_a_page_exist(page):
    targets = re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    named = re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(named) <= set(targets)


def test_every_page_is_in_the_table_of_contents():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^(?:[\w ]+ <)?([\w/-]+)>?$", index, re.MULTILINE))
    assert {page.stem for page in (ROOT / "docs").glob("*.md")} - {"index"} <= listed
