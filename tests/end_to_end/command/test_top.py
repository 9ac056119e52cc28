"""`cuwarden top`: a live view in a terminal, whose state it restores; a print-out elsewhere."""

import fcntl
import os
import pty
import re
import resource
import select
import signal
import struct
import subprocess
import termios
import time

import pytest

from shimmed import COMMAND, PATIENCE_S, program, start, until

CALL_SITES = ("holds_most", "grows_fastest", "allocates_most")


def order_of(text):
    """Returns the functions in the order in which the text lists them."""
    return [name for name in re.findall("|".join(CALL_SITES), text)]


# --- without a terminal


def test_without_a_terminal_it_prints_once(cuwarden, growing):
    for arguments in (("top", growing.pid), ("top", "--once", growing.pid)):
        done = cuwarden(*arguments)
        assert (done.returncode, done.stderr) == (0, "")
        assert "\033" not in done.stdout
        assert f"growing (pid {growing.pid}) running for" in done.stdout
        assert order_of(done.stdout)[0] == "holds_most"
        assert set(order_of(done.stdout)) == set(CALL_SITES)
        (line,) = [line for line in done.stdout.splitlines() if "holds_most" in line]
        memory = r"\s+4\.0 GiB\s+1\s+0\s+0\.0  device memory \(GPU 0\)\s+cudaMalloc\s+"
        assert re.match(memory + r"growing\.cpp:\d+ in holds_most", line)
        (line,) = [line for line in done.stdout.splitlines() if "grows_fastest" in line]
        assert re.search(r"\+\d+\.\d [KMG]iB/min ", line) and "pinned" in line
        assert "iB/s" not in done.stdout and "[grows" not in done.stdout
        assert "growing.cpp:" in line


def test_a_small_stack_is_enough(cuwarden, growing):
    """The names of functions are looked up in a thread, whose stack is as large as the limit says."""
    limit = (64 << 10, 64 << 10)
    done = cuwarden(
        "top", "--once", growing.pid,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, limit),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "growing.cpp:" in done.stdout


def test_all_live_processes_are_a_line_each(cuwarden, workspace, growing):
    other = start(workspace, [program("dying"), "wait"])
    try:
        other.stdout.readline()
        done = cuwarden("top")
        assert (done.returncode, done.stderr) == (0, "")
        lines = {int(line.split()[0]): line for line in done.stdout.splitlines()[3:]}
        assert lines[growing.pid].endswith("growing")
        assert "4.0 GiB" in lines[growing.pid]
        assert lines[other.pid].endswith("dying")
        assert "6.0 MiB" in lines[other.pid]
    finally:
        other.kill()
        other.wait(PATIENCE_S)
        other.stdout.close()


def test_a_process_without_a_ledger_gives_one_line(cuwarden):
    done = cuwarden("top", os.getpid())
    assert (done.returncode, done.stdout) == (2, "")
    assert "does not run under the shim" in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("arguments", [("x",), ("0",), ("-1",), ("1", "2"), ("--frobnicate",)])
def test_wrong_usage_gives_one_line(cuwarden, arguments):
    done = cuwarden("top", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("cuwarden: top: ") and len(done.stderr.splitlines()) == 1


# --- in a terminal


def test_the_view_is_redrawn_and_sorted_by_keys(screen, growing):
    view = screen("top", growing.pid)
    first = view.wait_for(lambda text: order_of(text)[:1] == ["holds_most"])
    assert "before" not in first
    view.wait_for(lambda text: text.splitlines()[0] != first.splitlines()[0])
    view.keys("g")
    view.wait_for(lambda text: order_of(text)[:1] == ["grows_fastest"] and "GROWTH*" in text)
    view.keys("a")
    view.wait_for(lambda text: order_of(text)[:1] == ["allocates_most"] and "ALLOCS/s*" in text)
    view.keys("b")
    view.wait_for(lambda text: order_of(text)[:1] == ["holds_most"] and "LIVE*" in text)
    view.keys("r")
    view.wait_for(lambda text: order_of(text)[-1:] == ["holds_most"] and "LIVE^" in text)
    assert growing.poll() is None


def test_q_gives_the_terminal_back(screen, growing):
    view = screen("top", growing.pid)
    view.wait_for(lambda text: "holds_most" in text)
    view.keys("q")
    text = view.wait_for(lambda text: "status 0" in text)
    assert text.startswith("before") and "holds_most" not in text
    view.wait_for(lambda text: re.search(r"(?<!-)\bicanon", text))


def test_top_says_that_the_process_has_ended_and_stays(screen, growing):
    view = screen("top", growing.pid)
    view.wait_for(lambda text: "holds_most" in text)
    growing.kill()
    growing.wait(PATIENCE_S)
    text = view.wait_for(lambda text: "has ended" in text)
    assert "holds_most" in text


def as_a_shell_starts_it():
    os.setpgid(0, 0)
    # The tests may run under nohup or in the background, where some signals are ignored.
    for number in signal.SIGHUP, signal.SIGINT, signal.SIGQUIT:
        signal.signal(number, signal.SIG_DFL)


class Pty:
    """The command on a pseudo-terminal, whose settings the test can read."""

    def __init__(self, workspace, *arguments):
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        self.before = termios.tcgetattr(self.slave)
        self.written = b""
        self.process = subprocess.Popen(
            [COMMAND, *map(str, arguments)],
            env=workspace.environment({"TERM": "xterm"}, shim=False, preload=()),
            stdin=self.slave, stdout=self.slave, stderr=self.slave,
            preexec_fn=as_a_shell_starts_it,
        )  # fmt: skip
        self.read_until(b"holds_most")
        assert termios.tcgetattr(self.slave) != self.before

    def read_until(self, what):
        deadline = time.monotonic() + PATIENCE_S
        while what not in self.written:
            assert time.monotonic() < deadline, self.written
            if select.select([self.master], [], [], 0.1)[0]:
                self.written += os.read(self.master, 65536)

    def expect_given_back(self):
        self.read_until(b"\033[?1049l")
        assert self.written.count(b"\033[?1049h") == self.written.count(b"\033[?1049l")
        assert self.written.rindex(b"\033[?25h") > self.written.rindex(b"\033[?25l")
        assert termios.tcgetattr(self.slave) == self.before

    def close(self):
        self.process.kill()
        self.process.wait(PATIENCE_S)
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def terminal(workspace, growing):
    opened = Pty(workspace, "top", growing.pid)
    yield opened
    opened.close()


@pytest.mark.parametrize(
    "number",
    # All signals that end a process by default; the last two represent the real-time signals.
    [
        *(getattr(signal, "SIG" + name) for name in (
            "HUP INT QUIT ILL TRAP ABRT BUS FPE USR1 SEGV USR2 PIPE ALRM TERM STKFLT XCPU XFSZ "
            "VTALRM PROF IO PWR SYS").split() if hasattr(signal, "SIG" + name)),
        signal.SIGRTMIN,
        signal.SIGRTMAX,
    ],
    ids=lambda number: number.name,
)
def test_a_signal_ends_it_as_signals_do_and_the_terminal_is_as_before(terminal, number):
    terminal.process.send_signal(number)
    assert terminal.process.wait(timeout=PATIENCE_S) == -number
    terminal.expect_given_back()


def test_a_stop_gives_the_terminal_back_until_it_goes_on(terminal):
    terminal.process.send_signal(signal.SIGTSTP)
    status = f"/proc/{terminal.process.pid}/status"
    until(lambda: re.search(r"^State:\s+T", open(status).read(), re.M), terminal.process)
    terminal.expect_given_back()
    terminal.written = b""
    terminal.process.send_signal(signal.SIGCONT)
    terminal.read_until(b"\033[?1049h")
    terminal.read_until(b"holds_most")
    os.write(terminal.master, b"q")
    assert terminal.process.wait(timeout=PATIENCE_S) == 0
    terminal.expect_given_back()


def test_after_a_stop_that_cannot_be_caught_it_takes_the_screen_again(terminal):
    terminal.process.send_signal(signal.SIGSTOP)
    termios.tcsetattr(terminal.slave, termios.TCSANOW, terminal.before)  # as the shell does
    terminal.written = b""
    terminal.process.send_signal(signal.SIGCONT)
    terminal.read_until(b"\033[?1049h")
    terminal.read_until(b"holds_most")
    assert termios.tcgetattr(terminal.slave) != terminal.before
    os.write(terminal.master, b"q")
    assert terminal.process.wait(timeout=PATIENCE_S) == 0
    assert termios.tcgetattr(terminal.slave) == terminal.before


def test_a_key_without_a_meaning_changes_nothing(terminal):
    os.write(terminal.master, b"x")
    for _ in range(2):  # the second drawing began after the key was read
        terminal.written = b""
        terminal.read_until(b"holds_most")
    assert terminal.process.poll() is None
    os.write(terminal.master, b"q")
    assert terminal.process.wait(timeout=PATIENCE_S) == 0


def test_top_ends_when_its_terminal_is_gone(workspace, growing):
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [COMMAND, "top", str(growing.pid)],
        env=workspace.environment({"TERM": "xterm"}, shim=False, preload=()),
        stdin=slave, stdout=slave, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    os.read(master, 10)
    os.close(master)
    assert process.wait(timeout=PATIENCE_S) is not None


# --- figures that add up, and lines that fit


def test_the_totals_above_are_the_sums_of_the_groups_below(cuwarden, growing):
    for _ in range(5):
        above, below = cuwarden("top", growing.pid).stdout.split("WHERE\n")
        kinds = re.findall(r"^(\w+(?: host)? memory(?: \(GPU \d+\))?) .* live in ([\d,]+)", above, re.M)
        assert [kind for kind, _ in kinds] == ["device memory (GPU 0)", "pinned host memory"]
        for kind, count in kinds:
            rows = [line.split() for line in below.splitlines() if f"  {kind} " in line]
            assert sum(int(row[2].replace(",", "")) for row in rows) == int(count.replace(",", ""))


@pytest.mark.parametrize("columns", [80, 140])
def test_eighty_columns_suffice_to_tell_programs_and_call_sites_apart(screen, growing, columns):
    one, all_of_them = screen("top", growing.pid), screen("top")
    for view in (one, all_of_them):
        view.resize(columns, 30)
    # The line and the function's name fit whole, and so do those of another function.
    text = one.wait_for(
        lambda text: re.search(r"growing\.cpp:\d+ in holds_most$", text, re.M)
        and len(re.findall(r"growing\.cpp:\d+ in \w+$", text, re.M)) > 1
    )
    assert all(len(line) <= columns for line in text.splitlines())
    all_of_them.wait_for(
        lambda text: re.search(rf"PROGRAM\n(.*\n)*[> ]\s*{growing.pid} .* growing$", text, re.M)
    )
