"""Claims are counted over comparable cells: what agrees, what does not, what nobody can say."""

import dataclasses

import pytest
from made_records import make_cell

from ib_bench.report import sheet
from ib_bench.report.claims import (
    RECURRENT,
    TRANSFORMERS,
    check_claims,
    claims_sheet,
    comparisons_sheet,
)
from ib_bench.results import Extrapolation

TRANSFORMER = {"name": "transformer", "layers": 2}
_DENSE = {"name": "dense_ssm"}


def counts(claim_id: str, *cells) -> tuple[int, ...]:
    """Agree, disagree, undecided, missing."""
    return tuple(claim(claim_id, *cells).counts.values())


def claim(claim_id: str, *cells):
    (found,) = [claim for claim in check_claims(cells) if claim.id == claim_id]
    return found


def test_all_observations_are_there_in_order_with_thresholds_beside_them():
    claims = check_claims([make_cell()])
    assert [claim.id for claim in claims] == [
        *("3.1", "3.2", "3.3", "3.4a", "3.4b", "3.4c", "3.5"),
        *("4.1", "4.2", "4.3a", "4.3b", "4.4", "4.5"),
    ]
    texts = {claim.id: claim.text for claim in claims}
    assert "(<= 1.5)" in texts["4.1"] and "(<= 0.67)" in texts["4.2"]
    assert "(>= 1.5)" in texts["4.3a"] and "(0.67 to 1.5)" in texts["4.3b"]
    assert ">= 0.5 over at least 5 pairs" in texts["4.5"]


def test_a_pair_agrees_disagrees_or_is_undecided_by_its_brackets():
    acot = make_cell(14, 13, fmt="acot", model=TRANSFORMER)
    below, above = (make_cell(*pair, fmt="cot", model=TRANSFORMER) for pair in ((13, 9), (20, 14)))
    overlapping = make_cell(15, 9, fmt="cot", model=TRANSFORMER)
    assert counts("3.1", acot, below) == (1, 0, 0, 0)
    assert counts("3.1", acot, above) == (0, 1, 0, 0)
    assert counts("3.1", acot, overlapping) == (0, 0, 1, 0)
    assert counts("3.1", acot) == (0, 0, 0, 1)
    assert counts("3.2", acot, below) == (0, 0, 0, 0)  # no recurrent model


def test_not_learned_is_larger_than_any_nstar_up_to_its_nmax_and_settles_nothing_with_its_like():
    learned = make_cell(820, 700, fmt="acot")
    not_learned = make_cell(None, 0, fmt="cot", max_size=820)
    assert counts("3.2", learned, not_learned) == (1, 0, 0, 0)
    assert counts("3.2", learned, dataclasses.replace(not_learned, max_size=500)) == (0, 0, 1, 0)
    assert counts("3.2", make_cell(None, 0, fmt="acot"), not_learned) == (0, 0, 1, 0)


def test_only_cells_that_differ_in_nothing_else_are_compared():
    acot = make_cell(10, 9, fmt="acot")
    for other in (
        {"length": 10},
        {"task": "modular_addition(7)"},
        {"distribution": "uniform"},
        {"model": {"hidden": 8}},
        {"optim": {"steps": 9}},
        {"grid": {"seeds": [1]}},
    ):
        assert counts("3.2", acot, make_cell(20, 19, fmt="cot", **other)) == (0, 0, 0, 2)
    padded = make_cell(20, 19, fmt="cot", data={"padded_length": 30, "evaluation_lengths": [9]})
    assert counts("3.2", acot, padded) == (1, 0, 0, 0)


def test_acot_with_fewer_labels_is_none_of_the_papers_formats():
    sparse = make_cell(10, 9, fmt="acot", data={"label_every": 2})
    assert counts("3.2", sparse, make_cell(20, 19, fmt="cot")) == (0, 0, 0, 1)


def test_every_recurrent_model_is_compared_with_every_transformer():
    cells = [make_cell(10, 9, model={"name": name}) for name in RECURRENT]
    cells += [make_cell(20, 19, model={"name": name}) for name in TRANSFORMERS]
    assert counts("3.3", *cells) == (len(RECURRENT) * len(TRANSFORMERS), 0, 0, 0)
    assert counts("3.3", *cells[:3]) == (0, 0, 0, 3)
    hybrid = make_cell(10, 9, model={"name": "hybrid"})
    assert counts("3.3", hybrid) == (0, 0, 0, 0)


def test_lengths_are_compared_with_the_next_one_there_is():
    cells = [
        make_cell(size, size - 1, fmt="acot", length=length)
        for length, size in ((5, 30), (20, 25), (10, 20))
    ]
    assert counts("3.4a", *cells) == (1, 1, 0, 0)  # 30, 20, 25
    assert counts("3.4a", cells[0]) == (0, 0, 0, 1)
    falls = [dataclasses.replace(one, cell=one.cell | {"model": TRANSFORMER}) for one in cells]
    falls = [
        dataclasses.replace(one, cell=one.cell | {"data": one.cell["data"] | {"format": "cot"}})
        for one in falls
    ]
    assert counts("3.4c", *falls) == (1, 1, 0, 0)


def test_the_order_of_distributions_is_two_comparisons():
    sizes = {"fixed": 10, "uniform": 10, "short_to_long": 9}
    cells = [
        make_cell(size, size - 1, fmt="acot", distribution=name) for name, size in sizes.items()
    ]
    assert counts("3.4b", *cells) == (1, 1, 0, 0)
    outcome = [make_cell(size, size - 1, distribution=name) for name, size in sizes.items()]
    assert counts("3.5", *outcome) == (1, 0, 0, 0)


def sharing(parts, joint, width=1, **more):
    """Fixed cells of length 2, 3, ... and the uniform cell of all, with brackets of this width."""
    cells = [
        make_cell(size, size - width, length=length, **more) for length, size in enumerate(parts, 2)
    ]
    low = joint - width if joint else 0
    return [*cells, make_cell(joint, low, length=len(parts) + 1, distribution="uniform", **more)]


@pytest.mark.parametrize(
    ("parts", "joint", "width", "expected"),
    [
        ((100, 200), 100, 1, (1, 0, 0, 0)),  # 3
        ((50, 50), 100, 1, (0, 1, 0, 0)),  # 1
        ((60, 100), 100, 1, (1, 0, 0, 0)),  # 1.6
        ((60, 100), 100, 10, (0, 0, 1, 0)),  # 1.42 to 1.76
        ((100, 200), None, 1, (0, 1, 0, 0)),  # < 300 / 821
    ],
)
def test_kappa_is_held_against_its_threshold_with_all_its_brackets_leave_open(
    parts, joint, width, expected
):
    assert counts("4.3a", *sharing(parts, joint, width)) == expected


def test_kappa_without_its_parts_is_missing_and_names_them():
    *parts, joint = sharing((100, 200, 300), 100)
    assert counts("4.3a", joint) == counts("4.3a", *parts[1:], joint) == (0, 0, 0, 1)
    (comparison,) = claim("4.3a", *parts[1:], joint).comparisons
    assert comparison.text.endswith("no finished cell for fixed L = 2")
    assert comparison.cells == (joint.cell_key, *(part.cell_key for part in parts[1:]))


def test_kappa_of_transformers_and_of_formats_has_claims_of_its_own():
    low = sharing((10, 10), 100, model=TRANSFORMER, fmt="cot")
    assert counts("4.1", *low) == counts("4.2", *low) == (1, 0, 0, 0)
    assert counts("4.3b", *low) == (0, 0, 0, 0)
    assert counts("4.3b", *sharing((50, 50), 100, fmt="cot")) == (1, 0, 0, 0)


def test_the_joint_nstar_of_the_dense_ssm_is_followed_over_lengths():
    cells = [
        make_cell(size, size - 1, fmt="acot", model=_DENSE, distribution="uniform", length=length)
        for length, size in ((5, 30), (10, 20))
    ]
    assert counts("4.4", *cells) == (1, 0, 0, 0)


def correlated(accuracies, kappas=(1, 2, 3, 4, 5)):
    cells = []
    for task, (accuracy, kappa) in enumerate(zip(accuracies, kappas, strict=False), 2):
        name = f"modular_addition({task})"
        seen = Extrapolation(820, 1e-3, 10, [4], [accuracy], [0.0], 2000)
        cells.append(make_cell(100 * kappa, 100 * kappa - 1, task=name, length=2, max_size=9999))
        cells.append(
            make_cell(
                **{"nstar": 100, "low": 99, "task": name, "length": 2, "distribution": "uniform"},
                extrapolation=seen,
            )
        )
    return cells


def test_kappa_and_accuracy_at_twice_the_length_are_rank_correlated():
    assert counts("4.5", *correlated((0.1, 0.2, 0.3, 0.5, 0.4))) == (1, 0, 0, 0)
    assert counts("4.5", *correlated((0.5, 0.4, 0.3, 0.2, 0.1))) == (0, 1, 0, 0)
    assert counts("4.5", *correlated((0.1, 0.2, 0.3, 0.4))) == (0, 0, 1, 0)
    (one,) = claim("4.5", *correlated((0.1, 0.2, 0.3, 0.5, 0.4))).comparisons
    assert one.text.startswith("rank correlation 0.90 over 5 pairs; of 5 joint cells 0 have no")
    assert counts("4.5", *sharing((100, 200), 100)) == (0, 0, 0, 1)


def test_the_sheets_hold_counts_with_a_legend_and_every_comparison_with_its_cells():
    cells = [make_cell(10, 9, fmt="acot"), make_cell(20, 19, fmt="cot")]
    claims = check_claims(cells)
    summary = sheet.to_markdown(claims_sheet(cells, claims))
    assert "| 3.2 | recurrent: N\\*(acot) \\< N\\*(cot) | 1 | 0 | 0 | 0 |" in summary
    assert "Budget: 3000 steps, batch 64." in summary
    text = sheet.to_csv(comparisons_sheet(claims))
    (line,) = [line for line in text.splitlines() if line.startswith("3.2,")]
    assert line.endswith(" ".join(cell.cell_key for cell in cells))
    assert "agree" in line and "(9, 10]" in line and "(19, 20]" in line
