"""Makes a root folder with glibc and a shell only, of the oldest Debian that apt's sources offer.

Commands run in it without network and without rights. Seen from outside, the root is a plain folder.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

# Releases with glibc 2.28 or newer, the oldest first. The last one is the release that the project is
# built on: its root is bare, though not old.
CODENAMES = ("buster", "bullseye", "bookworm")
PACKAGES = ("libc6", "dash")
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
NOBODY = 65534


def mirrors():
    """Returns the servers from which this machine's apt takes packages."""
    said = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"],
        capture_output=True, text=True,
    )  # fmt: skip
    return list(dict.fromkeys(line for line in said.stdout.split() if line.endswith("/debian/")))


def download(mirror, codename, folder):
    """Downloads a release's packages into a folder, with an apt whose state is apart from the host's."""
    for part in ("state/lists/partial", "cache/archives/partial", "packages"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    signed = f"[signed-by={KEYRING}] " if KEYRING.exists() else ""
    (folder / "sources.list").write_text(f"deb {signed}{mirror} {codename} main\n")
    (folder / "status").touch()
    options = {
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State": folder / "state",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
        "APT::Architecture": "amd64",
        "APT::Sandbox::User": "",
        "Acquire::Languages": "none",
        "Acquire::Retries": 0,
        "Acquire::http::Timeout": 20,
        "Acquire::Check-Valid-Until": "false",
    }
    apt = ["apt-get"] + [f"-o{name}={value}" for name, value in options.items()]
    for command in (["update", "--error-on=any"], ["download", *PACKAGES]):
        done = subprocess.run(
            apt + command, cwd=folder / "packages", capture_output=True, text=True, timeout=300
        )
        if done.returncode != 0:
            return False
    return True


def unpack(folder, root):
    for package in (folder / "packages").glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, root], check=True)
    for name, mode in (("tmp", 0o1777), ("proc", 0o755), ("opt", 0o755)):
        (root / name).mkdir(exist_ok=True)
        (root / name).chmod(mode)


def make(folder):
    """Returns the path of the root, which is kept for the next run. Skips the test if none can be made."""
    for tool in ("apt-get", "dpkg-deb", "unshare"):
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool} to make a bare root with")
    ready = folder / "root"
    if ready.exists():
        return ready
    for codename in CODENAMES:
        for mirror in mirrors():
            shutil.rmtree(folder, ignore_errors=True)
            if download(mirror, codename, folder):
                unpack(folder, folder / "unpacking")
                (folder / "unpacking").rename(ready)
                (folder / "codename").write_text(codename)
                return ready
    pytest.skip(f"the package sources of this machine have none of {', '.join(CODENAMES)}")


ENTER = """
mount -t proc proc "$1/proc" && exec chroot $2 "$1" /bin/sh -c "cd /tmp; $3"
"""


def run(root, script):
    """Runs a shell script in the root. Skips the test if this machine does not permit it."""
    namespaces = ["unshare", "--net", "--mount", "--pid", "--fork"]
    user = f"--userspec={NOBODY}:{NOBODY}"
    if os.geteuid() != 0:  # in a user namespace this user is root; outside it stays the same user
        namespaces.append("--map-root-user")
        user = ""
    enter = ["sh", "-c", ENTER, "sh", root, user]
    if subprocess.run(namespaces + enter + ["exit 0"], capture_output=True).returncode != 0:
        pytest.skip("this machine allows no root and no network of a process's own")
    return subprocess.run(
        namespaces + enter + [script],
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
