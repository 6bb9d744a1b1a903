"""What a wheel must hold and how large it may be: ``python tests/wheel/contents.py dist``."""

import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIMIT = 25e6  # bytes, without dependencies
PARTS = ("weights/*/*", "data/*.csv", "data/*.md", "reproduce/published/*", "explorer/static/**/*", "py.typed")


def wanted() -> set[str]:
    """Files of the working copy that are no code and must ship."""
    home = ROOT / "src" / "measureflow"
    return {f"measureflow/{path.relative_to(home)}" for part in PARTS for path in home.glob(part) if path.is_file()}


def main() -> int:
    folder = Path(sys.argv[1])
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        held = {info.filename: info.file_size for info in archive.infolist()}
    with tarfile.open(sdist) as archive:
        source = {"/".join(name.split("/")[2:]) for name in archive.getnames()}
    missing = sorted((wanted() - held.keys()) | (wanted() - source))
    for path in (wheel, sdist):
        print(f"  {path.name}: {path.stat().st_size / 1e6:.2f} MB")
    print(f"  the wheel holds {len(held)} files, {sum(held.values()) / 1e6:.2f} MB unpacked")
    strangers = sorted(name for name in held if not name.startswith(("measureflow/", "measureflow-")))
    heavy = [path.name for path in (wheel, sdist) if path.stat().st_size > LIMIT]
    for words, names in (("missing", missing), ("does not belong", strangers), ("too large", heavy)):
        for name in names:
            print(f"  {words}: {name}")
    return 1 if missing or strangers or heavy else 0


if __name__ == "__main__":
    sys.exit(main())
