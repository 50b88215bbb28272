"""A Ray cluster on this machine, of the scripts that users start one with."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

LAUNCH = pathlib.Path(__file__).parents[1] / "launch" / "ray"
_STARTED = "Ray runtime started"


class Cluster:
    """A head that works on nothing and nodes of one core; to be used in a `with`.

    Attributes:
      address: what `--ray_address` wants.
      token: the environment variables that let a driver in.
      folder: Ray's files, logs among them.
      head, nodes: the processes; each leads a process group of its own.
    """

    def __init__(self, num_nodes: int, seconds: float = 180):
        """Starts head and nodes and waits until all have joined.

        Raises:
          TimeoutError: one of them had not within `seconds`.
        """
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ray"))  # short: sockets lie in it
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"127.0.0.1:{port}"
        self.token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": os.urandom(32).hex()}
        ray = pathlib.Path(sys.executable).with_name("ray")
        self._environment = os.environ | self.token | {"PORT": str(port), "RAY": str(ray)}
        self.nodes = []
        try:
            self.head = self._start(
                "head.sh", f"--temp-dir={self.folder}", "--node-ip-address=127.0.0.1"
            )
            self._wait_for(1, seconds)
            for number in range(1, num_nodes + 1):  # one by one: on one machine they share ports
                self.nodes.append(self._start("worker.sh", "127.0.0.1", "--num-cpus=1"))
                self._wait_for(1 + number, seconds)
        except BaseException:
            self.close()
            raise

    def _start(self, script: str, *arguments: str) -> subprocess.Popen:
        with open(self.folder / "log", "a") as log:
            return subprocess.Popen(
                ["bash", str(LAUNCH / script), *arguments, "--block"],
                env=self._environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _wait_for(self, num_started: int, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while (self.folder / "log").read_text().count(_STARTED) < num_started:
            if time.monotonic() > deadline:
                raise TimeoutError((self.folder / "log").read_text())
            time.sleep(0.1)

    def workers(self) -> list[int]:
        """Ids of the processes that work on a task."""
        found = []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                title = (folder / "cmdline").read_bytes()
                if b"ray::_work" in title and str(self.folder) in os.readlink(folder / "fd/1"):
                    found.append(int(folder.name))
            except OSError:
                continue
        return found

    def logs(self) -> str:
        """What all workers said."""
        files = self.folder.glob("session_2*/logs/worker-*.err")
        return "".join(path.read_text() for path in files)

    def close(self) -> None:
        for process in (*self.nodes, self.head):
            kill_node(process)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_) -> None:
        self.close()


def kill_node(process: subprocess.Popen) -> None:
    """Kills all processes of a node at once, as a machine that vanishes."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
