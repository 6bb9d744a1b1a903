"""Write docs/papers/<paper>.md from what `measureflow reproduce` made: ``python docs/make_papers.py [RESULTS]``.

RESULTS is the folder given to ``reproduce --out``. Artefacts that are not in it keep the section they had. The picture
that ``make demo`` made is taken along.
"""

import re
import sys
from pathlib import Path

from PIL import Image

from measureflow.reproduce import PAPERS, SIZES, artefacts

HERE = Path(__file__).parent / "papers"
DEMO = Path("out/demo/report.png")
WIDTH = 1000  # pixels of a picture on the page
TITLES = {
    "zimin2025": "Zimin 2025: a learned flow onto the mixing measure",
    "clarkson2025": "Clarkson 2025: transformers that are k-means",
    "he2025": "He 2025: transformers that are EM",
    "castin2025": "Castin 2025: the Transformer PDE",
}
TINY = "*A tiny run: few draws, and models, where there are any, hardly trained. It shows what the command makes.*"
PRINTED = "Cells show ours, the printed number and the gap. "


def section(results: Path, paper: str, name: str) -> str | None:
    """One artefact: title, findings, pictures and the command that makes it; None if it has not been made."""
    folder = results / paper / name
    if not (folder / "findings.md").is_file():
        return None
    title, _, text = (folder / "findings.md").read_text(encoding="utf-8").partition("\n")
    size = next((size for size in reversed(SIZES) if (folder / "cache" / size).is_dir()), "small")
    pictures = [
        shrunk(file, HERE / "images" / f"{paper}-{name}-{file.stem}".replace(".", "-"))
        for file in sorted(folder.glob("*.png"))
    ]
    heading = title.partition(", ")[2] or title
    lines = [f"## {heading[0].upper()}{heading[1:]}", f"`measureflow reproduce {paper} {name} --size {size}`"]
    lines += [TINY] if size == "tiny" else []
    lines += [plain(text.strip()), *(f"![{title}](images/{picture.name})" for picture in pictures)]
    return "\n\n".join(lines)


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
        picture.quantize(64, dither=Image.Dither.NONE).save(target, optimize=True)
    return target


def old_sections(page: Path) -> dict[str, str]:
    """The sections a page has now, by the artefact that its command names."""
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    parts = re.split(r"^(?=## )", text, flags=re.MULTILINE)[1:]
    return {found[1]: part.strip() for part in parts if (found := re.search(r"reproduce \S+ (\S+) --size", part))}


def page(results: Path, paper: str) -> str:
    """All artefacts of a paper, in its order."""
    path = HERE / f"{paper}.md"
    old = old_sections(path)
    made = {name: section(results, paper, name) or old.get(name) for name in artefacts(paper)}
    missing = [name for name, text in made.items() if text is None]
    head = f"# {TITLES[paper]}\n\n{PRINTED if paper == 'zimin2025' else ''}`make gallery` makes this page anew."
    if missing:
        head += f" Not shown here: {', '.join(missing)}; `measureflow reproduce {paper} {missing[0]}` makes them."
    return "\n\n".join([head, *(text for text in made.values() if text)]) + "\n"


def main() -> None:
    """Write the page of each paper."""
    results = Path(sys.argv[1] if len(sys.argv) > 1 else "out/gallery")
    for paper in PAPERS:
        (HERE / f"{paper}.md").write_text(page(results, paper), encoding="utf-8")
        print(f"written: docs/papers/{paper}.md")
    if DEMO.is_file():
        print(f"written: {shrunk(DEMO, HERE.parent / 'images' / 'demo').relative_to(HERE.parent.parent)}")


if __name__ == "__main__":
    main()
