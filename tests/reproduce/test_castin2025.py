"""The figures of Castin 2025 at their tiny size: written in full, and verdicts that follow the data."""

from dataclasses import replace

import pandas as pd
import pytest
import torch

from measureflow.attention import Attention, DotProduct
from measureflow.flows import Uniform, integrate
from measureflow.measures import Gaussian
from measureflow.reproduce import artefacts, reproduce
from measureflow.reproduce.castin2025 import ranks, section5
from measureflow.reproduce.castin2025.covariances import curves, panels, values
from measureflow.reproduce.castin2025.covariances.parameters import DIVIDED, softmax
from measureflow.reproduce.castin2025.fates import NOT_FOLLOWED, follow
from measureflow.reproduce.run import module_of
from reproduce.tables import read, the, words


def leaves(tables, panel, ending="finite time"):
    """One run of a panel leaves, or stays, against what was found."""
    rows = tables["fates"].index[tables["fates"]["panel"] == panel]
    tables["fates"].loc[rows[0], ["ending", "rank"]] = ending, 2


def set_all(tables, panel, **values):
    mine = tables["fates"]["panel"] == panel
    for name, value in values.items():
        tables["fates"].loc[mine, name] = value


def ranks_at_most_the_floor(tables):
    """Ranks as the paper has them."""
    tables["runs"]["rank"] = tables["runs"]["d"] // 2


def of_full_rank(tables):
    """No rank is lost."""
    tables["runs"]["rank"] = tables["runs"]["d"]


def far_from_the_limit(tables):
    """The flow goes elsewhere."""
    tables["runs"]["eigenvalue gap"] = 1.0


def all_to_zero(tables):
    """No V matters."""
    tables["values"]["ending"], tables["values"]["largest"] = "settled", 0.0


def one_of(tables, attention, kind, ending, largest):
    """One run under random V ends otherwise."""
    mine = tables["values"].query("attention == @attention and V == @kind").index[0]
    tables["values"].loc[mine, ["ending", "largest"]] = ending, largest


def only_on_the_way(tables):
    """No run has left or settled anywhere but at zero, and some are not there."""
    all_to_zero(tables)
    one_of(tables, "L2", "Gaussian", "still moving", 0.1)


# artefact: (claim, its verdict, a change of the data, the verdict then)
PERTURBED = {
    "fig1": [
        ("(a)", "holds", lambda t: leaves(t, "a"), "fails"),
        ("(b)", "holds", lambda t: set_all(t, "b", rank=2), "fails"),
        ("(c)", "corrected", lambda t: set_all(t, "c2", rank=2), "holds"),
        ("(c)", "corrected", lambda t: t["curves"].update(t["curves"].query("panel == 'c'")[["x"]] + 1), "fails"),
        ("(d)", "holds", lambda t: leaves(t, "d"), "fails"),
    ],
    "fig2": [
        ("(a)", "holds", lambda t: leaves(t, "a", "settled"), "fails"),
        ("(b)", "holds", lambda t: leaves(t, "b", "settled"), "fails"),
        ("(c)", "holds", lambda t: leaves(t, "c"), "fails"),
        ("(d)", None, lambda t: set_all(t, "d", ending="settled"), "fails"),
    ],
    "fig3": [
        ("V = I, d = 3", "corrected", ranks_at_most_the_floor, "holds"),
        ("V = I, d = 5", "corrected", of_full_rank, "fails"),
        ("V = I, d = 4", "holds", of_full_rank, "fails"),
        ("limit of Proposition 4.4", "holds", far_from_the_limit, "fails"),
    ],
    "fig4": [
        ("(a)", "holds", lambda t: leaves(t, "a") or set_all(t, "a", largest=1.0), "fails"),
        ("softmax: A + Aᵀ", "corrected", all_to_zero, "holds"),
        ("L2: A + Aᵀ", "corrected", lambda t: one_of(t, "L2", "positive", "settled", 0.1), "fails"),
        ("L2: A + Aᵀ", "corrected", lambda t: one_of(t, "L2", "positive", "infinite time", 1e4), "fails"),
        ("L2: A + Aᵀ", "corrected", lambda t: one_of(t, "L2", "positive", "still moving", 0.1), "corrected"),
        ("L2: A + Aᵀ", "corrected", only_on_the_way, "open"),
        ("L2, V = GGᵀ", "holds", lambda t: one_of(t, "L2", "positive", "still moving", 0.1), "open"),
        ("L2, V = GGᵀ", "holds", lambda t: one_of(t, "L2", "positive", "settled", 0.1), "fails"),
        ("L2, V = GGᵀ", "holds", lambda t: one_of(t, "L2", "positive", "infinite time", 1e4), "fails"),
        ("L2, V = GGᵀ", "holds", lambda t: one_of(t, "L2", "Gaussian", "settled", 0.1), "holds"),
    ],
    "fig5": [("(c)", "holds", lambda t: set_all(t, "c", rank=2), "fails")],
    "fig6": [
        ("(b)", None, lambda t: set_all(t, "b", ending="settled"), "fails"),
        ("(c)", None, lambda t: leaves(t, "c"), "fails"),
    ],
    "fig7": [
        ("caption, (a)", "holds", lambda t: set_all(t, "a", largest=1.0), "fails"),
        ("section 4.5", None, lambda t: t["values"].update(pd.DataFrame({"ending": ["settled"] * 12})), "fails"),
        ("caption, (b)", "fails", lambda t: set_all(t, "b", ending="finite time"), "holds"),
    ],
    "stability": [
        ("softmax", "holds", lambda t: t["pairs"].update(100 * t["pairs"][["growth"]]), "fails"),
        ("sigmoid", "holds", lambda t: t["pairs"].update(100 * t["pairs"][["radius"]]), "fails"),
        ("B.14", "holds", lambda t: t["masked"].update(1 / t["masked"][["difference of the fields"]]), "fails"),
    ],
    "section5": [
        ("Bures", "holds", lambda t: t["steps"].update(t["steps"][["error"]] ** 2), "fails"),
        ("twisted", "holds", lambda t: t["steps"].update(~t["steps"][["energy falls"]]), "fails"),
    ],
    "fig8": [("V = I, d = 5", "corrected", ranks_at_most_the_floor, "holds")],
}  # fmt: skip


@pytest.mark.parametrize("artefact", artefacts("castin2025"))
def test_every_figure_is_written_and_its_verdicts_follow_the_data(artefact, out):
    files = reproduce("castin2025", artefact, "tiny", out)
    assert {file.suffix for file in files} == {".csv", ".png", ".pdf", ".md"}
    assert all(file.stat().st_size > 0 for file in files)
    folder, module = out / "castin2025" / artefact, module_of("castin2025", artefact)
    for claim, before, change, after in PERTURBED[artefact]:
        tables = read(folder)
        found = the(words(module, tables), claim)
        assert before is None or found == before, claim
        change(tables)
        assert the(words(module, tables), claim) == after, claim
    for name, table in read(folder).items():
        ended = table.drop(columns=["blow_up_time"], errors="ignore").select_dtypes("number")
        ended = ended.drop(columns=[column for column in ended if column.startswith("eigenvalue")])
        assert ended.notna().all().all(), name


def test_steps_are_held_against_a_flow_that_came_to_its_end():
    field, mu = Attention(DotProduct(torch.eye(2).double())), Gaussian(torch.zeros(2).double(), torch.eye(2).double())
    with pytest.raises(RuntimeError, match=r"did not reach time 0\.8: Outcome\.OUT_OF_STEPS"):
        section5.flowed(field, mu, replace(section5.EXACT, max_steps=2))


def test_runs_that_turn_stiff_are_counted_apart():
    table = pd.DataFrame({"attention": "softmax", "V": ["positive"] * 3 + ["Gaussian"] * 3, "largest": 0.0})
    table["ending"] = ["settled", "settled", NOT_FOLLOWED, "finite time", "settled", NOT_FOLLOWED]
    rows = values.summary(table).set_index("V")
    assert rows["not_followed"].tolist() == [1, 1]
    assert rows["zero"].tolist() == [2, 1]
    any_v, positive = values.verdicts(table)
    assert (any_v.verdict, positive.verdict) == ("corrected", "holds")  # of the runs that were followed
    assert any_v.ours == "V Gaussian: 1 of 2 leave; V = GGᵀ: 0 of 2 leave"
    assert positive.ours == (
        "of 2 runs 2 fall below 0.01 of their start, 0 leave, 0 settle elsewhere, 0 are still on the way at time 100000"
        "; 1 more turn stiff and are not followed"
    )
    lost = table.assign(ending=NOT_FOLLOWED)
    assert [verdict.verdict for verdict in values.verdicts(lost)] == ["open"] * 2  # nothing was shown
    fates = pd.DataFrame({"panel": "a", "ending": ["settled", NOT_FOLLOWED], "rank": 0})
    counts = panels.summary({"fates": fates}).loc["a"]
    assert (counts["runs"], counts["converged"], counts["rank_0"], counts["not followed"]) == (2, 1, 1, 1)


def test_a_run_on_the_way_is_told_from_one_that_settled_elsewhere():
    table = pd.DataFrame(
        {"attention": "softmax", "V": ["positive"] * 3 + ["Gaussian"] * 2, "largest": [0, 0.13, 0.05, 2, 0]}
    )
    table["ending"] = ["settled", "still moving", "still moving", "finite time", "settled"]
    rows = values.tabulate(table).set_index("V")
    assert rows[["settled_elsewhere", "on_the_way"]].to_numpy().tolist() == [[0, 2], [0, 0]]
    assert "1 fall below 0.01 of their start, 0 leave, 0 settle elsewhere, 2 are still on the way" in (
        values.verdicts(table)[1].ours
    )
    assert "(largest: 0.13 of its start)" in values.verdicts(table)[1].ours
    table.loc[1, "ending"] = "settled"
    rows = values.tabulate(table).set_index("V")
    assert rows[["settled_elsewhere", "on_the_way"]].to_numpy().tolist() == [[1, 1], [0, 0]]
    assert [verdict.verdict for verdict in values.verdicts(table)] == ["fails"] * 2


def test_a_batch_ends_as_its_members_do_alone():
    Q, V, S0 = values.draw("Gaussian", 6)
    together = follow(values.softmax(Q, V), S0, 6, time=10.0, method=values.METHOD_OF_MANY)
    for i in range(6):
        mine = slice(i, i + 1)
        alone = follow(values.softmax(Q[mine], V[mine]), S0[mine], 6, time=10.0, method=values.METHOD_OF_MANY)
        assert alone.ending == together.ending[mine]
        torch.testing.assert_close(alone.limits, together.limits[mine], rtol=1e-6, atol=1e-9)


def test_of_many_steps_those_at_equal_parts_of_the_way_are_kept():
    angle = torch.cat([torch.zeros(50), torch.linspace(0, 1.5, 33), torch.full((40,), 1.5)]).double()  # it rests twice
    direction = torch.stack([angle.cos(), angle.sin()], -1)
    S = (direction[:, :, None] * direction[:, None, :])[:, None]
    times, kept = curves.evenly(torch.arange(len(S)).double()[:, None], S, 4)
    assert times[:, 0].tolist() == [0, 61, 72, 82]  # its way is the 32 steps between
    torch.testing.assert_close(kept[:, 0], S[[0, 61, 72, 82], 0])


def test_a_run_that_rests_at_a_saddle_is_drawn_evenly_and_where_it_was(monkeypatch):
    """Figure 6 (a): between two of the kept times, evenly spaced in their logarithm, such a run crosses the disc."""
    monkeypatch.setattr(curves, "ROLL", 100)  # thinned more than once
    S0 = panels.initial_covariances(5, 1.0)
    field = softmax(DIVIDED)
    drawn, kept = curves.follow_curves(field, S0, 40), follow(field, S0, 40)
    longest = [curves.way_along(found.covariances).diff(dim=0).amax() for found in (drawn, kept)]
    assert longest[0] < 0.25 * longest[1]
    torch.testing.assert_close(drawn.limits, kept.limits, rtol=1e-5, atol=1e-9)  # other kept times, other steps
    assert drawn.ending == kept.ending
    assert (drawn.times.diff(dim=0) >= 0).all()
    assert (drawn.times[-1] <= drawn.blow_up_time).all()
    start = Gaussian(torch.zeros_like(S0[..., 0]), S0)
    half = integrate(field, start, [drawn.times[20]], replace(ranks.METHOD, limit=1e6))[-1]
    torch.testing.assert_close(half.covariance, drawn.covariances[20], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("figure", ranks.BY_NAME.values())
def test_the_exact_limit_is_where_the_flow_goes_and_has_the_rank_of_the_kernel(figure):
    Q, V, S0 = ranks.draw_matrices(5, 4, "identity", torch.Generator().manual_seed(0))
    limit = ranks.exact_limit(Q, S0)
    assert torch.linalg.matrix_rank(limit, rtol=1e-9, hermitian=True).tolist() == [3] * 4  # the paper says 2 at most
    late = integrate(figure.attention(Q, V), Gaussian(torch.zeros(4, 5, dtype=S0.dtype), S0), [1e3], ranks.METHOD)[-1]
    later = integrate(figure.attention(Q, V), late, [9e3], ranks.METHOD)[-1]
    gaps = [torch.linalg.matrix_norm(mu.covariance - limit) for mu in (late, later)]
    assert (gaps[1] < 0.2 * gaps[0]).all()  # like 1/t: ten times longer, a tenth of the gap


def test_grids_are_those_of_the_authors_script():
    sides = {panel.name: len(panel.starts("paper")) for panel in module_of("castin2025", "fig2").PANELS}
    inside = lambda side: sum(  # noqa: E731
        u * u + w * w < 1 - 1e-9
        for u in torch.linspace(-1, 1, side).double()
        for w in torch.linspace(-1, 1, side).double()
    )
    assert sides["a"] == inside(40)
    assert sides["d"] == inside(30)
    assert len(module_of("castin2025", "fig1").PANELS[0].starts("paper")) == 100
    assert torch.linalg.eigvalsh(panels.initial_covariances(40, 1.0)).min() > 0


def test_heads_scaled_as_the_softmax_add_up_to_it_at_the_start():
    from measureflow.flows.state import velocity
    from measureflow.reproduce.castin2025.covariances.parameters import (
        GROWING,
        l2,
        l2_as_published,
        multi_head,
        multi_head_scaled,
    )

    mu = Gaussian(torch.zeros(2).double(), torch.eye(2).double() / 2)
    plain, scaled = (velocity(mu, field(GROWING))[1] for field in (multi_head, multi_head_scaled))
    torch.testing.assert_close(plain, 2**0.5 * scaled)  # softmax is quadratic in S and linear in A
    assert not torch.allclose(velocity(mu, l2(GROWING))[1], velocity(mu, l2_as_published(GROWING))[1])
    assert integrate(l2(GROWING), mu, Uniform(0.1, 2))[-1].covariance.trace() > 1
