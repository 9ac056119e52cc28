"""Runs the command `cuwarden` in a terminal, whose contents a test reads through tmux."""

import itertools
import os
import subprocess
import time

from shimmed import COMMAND, PATIENCE_S


class Screen:
    """The command `cuwarden` in a terminal of 140 columns and 30 rows.

    `through` are words before the command, such as ("env", "NO_COLOR=1").
    """

    numbers = itertools.count()

    def __init__(self, workspace, *arguments, through=()):
        # A tmux server that has been told to end may still be running.
        self.socket = f"cuwarden-test-{os.getpid()}-{next(Screen.numbers)}"
        env = workspace.environment({"TERM": "screen", "LC_ALL": "C.UTF-8"}, shim=False, preload=())
        env.pop("TMUX", None)
        env.pop("NO_COLOR", None)
        self.env = env
        words = " ".join(map(str, (*through, COMMAND, *arguments)))
        # The shell behind the command shows the state in which the terminal is left.
        shell = f"echo before; {words}; echo status $?; stty -a | tr ';' '\\n' | grep -w icanon; exec cat"
        self.tmux("new-session", "-d", "-x", "140", "-y", "30", "/bin/sh", "-c", shell)

    def tmux(self, *arguments):
        return subprocess.run(
            ["tmux", "-u", "-L", self.socket, "-f", "/dev/null", *arguments],
            env=self.env, capture_output=True, text=True, timeout=PATIENCE_S, check=True,
        ).stdout  # fmt: skip

    def text(self, *options):
        """Returns the text on the screen; with the option "-e", also the control sequences of colours."""
        return self.tmux("capture-pane", "-p", *options)

    def wait_for(self, what):
        """Waits until what(text) is true for the text of the screen, and returns the text."""
        deadline = time.monotonic() + PATIENCE_S
        while not what(text := self.text()):
            assert time.monotonic() < deadline, text
            time.sleep(0.05)
        return text

    def keys(self, *keys):
        """Presses keys: names of tmux, such as "Enter", or text."""
        self.tmux("send-keys", *keys)

    def resize(self, columns, rows):
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def close(self):
        subprocess.run(["tmux", "-L", self.socket, "kill-server"], capture_output=True)
