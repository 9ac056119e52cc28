"""A memory cgroup of a test's own, with a limit.

The cgroup is made below the one that the tests run in, or below the nearest one above that passes the memory
controller on. So limits of the tests' own cgroup still hold.
"""

import os
import time
from pathlib import Path

import pytest

LIMIT = 64 << 20
MOUNT = Path("/sys/fs/cgroup")


def own_paths():
    """Returns the paths of this process's cgroups, from /proc/self/cgroup, by their controllers.

    "" is the key of the cgroup of version 2.
    """
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    return {controllers: path for _, controllers, path in (line.split(":", 2) for line in lines)}


def parent_folder():
    """Returns (folder, None) if a cgroup with a memory limit can be made there, else (None, reason)."""
    if os.geteuid() != 0:
        return None, "only root makes cgroups"
    for controllers, path in own_paths().items():
        if "memory" in controllers.split(","):
            return MOUNT / "memory" / path.lstrip("/"), ""
    folder = MOUNT / own_paths().get("", "/").lstrip("/")
    while folder != MOUNT.parent:
        control = folder / "cgroup.subtree_control"
        if control.exists() and "memory" in control.read_text().split():
            return folder, ""
        folder = folder.parent
    return None, "no cgroup above this one passes the memory controller on"


class Cgroup:
    """A cgroup whose memory is limited to `limit` bytes; skips the test if none can be made."""

    def __init__(self, limit=LIMIT):
        parent, why_not = parent_folder()
        if parent is None:
            pytest.skip(why_not)
        self.folder = parent / f"cuwarden-test-{os.getpid()}-{time.monotonic_ns()}"
        try:
            self.folder.mkdir()
        except OSError as error:
            pytest.skip(f"no cgroup can be made: {error}")
        try:
            if (self.folder / "memory.max").exists():
                self._limit({"memory.max": limit, "memory.swap.max": 0})
            else:
                self._limit({"memory.limit_in_bytes": limit, "memory.memsw.limit_in_bytes": limit})
        except OSError as error:
            self.remove()
            pytest.skip(f"no limit can be set: {error}")

    def _limit(self, files):
        for name, value in files.items():
            if (self.folder / name).exists():  # a kernel without swap has no limit of swap
                (self.folder / name).write_text(str(value))

    def entered_by(self, *command):
        """Returns a command that enters the cgroup and then runs `command`."""
        script = f'echo 0 > {self.folder}/cgroup.procs && exec "$@"'
        return ["/bin/sh", "-c", script, "sh", *map(str, command)]

    def remove(self):
        for _ in range(100):  # a dead process stays a member until the kernel has removed it
            try:
                self.folder.rmdir()
                return
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.05)
