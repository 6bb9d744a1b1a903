"""Try an installed measureflow, far from its sources: ``python -I tests/wheel/smoke.py ROOT``."""

import sys
from importlib.resources import files
from pathlib import Path

import numpy as np

import measureflow
from measureflow import FlowMixture
from measureflow.data import load_faithful, load_penguins
from measureflow.models import load_pretrained


def main() -> None:
    root, home = Path(sys.argv[1]), Path(measureflow.__file__).parent
    assert "site-packages" in home.parts, f"imported from {home}, not from what was installed"
    assert not home.is_relative_to(root / "src")
    mixture = FlowMixture().fit(load_faithful())
    assert len(mixture.labels_) == 272
    assert np.isfinite(mixture.cluster_centers_).all()
    assert len(load_penguins()) == 344
    names = load_pretrained.available()
    assert {"any-dimension", "flow-transformer"} <= set(names), names
    for name in names:
        load_pretrained(name)
    assert (files("measureflow") / "reproduce" / "published" / "zimin2025.csv").is_file()
    built = (root / "src" / "measureflow" / "explorer" / "static" / "index.html").is_file()
    assert not built or (files("measureflow") / "explorer" / "static" / "index.html").is_file()
    print(f"FlowMixture found {mixture.n_clusters_} clusters; models: {', '.join(names)}; all is well.")


if __name__ == "__main__":
    main()
