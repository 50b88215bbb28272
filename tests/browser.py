"""A browser without a window, for the pages."""

import shutil
import subprocess

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def browse(url: str, *flags: str) -> tuple[str, str]:
    """Opens a page in a browser without a window; returns its elements and what it logged."""
    quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    quiet += ["--disable-component-update", "--no-first-run", "--enable-logging=stderr"]
    command = [CHROMIUM, *quiet, *flags, "--dump-dom", url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout, "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)
