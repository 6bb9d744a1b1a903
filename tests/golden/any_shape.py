"""What a small `AnyShapeFlow` answers in float64: ``python tests/golden/any_shape.py`` writes any_shape.json anew.

Its weights and its set of rows are cosines, so that they are the same with every version of every package. Write the
file anew only when the flow is meant to answer differently: the shipped weights then have to be trained again.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import torch

from measureflow.models import AnyShapeConfig, AnyShapeFlow

FILE = Path(__file__).with_suffix(".json")
CONFIG = AnyShapeConfig(n_near=2, n_features=8, n_colours=4, n_messages=3, n_keys=3, hidden=8, n_layers=4)


def cosines(count: int, phase: float) -> torch.Tensor:
    return torch.tensor([math.cos(1.7 * i + 0.013 * i * i + phase) for i in range(count)], dtype=torch.float64)


def answer(dtype: torch.dtype = torch.float64) -> dict[str, list[float]]:
    """Logits and the norm of the gradient in each parameter."""
    torch.manual_seed(0)
    model = AnyShapeFlow(CONFIG).to(dtype)
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.copy_(0.4 * cosines(parameter.numel(), number).reshape(parameter.shape))
    rows = cosines(2 * 24 * 3, 0.5).reshape(2, 24, 3) + 4 * cosines(18, 0.1).reshape(2, 3, 3).repeat(1, 8, 1)
    said = model.together(rows.to(dtype))
    parts = (said.logits, said.noise, said.n_clusters, said.one_noise)
    torch.stack([part.square().mean() for part in parts]).sum().backward()
    gradients = {name: p.grad for name, p in model.named_parameters()}
    return {
        "logits": said.logits[:, :6, :6].flatten().tolist(),
        "noise": said.noise.flatten().tolist(),
        "n_clusters": said.n_clusters[:, :5].flatten().tolist(),
        "one_noise": said.one_noise.tolist(),
        **{f"gradient of {name}": [0.0 if g is None else g.norm().item()] for name, g in gradients.items()},
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(answer(), indent=1) + "\n")
