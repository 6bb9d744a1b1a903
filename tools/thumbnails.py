"""Thumbnails of the figures in docs/papers, and what was found, for the page: ``python tools/thumbnails.py``."""

import json
import re
from pathlib import Path

from PIL import Image, ImageChops

ROOT = Path(__file__).parents[1]
SHELF = ROOT / "src" / "measureflow" / "explorer" / "static" / "papers"
WIDTH = 420
SECTION = re.compile(
    r"^## (?P<title>[^\n]+)\n\n"
    r"`measureflow reproduce (?P<paper>\w+) (?P<name>[\w.-]+) --size (?P<size>\w+)`\n\n"
    r"(?P<rest>.*?)(?=^## |\Z)",
    re.M | re.S,
)


def shelf(page: str) -> dict[str, dict[str, str]]:
    """Title, findings, size of the run and picture of each artefact in a page of docs/papers."""
    out = {}
    for found in SECTION.finditer(page):
        lines = [line for line in found["rest"].split("\n\n") if line.strip()]
        text = [line for line in lines if not line.lstrip().startswith(("*", "!", "|", "`", "```", "<", "["))]
        picture = re.search(r"\]\(images/([^)]+)\)", found["rest"])
        out[f"{found['paper']}-{found['name']}"] = {
            "title": found["title"].partition(": ")[2] or found["title"],
            "findings": " ".join(" ".join(text).replace("\\<", "<").replace("\\>", ">").split()),
            "size": found["size"],
            "thumbnail": picture.group(1) if picture else "",
        }
    return out


def write() -> None:
    """Write shelf.json and the thumbnails."""
    SHELF.mkdir(parents=True, exist_ok=True)
    entries: dict[str, dict[str, str]] = {}
    for page in sorted((ROOT / "docs" / "papers").glob("*2025.md")):
        entries |= shelf(page.read_text(encoding="utf-8"))
    for file in SHELF.glob("*.png"):
        file.unlink()
    for name in sorted({entry["thumbnail"] for entry in entries.values()} - {""}):
        image = Image.open(ROOT / "docs" / "papers" / "images" / name).convert("RGB")
        image = image.crop(ImageChops.difference(image, Image.new("RGB", image.size, "white")).getbbox())
        image.thumbnail((WIDTH, WIDTH))
        image.quantize(48).save(SHELF / name, optimize=True)
    (SHELF / "shelf.json").write_text(json.dumps(entries, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
