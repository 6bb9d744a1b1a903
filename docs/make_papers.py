"""Make the pages of the four papers: ``python docs/make_papers.py [--make] [RESULTS]``.

RESULTS is the folder given to ``reproduce --out``. With ``--make`` every artefact is first made there at the size that
`SIZE` names, the least expensive first; what is finished is kept, so that a stopped run goes on. A page keeps the
run it shows where RESULTS has none, a stale one, or one of a smaller size. Tables of the runs shown are kept in
docs/papers/tables, heavy ones packed, the heaviest not at all: where what computes them is as it was, they are drawn
again and not computed.
The picture that ``make demo`` made is taken along.
"""

import gzip
import json
import re
import shutil
import sys
import time
from pathlib import Path

import pandas as pd
from PIL import Image

from measureflow.explorer.papers import TITLES
from measureflow.reproduce import PAPERS, SIZES, artefacts, reproduce, shown
from measureflow.reproduce.provenance import computing_digest, stale
from measureflow.reproduce.run import as_markdown, module_of, read_record

HERE = Path(__file__).parent / "papers"
SHOWN = Path(__file__).parents[1] / "src/measureflow/reproduce/published/shown.json"
DEMO = Path("out/demo/report.png")
WIDTH = 1000  # pixels of a picture on the page
SIZE: dict[tuple[str, str], str] = {}  # the size at which an artefact is shown, where it is not "small"
STALE = "*This run is older than what it shows:*"
AGAIN = "`make papers` makes it again."
KEPT = ("title", "size", "budget", "seconds", "commit", "code", "computing", "weights", "verdicts")
TABLES = HERE / "tables"
HEAVY = 300_000  # bytes of the tables of one artefact, beyond which they are packed, and then not kept
INTRO = """Each claim of the paper, what is printed of it, and what the run found. *Corrected* means that the print does
not hold and the statement in [Corrections](../corrections.md) does; *open* that this run cannot tell. A click on the
head of a column sorts a table, and its button copies it. `make papers` makes the pages anew."""


NOTES = {
    "zimin2025": """The rows that ship saw different numbers of sets; those of 64 layers and of distinct blocks do not
ship. Where a table compares models of other budgets its verdict is *open*; the last artefact of this page, at equal
budgets, trains every kind from random weights on a small part of the paper's sets. Models of one SNR alone are not
trained.""",
    "he2025": """The figures of section 4 are trainings. The paper has 300 steps and ten seeds for each setting. At size
small Figures 1, 2, 4 and 5 share trainings: one model of 400 steps serves all settings of the same number of classes
and dimension, two seeds, and is tested on 64 sets of each. The other trainings are for one setting each, on 128 test
sets. Where a set is turned eight times and the surest answer kept, Lloyd's algorithm has eight
starts.""",
}


def command(paper: str, name: str, size: str) -> str:
    """The line that makes an artefact."""
    return f"`measureflow reproduce {paper} {name} --size {size}`"


def section(results: Path, paper: str, name: str, record: dict) -> str:
    """One artefact: title, how it was made, findings, tables and pictures."""
    folder = results / paper / name
    title, _, text = (folder / "findings.md").read_text(encoding="utf-8").partition("\n")
    pictures = [
        shrunk(folder / file, HERE / "images" / f"{paper}-{name}-{Path(file).stem}".replace(".", "-"))
        for file in record["files"]
        if file.endswith(".png")
    ]
    heading = title.partition(", ")[2] or title
    made = f"*{record['budget']}. Size {record['size']}, {record['seconds']:,.0f} s of processor time"
    made += f", commit {record['commit'].rstrip('+')}.*" if record["commit"] else ".*"
    lines = [f"## {heading[0].upper()}{heading[1:]}", command(paper, name, record["size"]), made, plain(text.strip())]
    lines += [(folder / file).read_text(encoding="utf-8") for file in record["files"] if file.endswith(".table.md")]
    return "\n\n".join([*lines, *(f"![{title}](images/{picture.name})" for picture in pictures)])


def plain(text: str) -> str:
    """Findings are prose: characters that Markdown or TeX would read as their own are escaped."""
    return re.sub(r"([*_$<>])", r"\\\1", text)


def shrunk(file: Path, target: Path) -> Path:
    """A copy of a picture that is light enough to commit."""
    target = target.with_suffix(".png")
    target.parent.mkdir(parents=True, exist_ok=True)
    with Image.open(file) as picture:
        picture = picture.convert("RGB")
        picture.thumbnail((WIDTH, 4 * WIDTH))
        picture.quantize(128, dither=Image.Dither.NONE).save(target, optimize=True)
    return target


def old_sections(page: Path) -> dict[str, str]:
    """The sections a page has now, by the artefact that its command names."""
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    parts = re.split(r"^(?=## )", text, flags=re.MULTILINE)[1:]
    return {found[1]: part.strip() for part in parts if (found := re.search(r"reproduce \S+ (\S+) --size", part))}


def news(results: Path, paper: str, record: dict[str, dict]) -> dict[str, dict]:
    """Records of the runs in a folder that the page should show: none that is smaller than the one shown, or stale."""
    found = {name: read_record(results / paper / name) for name in artefacts(paper)}
    return {
        name: run
        for name, run in found.items()
        if run is not None
        and not stale(run, module_of(paper, name))
        and (name not in record or SIZES.index(run["size"]) >= SIZES.index(record[name]["size"]))
    }


def page(results: Path, paper: str, record: dict[str, dict]) -> tuple[str, dict[str, dict]]:
    """The page of a paper, its artefacts in the paper's order, and the records of the runs it shows."""
    old = old_sections(HERE / f"{paper}.md")
    new = news(results, paper, record)
    both = {name: new.get(name) or record.get(name) for name in artefacts(paper)}
    record = {name: {key: run[key] for key in KEPT if key in run} for name, run in both.items() if run is not None}
    for name in new:
        keep_tables(results / paper / name, TABLES / paper / name)
    texts = {name: section(results, paper, name, new[name]) if name in new else old[name] for name in record}
    texts = {name: marked(text, stale(record[name], module_of(paper, name))) for name, text in texts.items()}
    missing = [name for name in artefacts(paper) if name not in record]
    head = [f"# {TITLES[paper]}", INTRO, *([NOTES[paper]] if paper in NOTES else [])]
    if missing:
        head.append(f"Not shown: {', '.join(missing)}. {command(paper, missing[0], 'small')} makes the first of them.")
    return "\n\n".join([*head, verdict_table(paper, record), *texts.values()]) + "\n", record


def marked(text: str, reasons: list[str]) -> str:
    """A section that says under its command why it is older than what it shows, if it is."""
    lines = [line for line in text.split("\n\n") if not line.startswith(STALE)]
    if reasons:
        lines.insert(2, f"{STALE} {', '.join(reasons)} since. {AGAIN}")
    return "\n\n".join(lines)


def verdict_table(paper: str, record: dict[str, dict]) -> str:
    """All verdicts of a paper, with the command behind each."""
    rows = [
        {**{key: plain(text) for key, text in verdict.items()}, "command": command(paper, name, run["size"])}
        for name, run in record.items()
        for verdict in run["verdicts"]
    ]
    return as_markdown(pd.DataFrame(rows, columns=["claim", "printed", "ours", "verdict", "command"]))


def gallery() -> str:
    """Every picture of the pages as a thumbnail that leads to its section."""
    parts = []
    for paper in PAPERS:
        parts += [f"### {TITLES[paper]}", ":::{container} thumbnails"]
        for text in old_sections(HERE / f"{paper}.md").values():
            heading = text.partition("\n")[0].removeprefix("## ")
            anchor = re.sub(r"[^\w\- ]", "", heading.lower().replace(" ", "-"))
            pictures = re.findall(r"\]\((images/[^)]+)\)", text)
            parts += [f"[![]({picture}) {heading}]({paper}.md#{anchor})" for picture in pictures]
        parts.append(":::")
    return "\n\n".join(parts)


def with_gallery(text: str) -> str:
    """The page of all papers with the pictures as they are now."""
    return re.sub(
        r"(?<=<!-- begin pictures -->\n).*(?=\n<!-- end pictures -->)", lambda _: gallery(), text, flags=re.DOTALL
    )


def keep_tables(run: Path, kept: Path) -> None:
    """Copy the tables of a run to where they are kept, in place of older ones; heavy ones are packed, or left out."""
    shutil.rmtree(kept, ignore_errors=True)
    files = json.loads((run / "run.json").read_text(encoding="utf-8"))["files"]
    tables = {name: (run / name).read_bytes() for name in files if name.endswith(".csv")}
    if sum(map(len, tables.values())) > HEAVY:
        tables = {f"{name}.gz": gzip.compress(text, mtime=0) for name, text in tables.items()}
    if sum(map(len, tables.values())) <= HEAVY:
        kept.mkdir(parents=True)
        for name, text in tables.items():
            (kept / name).write_bytes(text)


def restore(run: Path, kept: Path, record: dict | None, computing: str) -> None:
    """Lay the kept tables of the run that a page shows where `reproduce` reads them back, unless a run is there.

    Tables that were computed otherwise than by the code of the digest ``computing`` are left where they are.
    """
    tables = sorted(kept.glob("*.csv*"))
    if not tables or record is None or record.get("computing") != computing or (run / "run.json").exists():
        return
    cache = run / "cache" / record["size"]
    cache.mkdir(parents=True, exist_ok=True)
    (cache / "seconds").write_text(f"{record['seconds']}\n", encoding="utf-8")
    for table in tables:
        text = table.read_bytes()
        (run / table.name.removesuffix(".gz")).write_bytes(gzip.decompress(text) if table.suffix == ".gz" else text)
    to_draw = record | {"code": "", "files": [table.name.removesuffix(".gz") for table in tables]}
    (run / "run.json").write_text(json.dumps(to_draw), encoding="utf-8")


def make_all(results: Path) -> None:
    """Make every artefact at the size it is shown at, the least expensive first, and say what it took."""
    began, before = time.perf_counter(), shown()
    todo = [(paper, name) for paper in PAPERS for name in artefacts(paper)]
    cost = {job: before.get(job[0], {}).get(job[1], {}).get("seconds", float("inf")) for job in todo}
    for paper, name in sorted(todo, key=cost.__getitem__):
        print(f"{paper} {name}", flush=True)
        computing, record = computing_digest(module_of(paper, name)), before.get(paper, {}).get(name)
        restore(results / paper / name, TABLES / paper / name, record, computing)
        reproduce(paper, name, SIZE.get((paper, name), "small"), results)
    print(f"{len(todo)} artefacts in {time.perf_counter() - began:,.0f} s")


def main() -> None:
    """Write the page of each paper, and the record of the runs shown."""
    words = [word for word in sys.argv[1:] if word != "--make"]
    results = Path(words[0] if words else "out/papers")
    if "--make" in sys.argv:
        make_all(results)
    record = shown()
    for paper in PAPERS:
        text, record[paper] = page(results, paper, record.get(paper, {}))
        (HERE / f"{paper}.md").write_text(text, encoding="utf-8")
        print(f"written: docs/papers/{paper}.md")
    index = HERE / "index.md"
    index.write_text(with_gallery(index.read_text(encoding="utf-8")), encoding="utf-8")
    SHOWN.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if DEMO.is_file():
        print(f"written: {shrunk(DEMO, HERE.parent / 'images' / 'demo').relative_to(HERE.parent.parent)}")


if __name__ == "__main__":
    main()
