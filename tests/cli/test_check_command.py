"""`ib_bench check` ends in 1 and names the failing point."""

import subprocess
import sys

LEAKING = """
import flax.linen as nn

def make_model(*, num_inputs, num_outputs, max_positions, hidden):
    class Bidirectional(nn.Module):
        @nn.compact
        def __call__(self, tokens_BT):
            x = nn.Embed(num_inputs, hidden)(tokens_BT)
            x = x + nn.Dense(hidden)(x[:, ::-1])
            return nn.Dense(num_outputs)(x)

    return Bidirectional()
"""


def test_a_model_that_looks_ahead_ends_in_1_with_the_positions(tmp_path):
    (tmp_path / "leaking.py").write_text(LEAKING)
    command = [sys.executable, "-m", "ib_bench", "check", "--config.model.hidden=8"]
    result = subprocess.run(
        [*command, "--config.model.name=leaking:make_model"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 1, result.stderr
    assert "✗ causality" in result.stdout
    last = result.stdout.splitlines()[-1]
    assert last.startswith("not kept: leaking:make_model-8: causality: the logits at position 1")
    assert "the token at position 3" in last and "training" not in result.stdout


def test_what_is_wrong_with_the_flags_ends_in_2(tmp_path):
    command = [sys.executable, "-m", "ib_bench", "check", "--config.model.name=nothere:make"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert result.returncode == 2
    assert "'nothere' cannot be imported" in result.stderr
    assert len(result.stderr.splitlines()) == 1
