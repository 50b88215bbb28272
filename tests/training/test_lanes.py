"""Lanes: a run depends on its own operands alone, and one program serves them all."""

import dataclasses

import chex
import jax
import numpy as np
import pytest
from run_operands import operands_of

from ib_bench.training import lanes as lanes_module
from ib_bench.training import run as run_module
from ib_bench.training.lanes import Lanes, Progress
from ib_bench.training.run import make_run


def make_lanes(study, num_runs=64, **lanes):
    spec = dataclasses.replace(study.lanes, **lanes)
    cell = study.cells[0]
    return Lanes(cell.program, spec, num_runs, operands_of(cell))


def train(lanes, runs, chunks=2):
    """Trains these runs (lane -> operands) and returns their Progress after the last chunk."""
    lanes.load(runs)
    for _ in range(chunks):
        progress = lanes.advance(runs)
    return progress


@pytest.fixture(scope="module")
def study(tiny_study):
    return tiny_study()


@pytest.fixture(scope="module")
def four_lanes(study):
    return make_lanes(study, strategy="map", devices=2, per_device=2)


@pytest.fixture(scope="module")
def alone(study):
    """A run with the machine to itself: one lane, one device."""
    lanes = make_lanes(study, strategy="map", devices=1, per_device=1)
    return train(lanes, {0: operands_of(study.cells[0])})[0]


def test_a_run_is_bitwise_the_same_in_every_lane_and_beside_any_neighbours(
    study, four_lanes, alone
):
    cell = study.cells[0]
    for lane in range(4):
        runs = {k: operands_of(cell, 3 + k, 10.0**-k, 77 + k) for k in range(4)}
        runs[lane] = operands_of(cell)
        assert train(four_lanes, runs)[lane] == alone


def test_a_run_is_bitwise_the_same_while_other_lanes_are_empty(study, four_lanes, alone):
    assert train(four_lanes, {3: operands_of(study.cells[0])})[3] == alone


def test_a_run_started_in_the_middle_of_others_is_bitwise_the_same(study, four_lanes, alone):
    cell = study.cells[0]
    train(four_lanes, {0: operands_of(cell, seed=5), 1: operands_of(cell, seed=6)}, chunks=3)
    four_lanes.load({1: operands_of(cell)})
    for _ in range(2):
        progress = four_lanes.advance([0, 1])
    assert progress[1] == alone
    assert progress[0].step == 5 * cell.optim.eval_every


@pytest.mark.parametrize("strategy", ["map", "vmap"])
@pytest.mark.parametrize("format_name", ["outcome", "acot", "cot"])
def test_a_run_is_evaluated_at_other_lengths_as_a_loop_would(tiny_study, strategy, format_name):
    """The oracle: sequences drawn anew, states by the table, the last state asked for."""
    study = tiny_study(data__format=(format_name,), data__evaluation_lengths=(3, 9))
    cell = study.cells[0]
    lanes = make_lanes(study, strategy=strategy, devices=2, per_device=2)
    train(lanes, {k: operands_of(cell, seed=k) for k in range(4)})
    seen = lanes.accuracy_at([1, 2])
    assert seen.keys() == {1, 2}
    model = run_module.make_program_model(cell.program)
    states = lanes.snapshot([1, 2])
    for row, lane in enumerate((1, 2)):
        params = jax.tree.map(lambda leaf, row=row: leaf[row], states.params)
        for accuracy, length in zip(seen[lane], (3, 9), strict=True):
            symbols = np.random.RandomState(0).randint(2, size=(4096, length))
            labels = cell.automaton.states(symbols)
            inputs = symbols
            if format_name == "cot":
                separator = np.full((4096, 1), 2)
                inputs = np.concatenate([symbols, separator, labels[:, :-1]], axis=1)
            logits = jax.jit(model.apply)(params, inputs)
            guesses = np.argmax(np.asarray(logits)[:, -1], axis=-1)
            expected = np.mean(guesses == labels[:, -1])
            assert accuracy == pytest.approx(expected, abs=0.08)  # four standard errors and more


def test_the_accuracy_at_other_lengths_is_the_same_in_every_lane(tiny_study):
    study = tiny_study(data__evaluation_lengths=(9,))
    lanes = make_lanes(study, strategy="map", devices=2, per_device=2)
    train(lanes, dict.fromkeys(range(4), operands_of(study.cells[0])))
    assert len({accuracy for (accuracy,) in lanes.accuracy_at(range(4)).values()}) == 1


def test_with_vmap_all_loops_but_one_run_without_asking_the_host(study):
    """The one walks the order of an epoch into [0, N), once for dozens of steps."""
    lanes = make_lanes(study, strategy="vmap", devices=1, per_device=3)
    loops = [line for line in lanes.program_text().splitlines() if " while(" in line]
    asking = [line for line in loops if "known_trip_count" not in line]
    assert len(loops) > 2
    assert len(asking) == 1 and "/data/" in asking[0]


def test_vmap_agrees_with_map(study, alone):
    lanes = make_lanes(study, strategy="vmap", devices=2, per_device=3)
    runs = {k: operands_of(study.cells[0], seed=10 * k + 10) for k in range(6)}
    np.testing.assert_allclose(train(lanes, runs)[0], alone, rtol=1e-4)


def test_a_diverging_lane_leaves_the_others_bitwise_alone(study, four_lanes, alone):
    cell = study.cells[0]
    runs = {0: operands_of(cell), 1: operands_of(cell, learning_rate=np.inf)}
    progress = train(four_lanes, runs)
    assert not np.isfinite(progress[1].train_loss)
    assert progress[0] == alone


def test_a_lane_that_diverged_serves_the_next_run_as_new(study, four_lanes, alone):
    train(four_lanes, {0: operands_of(study.cells[0], learning_rate=np.inf)})
    assert train(four_lanes, {0: operands_of(study.cells[0])})[0] == alone


def test_a_run_goes_on_bitwise_from_a_snapshot_in_another_lane(study, four_lanes):
    cell = study.cells[0]
    runs = {0: operands_of(cell), 3: operands_of(cell, seed=20)}
    train(four_lanes, runs, chunks=1)
    saved = four_lanes.snapshot([3, 0])
    whole = four_lanes.advance(runs)
    train(four_lanes, {k: operands_of(cell, seed=99) for k in range(4)}, chunks=1)
    four_lanes.restore({1: runs[3], 2: runs[0]}, saved)
    resumed = four_lanes.advance([1, 2])
    assert (resumed[1], resumed[2]) == (whole[3], whole[0])


def test_two_chunks_are_one_chunk_of_twice_the_steps(tiny_study):
    finals = []
    for eval_every, chunks in ((20, 2), (40, 1)):
        study = tiny_study(optim__eval_every=eval_every)
        lanes = make_lanes(study, strategy="map", devices=1, per_device=1)
        progress = train(lanes, {0: operands_of(study.cells[0])}, chunks)[0]
        finals.append((progress.step, progress.loss, progress.accuracy))
    assert finals[0] == finals[1]


def test_a_thousand_sizes_learning_rates_and_seeds_are_one_trace(tiny_study, monkeypatch):
    study = tiny_study(
        data__max_length=(4,),
        data__length_distribution=("fixed", "uniform", "short_to_long"),
        task__modulus=(7,),
        optim__steps=20,
        optim__eval_every=1,
    )
    build = lanes_module._POPULATIONS["map"]

    def counted(run):
        init, advance, accuracy = build(run)
        return init, chex.assert_max_traces(advance, n=1), accuracy

    chex.clear_trace_counter()
    monkeypatch.setitem(lanes_module._POPULATIONS, "map", counted)
    lanes = make_lanes(study, strategy="map", devices=2, per_device=2)
    sizes = iter(range(1, 1001))
    for chunk in range(250):
        cell = study.cells[chunk % len(study.cells)]
        lanes.load({k: operands_of(cell, next(sizes), 1e-3 / (k + 1), chunk) for k in range(4)})
        progress = lanes.advance(range(4))
        assert all(np.isfinite(report.train_loss) for report in progress.values())


def test_lanes_are_cut_until_they_fit_in_memory(study, monkeypatch, caplog):
    monkeypatch.setattr(lanes_module.device_axis, "free_memory", lambda device: 600_000)
    lanes = make_lanes(study, num_runs=2000, strategy="vmap", devices=1, per_device=1000)
    assert 1 <= lanes.per_device < 100
    assert "lanes per device instead of 1000" in caplog.text


def test_no_more_lanes_than_runs(study):
    lanes = make_lanes(study, num_runs=3, strategy="map", devices=2, per_device=8)
    assert lanes.num_lanes == 4


def test_idle_lanes_count_as_paid_for_only_where_they_cost_time(study, four_lanes):
    assert four_lanes.capacity([0, 1, 2, 3]) == 4
    assert four_lanes.capacity([0, 2]) == 2  # one on each device
    assert four_lanes.capacity([0, 1]) == 4  # the second device waits
    assert make_lanes(study, strategy="vmap", devices=1, per_device=2).capacity([0]) == 2


def test_more_devices_than_there_are_is_an_error_with_the_fix(study):
    with pytest.raises(ValueError, match="lanes.devices: 99 exceeds the 2 cpu devices"):
        make_lanes(study, devices=99)


def test_nothing_but_operands_and_reports_crosses_between_host_and_devices(study, four_lanes):
    train(four_lanes, {0: operands_of(study.cells[0])}, chunks=1)
    with jax.transfer_guard("disallow"):
        four_lanes.advance([0])


def test_a_loss_is_taken_at_the_best_evaluation(study):
    run = make_run(study.cells[0].program)
    operands = operands_of(study.cells[0])
    state = jax.jit(run.init)(operands)
    advance = jax.jit(run.advance)
    losses = []
    for _ in range(4):
        state = advance(state, operands)
        losses.append(float(state.loss))
    assert float(state.best_loss) == min(losses)
    assert int(state.best_step) == 20 * (1 + int(np.argmin(losses)))
    assert set(Progress._fields) <= set(state._fields)


@pytest.mark.parametrize("size", [1, 4, 5, 8, 9])
def test_a_small_set_in_few_rows_trains_as_it_does_in_full_batches(study, size):
    """The same mean over the same sequences, so the same losses up to the order of a sum."""
    program, operands = study.cells[0].program, operands_of(study.cells[0], size=size)
    assert study.cells[0].split.num_train >= 9

    def train_with(whole_sizes):
        run = make_run(program, whole_sizes)
        state = jax.jit(run.init)(operands)
        return jax.jit(run.advance)(state, operands)

    few, full = train_with((4, 8)), train_with(())
    chex.assert_trees_all_close(few, full, rtol=1e-4, atol=1e-6)


def test_the_rows_of_a_step_are_the_fewest_that_hold_the_set(study, monkeypatch):
    """A branch that is not taken would hide a set in more rows than it needs."""
    rows = []

    def note_rows(params, tokens_BT):
        jax.debug.callback(lambda: rows.append(tokens_BT.shape[0]))
        return model.apply(params, tokens_BT)

    model = run_module.make_program_model(study.cells[0].program)
    noted = model._replace(apply=note_rows)
    monkeypatch.setattr(run_module, "make_program_model", lambda program: noted)
    run = make_run(study.cells[0].program, (4, 8))
    for size, expected in [(1, 4), (4, 4), (5, 8), (8, 8), (9, 64)]:
        operands = operands_of(study.cells[0], size=size)
        state = jax.jit(run.init)(operands)
        rows.clear()
        jax.block_until_ready(jax.jit(run.advance)(state, operands))
        jax.effects_barrier()
        training_rows = rows[: study.cells[0].optim.eval_every]
        assert set(training_rows) == {expected}
