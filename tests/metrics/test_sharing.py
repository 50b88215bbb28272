"""The sharing factor: its parts, its bounds, and how far it rests on a few seeds."""

import dataclasses
import math

import pytest
from made_records import make_cell, make_probe

from ib_bench.metrics import Bounds, find_sharing, sharing_interval


def make_cells(parts=(4, 20, 46), joint=35, **more):
    """Fixed cells of length 2, 3, ... and the uniform cell of all; None: not learned."""
    cells = [make_size(nstar, "fixed", length, **more) for length, nstar in enumerate(parts, 2)]
    return [*cells, make_size(joint, "uniform", len(parts) + 1, **more)]


def make_size(nstar, distribution, length, **more):
    low = 0 if nstar is None else nstar - 1
    return make_cell(nstar, low, distribution=distribution, length=length, **more)


def kappa(*arguments, **more) -> Bounds:
    (sharing,) = find_sharing(make_cells(*arguments, **more))
    return sharing.bounds


# --- which cells --------------------------------------------------------------------------------


def test_kappa_is_the_sum_over_single_lengths_by_the_joint_size():
    assert kappa().value == (4 + 20 + 46) / 35
    assert kappa().text == "2"


def test_parts_share_all_that_a_verdict_depends_on():
    cells = make_cells()
    for other in ({"fmt": "acot"}, {"task": "modular_addition(7)"}, {"model": {"hidden": 8}}):
        cells += make_cells(**other)[:2]  # parts without their joint cell
    cells += make_cells(optim={"steps": 99})[:2] + make_cells(grid={"seeds": [1]})[:2]
    (sharing,) = find_sharing(cells)
    assert sharing.parts == tuple(cells[:3])


def test_padding_evaluation_lengths_and_search_may_differ():
    short, *rest = make_cells()
    short.cell["data"] |= {"padded_length": 30, "evaluation_lengths": [4]}
    short = dataclasses.replace(short, search={"policy": "grid", "tolerance": 0})
    (sharing,) = find_sharing([short, *rest])
    assert sharing.bounds.value == 2


def test_parts_with_fewer_labels_are_no_parts():
    short, *rest = make_cells()
    short.cell["data"]["label_every"] = 2
    (sharing,) = find_sharing([short, *rest])
    assert sharing.missing == (2,)


def test_of_two_cells_for_a_part_the_one_padded_as_the_joint_is_taken():
    cells = make_cells()
    padded = make_size(9, "fixed", 2, data={"padded_length": 4}, cell_key="padded")
    for order in ([padded, *cells], [*cells, padded]):
        (sharing,) = find_sharing(order)
        assert sharing.parts[0] is padded  # the joint cell, L = 4, is padded to 4


def test_without_all_parts_there_is_no_number_and_the_missing_lengths_are_named():
    cells = make_cells()
    (sharing,) = find_sharing([cells[0], *cells[2:]])
    assert sharing.missing == (3,)
    assert sharing.bounds.text == "?" and sharing_interval(sharing, {}).text == "?"
    assert find_sharing(cells[:-1]) == find_sharing(cells[-1:]) == []


def test_each_joint_length_has_its_own_factor():
    cells = make_cells() + [make_size(11, "uniform", 3)]
    assert [sharing.bounds.value for sharing in find_sharing(cells)] == [2, 24 / 11]


# --- bounds -------------------------------------------------------------------------------------


def test_a_part_that_was_not_learned_makes_a_lower_bound():
    bounds = kappa((4, None, 46), 35, max_size=99)
    assert bounds == Bounds((4 + 100 + 46) / 35, math.inf)
    assert bounds.text == "> 4.29"


def test_a_saturated_part_makes_a_lower_bound():
    assert kappa((4, 20, 46), 35, max_size=46) == Bounds(2, math.inf)
    assert kappa((4, 20, 46), 35, max_size=46, limited_by="budget").value == 2


def test_a_joint_cell_that_was_not_learned_makes_an_upper_bound():
    bounds = kappa((4, 20, 46), None, max_size=139)
    assert bounds == Bounds(0, 70 / 140)
    assert bounds.text == "< 0.5"


def test_bounds_on_both_sides_leave_no_number():
    assert kappa((4, None, 46), None).text == "?"


def test_the_resolution_is_what_brackets_leave_open():
    cells = [make_cell(10, 7, length=2), make_cell(40, 29, distribution="uniform", length=2)]
    (sharing,) = find_sharing(cells)
    assert sharing.bounds.value == 10 / 40
    assert sharing.resolution == Bounds(8 / 40, 10 / 30)


# --- resampling ---------------------------------------------------------------------------------

RATE = 1e-3


def study(part: dict[int, dict[int, str]], joint: dict[int, dict[int, str]] | None = None):
    """Returns a sharing of L = 2 and its probes, from {size: {seed: outcome}} of both cells."""
    cells, probes = [], {}
    for distribution, sizes in (("fixed", part), ("uniform", joint or {10: {10: "solved"}})):
        learned = [size for size, runs in sizes.items() if "solved" in runs.values()]
        cell = make_size(min(learned, default=None), distribution, 2)
        cells.append(cell)
        probes[cell.cell_key] = [
            make_probe(size, {(RATE, seed): one for seed, one in runs.items()}, cell)
            for size, runs in sizes.items()
        ]
    (sharing,) = find_sharing(cells)
    return sharing, probes


def seeds(*outcomes: str) -> dict[int, str]:
    return {10 * (k + 1): outcome for k, outcome in enumerate(outcomes)}


def test_where_all_seeds_agree_the_interval_is_the_number():
    part = {5: seeds(*["exhausted"] * 3), 20: seeds(*["solved"] * 3)}
    assert sharing_interval(*study(part)) == Bounds(2, 2)


def test_an_nstar_that_one_of_three_seeds_solved_may_move_up_to_the_next_size():
    part = {
        5: seeds("exhausted", "exhausted", "exhausted"),
        10: seeds("solved", "exhausted", "stalled"),
        40: seeds("solved", "solved", "solved"),
    }
    assert sharing_interval(*study(part)) == Bounds(1, 4)


def test_a_resample_that_learns_nothing_is_a_bound():
    part = {820: seeds("solved", "exhausted", "diverged")}
    interval = sharing_interval(*study(part))
    assert interval.low == 82 and math.isinf(interval.high)
    joint = {820: seeds("solved", "exhausted", "diverged")}
    interval = sharing_interval(*study({41: seeds("solved")}, joint))
    assert interval.low == 0 and interval.high == pytest.approx(41 / 820)


def test_a_run_cancelled_after_a_sibling_is_no_evidence_of_failure():
    part = {10: seeds("solved", "cancelled", "cancelled"), 40: seeds(*["solved"] * 3)}
    assert sharing_interval(*study(part)) == Bounds(1, 1)


def test_a_seed_brings_all_of_its_learning_rates():
    sharing, probes = study({10: seeds("solved", "solved"), 40: seeds("solved", "solved")})
    part = sharing.parts[0]
    half = {(1e-3, 10): "solved", (1e-4, 10): "exhausted"}
    half |= {(1e-3, 20): "exhausted", (1e-4, 20): "solved"}
    probes[part.cell_key] = [make_probe(10, half, part)]
    assert sharing_interval(sharing, probes) == Bounds(1, 1)


def test_the_interval_is_the_same_each_time_and_does_not_depend_on_other_cells():
    part = {n: seeds(*["solved"] * k, *["exhausted"] * (9 - k)) for k, n in enumerate(range(8, 17))}
    sharing, probes = study(part)
    first = sharing_interval(sharing, probes)
    assert first == sharing_interval(sharing, probes | {"another": []})
    assert first.low == 0.9 < first.high < math.inf


def test_without_stored_runs_the_interval_is_the_recorded_value():
    sharing, probes = study({10: seeds("solved"), 40: seeds("solved")})
    assert sharing_interval(sharing, {}) == Bounds(1, 1)
    part = sharing.parts[0].cell_key
    without_nstar = probes | {part: probes[part][1:]}
    assert sharing_interval(sharing, without_nstar) == Bounds(1, 1)
