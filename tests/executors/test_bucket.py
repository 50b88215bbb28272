"""A study whose workdir is in a bucket: gs:// through gcsfs and tensorstore, on loopback."""

import os
import re
import subprocess
import sys
import time

import fake_bucket
import pytest
from started import answers, start

from ib_bench import PROTOCOL_VERSION
from ib_bench.results import FailureRecord, Store

SLOWLY = "--config.out.checkpoint_minutes=0.02"


@pytest.fixture
def bucket():
    with fake_bucket.served() as served:
        yield served


@pytest.fixture
def reader(bucket, monkeypatch):
    """This process reads the bucket too."""
    for key, value in bucket[1].items():
        monkeypatch.setenv(key, value)
    import fsspec

    fsspec.filesystem("gcs").clear_instance_cache()
    from etils.epath import backend

    backend.fsspec_backend._get_filesystem.cache_clear()


def test_a_study_in_a_bucket_stops_goes_on_and_ends_as_one_in_a_folder(
    config, undisturbed, bucket, reader, tmp_path
):
    objects, environment = bucket[0].objects, bucket[1]
    workdir, log = "gs://bench/here/study", tmp_path / "log"
    with open(log, "w") as file:
        process = start(config, workdir, SLOWLY, environment=environment, log=file)
        deadline = time.monotonic() + 120
        while not any("checkpoints" in name for name in list(objects)):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.terminate()
        assert process.wait(timeout=120) == os.EX_TEMPFAIL
        assert start(config, workdir, SLOWLY, environment=environment, log=file).wait(300) == 0
    assert re.search(r"[1-9]\d* runs go on from a checkpoint", log.read_text())
    assert answers(workdir) == answers(undisturbed)
    names = {name.split("/")[2] for name in objects}
    assert names == {"cells", "probes", "studies", "nstar.md", "nstar.csv"}

    status = subprocess.run(
        [sys.executable, "-m", "ib_bench", "status", f"--workdir={workdir}"],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "4 cells: 4 done" in status.stdout


def test_a_record_is_one_object_written_at_once(bucket, reader):
    store = Store("gs://bench/study")
    store.prepare()
    before = bucket[0].requests["POST", "upload"]
    record = FailureRecord(PROTOCOL_VERSION, "cell_a", {}, "KeyError", "...", "host", {})
    store.write(record)
    assert store.failures() == [record]
    # gcsfs opens an upload and sends it: two requests, one object, no temporary name.
    assert bucket[0].requests["POST", "upload"] - before <= 2
    assert list(bucket[0].objects) == ["study/failures/cell_a.json"]
