"""Integration: a transformer's layers push a measure along the field."""

from measureflow.flows.adaptive import Dopri5, dopri5
from measureflow.flows.diagnostics import (
    cluster_count,
    entropy,
    interaction_energy,
    numerical_rank,
    support_radius,
)
from measureflow.flows.functionals import GradientFlow, InteractionEnergy, SinkhornEnergy, curvature_at_dirac
from measureflow.flows.integrate import integrate
from measureflow.flows.methods import RungeKutta, euler, heun, rk4
from measureflow.flows.schedules import NoFlow, Uniform, Unit
from measureflow.flows.solver import FixedStep, Solver
from measureflow.flows.sphere import OnSphere, Tangent
from measureflow.flows.state import Tokens
from measureflow.flows.trajectory import Outcome, Trajectory

__all__ = [
    "integrate", "Trajectory", "Outcome", "Tokens",
    "Uniform", "Unit", "NoFlow",
    "Solver", "FixedStep", "RungeKutta", "euler", "heun", "rk4", "Dopri5", "dopri5",
    "OnSphere", "Tangent",
    "entropy", "interaction_energy", "numerical_rank", "cluster_count", "support_radius",
    "SinkhornEnergy", "InteractionEnergy", "GradientFlow", "curvature_at_dirac",
]  # fmt: skip
