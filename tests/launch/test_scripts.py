"""The scripts of launch/, against a gcloud, an sbatch and a curl that only pretend."""

import os
import pathlib
import shutil
import stat
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
LAUNCH = ROOT / "launch"
SCRIPTS = sorted([*LAUNCH.rglob("*.sh"), *LAUNCH.rglob("*.sbatch"), ROOT / "tests" / "run.sh"])

SETTINGS = {
    "PROJECT": "project",
    "ZONE": "us-east5-b",
    "BUCKET": "gs://bucket",
    "SERVICE_ACCOUNT": "me@project",
    "CONFIG": "configs/quick.py",
    "COUNT": "3",
}

# Keeps the state of every queued resource in a file, and what it was asked in another.
GCLOUD = r"""#!/usr/bin/env bash
echo "gcloud $*" >> "$FAKE/calls"
words="$1 $2 $3"
case "$*" in
  *"queued-resources create "*) name=$5; echo WAITING_FOR_RESOURCES > "$FAKE/state.$name" ;;
  *"queued-resources delete "*) name=$5; rm -f "$FAKE/state.$name" ;;
  *"queued-resources describe "*) cat "$FAKE/state.$5" 2>/dev/null || exit 1 ;;
  "storage ls "*) name=${3##*/}; [[ -e $FAKE/mark.$name ]] || exit 1 ;;
  "storage cp - "*) cat > "$FAKE/mark.${4##*/}" ;;
  "storage cp gs://"*) cp "$FAKE/code.tar.gz" "$4" ;;
  "storage cp "*) cp "$3" "$FAKE/code.tar.gz" ;;
esac
"""


class Machine:
    """A PATH whose first folder holds the pretenders."""

    def __init__(self, folder):
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.write("gcloud", GCLOUD)

    def write(self, name, text):
        path = self.bin / name
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def run(self, *command, code=0, **environment):
        environment = {"FAKE": str(self.folder), **environment}
        path = f"{self.bin}:{os.environ['PATH']}"
        result = subprocess.run(
            ["bash", *map(str, command)],
            env=os.environ | environment | {"PATH": path},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert result.returncode == code, result.stdout + result.stderr
        return result

    def tpu(self, script, *arguments, code=0, **environment):
        return self.run(
            LAUNCH / "tpu" / script, *arguments, code=code, **{**SETTINGS, **environment}
        )

    def calls(self, *words):
        """What gcloud was asked, of the calls with all of these words."""
        path = self.folder / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line for line in lines if all(word in line for word in words)]

    def state(self, name, value=None):
        path = self.folder / f"state.{name}"
        if value:
            path.write_text(value + "\n")
        return path.read_text().strip() if path.exists() else None

    def mark(self, name):
        (self.folder / f"mark.{name}").write_text("")


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


# --- all scripts --------------------------------------------------------------------------------


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_script_is_sound_bash(script):
    assert subprocess.run(["bash", "-n", script]).returncode == 0
    shellcheck = pathlib.Path(sys.executable).with_name("shellcheck")
    result = subprocess.run([shellcheck, "-x", script], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("script", ["create.sh", "run.sh", "babysit.sh", "status.sh", "delete.sh"])
def test_tpu_scripts_name_the_setting_that_is_missing(machine, script):
    settings = {key: value for key, value in SETTINGS.items() if key != "SERVICE_ACCOUNT"}
    result = machine.run(LAUNCH / "tpu" / script, code=1, **settings)
    assert "set SERVICE_ACCOUNT to" in result.stderr
    assert not machine.calls()


# --- TPU VMs ------------------------------------------------------------------------------------


def test_a_vm_is_one_spot_request_of_one_node_that_needs_nobody_to_log_in(machine):
    machine.tpu("create.sh", "1", FLAGS="--config.optim.steps=5000")
    (call,) = machine.calls("create")
    for word in (
        "create ib-bench-1 ",
        "--node-id=ib-bench-1",
        "--spot",
        "--service-account=me@project",
        "--accelerator-type=v6e-1",
        "ib-shard=1/3",
        "ib-config=configs/quick.py",
        "ib-flags=--config.optim.steps=5000",
        "startup-script=",
    ):
        assert word in call, call
    assert "--node-count" not in call and "ssh" not in call


def test_a_type_of_many_hosts_is_refused(machine):
    result = machine.tpu("create.sh", "0", code=2, ACCELERATOR="v6e-16")
    assert "v6e-16 has more than one host" in result.stderr


def test_dry_run_prints_and_asks_for_nothing(machine):
    told = machine.tpu("create.sh", "0", DRY_RUN="1").stdout
    assert told.startswith("+ gcloud compute tpus queued-resources create ib-bench-0")
    machine.state("ib-bench-0", "ACTIVE")
    told = machine.tpu("delete.sh", DRY_RUN="1").stdout
    assert "queued-resources delete ib-bench-0" in told
    assert not machine.calls("create") and not machine.calls("queued-resources delete")


def test_run_packs_what_is_committed_and_requests_all_vms(machine):
    repository = machine.folder / "repository"
    shutil.copytree(LAUNCH, repository / "launch")
    git = ["git", "-C", repository, "-c", "user.name=me", "-c", "user.email=me@here"]
    subprocess.run([*git, "init", "-q"], check=True)
    script = repository / "launch" / "tpu" / "run.sh"
    result = machine.run(script, code=2, **SETTINGS)
    assert "not committed" in result.stderr and not machine.calls()
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "all"], check=True)
    for index in range(3):
        machine.mark(f"ib-bench-{index}.done")
    machine.run(script, **SETTINGS)
    assert machine.calls("storage cp", "gs://bucket/ib-bench/launch/code.tar.gz")
    assert len(machine.calls("queued-resources create")) == 3
    names = subprocess.run(
        ["tar", "-tzf", machine.folder / "code.tar.gz"], capture_output=True, text=True
    ).stdout
    assert "launch/tpu/startup.sh" in names


def test_the_babysitter_makes_preempted_and_vanished_vms_again_and_leaves_the_others(machine):
    machine.state("ib-bench-0", "ACTIVE")
    machine.state("ib-bench-1", "SUSPENDED")
    # Its second look finds all done.
    machine.write(
        "sleep", '#!/usr/bin/env bash\nfor k in 0 1 2; do : > "$FAKE/mark.ib-bench-$k.done"; done\n'
    )
    told = machine.tpu("babysit.sh").stdout
    assert "ib-bench-1 is SUSPENDED: deleted and requested again" in told
    assert "ib-bench-2 is gone: requested again" in told
    assert len(machine.calls("queued-resources create")) == 2
    assert machine.calls("queued-resources delete ib-bench-1")
    # At the end nothing is left that costs money.
    assert [machine.state(f"ib-bench-{k}") for k in range(3)] == [None] * 3
    assert "0 of 3 shards gave up" in told


def test_the_babysitter_says_which_shards_gave_up(machine):
    for name in ("ib-bench-0.done", "ib-bench-1.done", "ib-bench-2.failed"):
        machine.mark(name)
    told = machine.tpu("babysit.sh", code=1).stdout
    assert "1 of 3 shards gave up, see gs://bucket/ib-bench/launch/" in told
    assert not machine.calls("queued-resources create")


def test_status_names_every_vm_and_asks_the_study(machine):
    machine.state("ib-bench-0", "ACTIVE")
    machine.mark("ib-bench-1.done")
    machine.write("ib_bench", '#!/usr/bin/env bash\necho "asked: $*"\n')
    told = machine.tpu("status.sh", IB_BENCH=str(machine.bin / "ib_bench")).stdout.splitlines()
    assert told == [
        "ib-bench-0 ACTIVE",
        "ib-bench-1 NONE (done)",
        "ib-bench-2 NONE",
        "asked: status --workdir=gs://bucket/ib-bench",
    ]


def test_delete_takes_what_is_there(machine):
    machine.state("ib-bench-0", "ACTIVE")
    machine.state("ib-bench-2", "WAITING_FOR_RESOURCES")
    machine.tpu("delete.sh")
    assert len(machine.calls("queued-resources delete")) == 2
    assert all("--force" in call for call in machine.calls("queued-resources delete"))


class Vm:
    """A VM whose metadata, package index and ib_bench pretend."""

    def __init__(self, machine, codes):
        self.machine = machine
        folder = machine.folder / "opt"
        (folder / ".venv" / "bin").mkdir(parents=True)
        machine.write("python3.11", "#!/usr/bin/env bash\n")
        machine.write("sleep", "#!/usr/bin/env bash\n")
        machine.write(
            "curl",
            "#!/usr/bin/env bash\nkey=${!#}\ncase ${key##*/} in\n"
            "ib-name) echo ib-bench-1 ;; ib-zone) echo zone ;; ib-shard) echo 1/3 ;;\n"
            "ib-workdir) echo gs://bucket/work ;; ib-config) echo configs/quick.py ;;\n"
            "ib-code) echo gs://bucket/code ;; ib-flags) echo --config.optim.steps=5 ;;\nesac\n",
        )
        subprocess.run(
            ["tar", "-czf", machine.folder / "code.tar.gz", "-C", ROOT, "setup.cfg"], check=True
        )
        (machine.folder / "codes").write_text("\n".join(map(str, codes)) + "\n")
        run = (
            '#!/usr/bin/env bash\necho "$*" >> "$FAKE/runs"\n'
            'code=$(head -1 "$FAKE/codes"); sed -i 1d "$FAKE/codes"; exit "${code:-0}"\n'
        )
        for name, text in (("python", "#!/usr/bin/env bash\n"), ("ib_bench", run)):
            path = folder / ".venv" / "bin" / name
            path.write_text(text)
            path.chmod(0o755)

    def boot(self, code):
        folder = self.machine.folder
        self.machine.run(
            LAUNCH / "tpu" / "startup.sh",
            code=code,
            IB_FOLDER=str(folder / "opt"),
            IB_LOG=str(folder / "log"),
        )
        return (folder / "runs").read_text().splitlines()


def test_a_vm_answers_its_shard_goes_on_after_75_and_deletes_itself(machine):
    runs = Vm(machine, codes=[75, 75, 0]).boot(code=0)
    assert len(runs) == 3
    assert runs[0] == (
        "run --platform=tpu --config=configs/quick.py --workdir=gs://bucket/work "
        "--shard=1/3 --config.optim.steps=5"
    )
    assert (machine.folder / "mark.ib-bench-1.done").exists()
    assert machine.calls("queued-resources delete ib-bench-1", "--force")


@pytest.mark.parametrize(
    ("codes", "tries"), [([74] * 9, 3), ([1] * 9, 3), ([2] * 9, 1), ([74, 75, 74, 74], 4)]
)
def test_a_vm_gives_up_after_three_fast_failures_and_deletes_itself(machine, codes, tries):
    runs = Vm(machine, codes).boot(code=1)
    assert len(runs) == tries
    assert (machine.folder / "mark.ib-bench-1.failed").exists()
    assert not (machine.folder / "mark.ib-bench-1.done").exists()
    assert machine.calls("queued-resources delete ib-bench-1")


# --- SLURM --------------------------------------------------------------------------------------

JOB = {
    "CONFIG": "configs/quick.py",
    "WORKDIR": "/shared/work",
    "SLURM_ARRAY_JOB_ID": "77",
    "SLURM_ARRAY_TASK_ID": "2",
    "SLURM_ARRAY_TASK_COUNT": "8",
    "SLURM_SUBMIT_DIR": str(ROOT),
}


@pytest.mark.parametrize(("code", "requeued"), [(0, False), (75, True), (1, False)])
def test_exit_code_75_alone_goes_back_to_the_queue(machine, code, requeued):
    machine.write("ib_bench", f'#!/usr/bin/env bash\necho "$*" >> "$FAKE/runs"\nexit {code}\n')
    machine.write("scontrol", '#!/usr/bin/env bash\necho "scontrol $*" >> "$FAKE/calls"\n')
    machine.run(
        LAUNCH / "slurm" / "array.sbatch",
        "--platform=gpu",
        code=code,
        IB_BENCH=str(machine.bin / "ib_bench"),
        **JOB,
    )
    assert (machine.folder / "runs").read_text() == (
        "run --config=configs/quick.py --workdir=/shared/work --shard=2/8 --platform=gpu\n"
    )
    assert machine.calls("scontrol requeue 77_2") == (["scontrol requeue 77_2"] if requeued else [])


def test_a_signal_reaches_the_study_and_its_exit_code_counts(machine):
    machine.write(
        "ib_bench",
        "#!/usr/bin/env bash\ntrap 'exit 75' TERM\nkill -TERM $PPID\n"
        "for ((k = 0; k < 100; k++)); do sleep 0.1; done\nexit 3\n",
    )
    machine.write("scontrol", '#!/usr/bin/env bash\necho "scontrol $*" >> "$FAKE/calls"\n')
    machine.run(
        LAUNCH / "slurm" / "array.sbatch", code=75, IB_BENCH=str(machine.bin / "ib_bench"), **JOB
    )
    assert machine.calls("scontrol requeue 77_2")


def test_submit_makes_an_array_from_zero(machine):
    machine.write("sbatch", '#!/usr/bin/env bash\necho "sbatch $*" >> "$FAKE/calls"\n')
    machine.run(
        LAUNCH / "slurm" / "submit.sh",
        "--gres=gpu:1",
        CONFIG="configs/quick.py",
        WORKDIR="/shared/work",
        TASKS="16",
        FLAGS="--platform=gpu",
    )
    assert machine.calls() == [
        "sbatch --array=0-15 --export=ALL --gres=gpu:1 launch/slurm/array.sbatch --platform=gpu"
    ]


# --- Ray ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("script", ["head.sh", "worker.sh"])
def test_a_cluster_needs_a_token(machine, script):
    environment = {"RAY_AUTH_TOKEN": ""}
    result = machine.run(LAUNCH / "ray" / script, "host", code=1, **environment)
    assert "set RAY_AUTH_TOKEN to the same secret everywhere" in result.stderr


def test_dry_run_prints_how_ray_would_be_started(machine):
    environment = {"RAY_AUTH_TOKEN": "secret", "DRY_RUN": "1", "RAY": "ray"}
    head = machine.run(LAUNCH / "ray" / "head.sh", **environment).stdout
    assert head.startswith("+ ray start --head --port=6379 --num-cpus=0")
    assert "--disable-usage-stats" in head and "secret" not in head
    worker = machine.run(LAUNCH / "ray" / "worker.sh", "10.0.0.1", **environment).stdout
    assert worker.startswith("+ ray start --address=10.0.0.1:6379")
