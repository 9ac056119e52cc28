"""The surroundings in which the commands of documents run."""

import os
import shutil
import stat
import subprocess

import pytest

import shimmed


@pytest.fixture
def shown(workspace):
    """Runs a line of shell where `app` is a program and `cuwarden run` has a simulated GPU."""
    for name in ("app", "tests"):
        shutil.copy(shimmed.sample("lost_on_throw"), workspace.work / name)
    (workspace.work / "train.py").write_text("print('trained')\n")
    tools = workspace.folder / "bin"
    tools.mkdir()
    wrapper = tools / "cuwarden"
    wrapper.write_text(
        "#!/bin/sh\n"
        'case "$*" in *--simulate*) ;; run\\ *)\n'
        f'  shift; exec {shimmed.COMMAND} run --simulate 16GiB "$@";;\n'
        f'doctor\\ *) export LD_LIBRARY_PATH={shimmed.DRIVER.parent};; esac\n'
        f'exec {shimmed.COMMAND} "$@"\n'
    )
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    (workspace.work / "build").symlink_to(shimmed.BUILD)
    env = {
        **workspace.environment(shim=False, preload=()),
        "PATH": f"{tools}:{os.environ['PATH']}",
        "PYTHONPATH": str(shimmed.SOURCE / "tools" / "python"),
        "TMPDIR": str(workspace.folder),
    }

    def run(line):
        return subprocess.run(
            ["sh", "-c", line], env=env, cwd=workspace.work, text=True, timeout=shimmed.PATIENCE_S,
            stdin=subprocess.DEVNULL, capture_output=True,
        )  # fmt: skip

    return run
