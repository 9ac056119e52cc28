"""`cuwarden top` in a terminal: moving, opening, sorting, filtering, folding, and sizes of terminals."""

import re

import pytest

from shimmed import PATIENCE_S, program, start

SHORTAGE = {"CUWARDEN_SIM_MEMORY": "8GiB", "CUWARDEN_SIM_OTHER_PROCESS": "3GiB", "CUWARDEN_WAIT": "1000s"}


def selected(text):
    """Returns the selected line of the screen; empty if there is none."""
    return next((line for line in text.splitlines() if line.startswith(">")), "")


def only(view, process):
    """Filters the list of processes by the pid: programs of other tests may run on this machine."""
    view.wait_for(lambda text: "PROGRAM" in text)
    view.keys("/", str(process.pid), "Enter")
    view.wait_for(lambda text: str(process.pid) in selected(text) and "Esc ends filter" in text)


def test_enter_opens_a_process_and_a_stack_and_escape_goes_back(screen, growing):
    view = screen("top")
    only(view, growing)
    view.keys("Enter")
    text = view.wait_for(lambda text: "in holds_most" in selected(text))
    assert text.startswith(f"growing (pid {growing.pid}) running for ")
    assert re.search(r"^GPU 0: .* of 16\.0 GiB in use \[#+\.+\]$", text, re.M)
    assert re.search(r"^ +live device memory 4\.0 GiB · .*context \d", text, re.M)
    assert re.search(r"^device memory \(GPU 0\) +4\.0 GiB +2 +4\.0 GiB +[▁-█]+$", text, re.M)
    view.keys("Down")
    view.wait_for(lambda text: "in grows_fastest" in selected(text))
    view.keys("Up", "Enter")
    text = view.wait_for(lambda text: re.search(r"growing\.cpp:\d+ in main$", text, re.M))
    assert re.search(r"^→ .*growing\.cpp:\d+ in holds_most$", text, re.M)
    assert re.search(r"^  .*in cudaMalloc  \(CUDA\)$", text, re.M)
    assert "cudaMalloc, device memory (GPU 0): 4.0 GiB live in 1, " in text
    view.keys("Escape")
    view.wait_for(lambda text: "in holds_most" in selected(text) and "WHERE" in text)
    view.keys("BSpace")
    view.wait_for(lambda text: text.startswith("cuwarden top: ") and str(growing.pid) in selected(text))
    assert growing.poll() is None


def test_a_process_that_was_named_leads_back_to_the_list_of_all(screen, growing):
    view = screen("top", growing.pid)
    view.wait_for(lambda text: "in holds_most" in selected(text))
    view.keys("Escape")
    view.wait_for(lambda text: text.startswith("cuwarden top: ") and str(growing.pid) in selected(text))


def test_columns_sort_and_the_order_is_reversed(screen, growing):
    view = screen("top", growing.pid)
    view.wait_for(lambda text: "in holds_most" in selected(text) and "LIVE*" in text)
    for title in ("COUNT*", "GROWTH*", "ALLOCS/s*", "ALLOCS*", "WHERE*", "LIVE*", "COUNT*"):
        view.keys("s")
        view.wait_for(lambda text: title in text)
    # The selection has stayed at the first line, which has the most live allocations now.
    view.wait_for(lambda text: "in grows_fastest" in selected(text))
    view.keys("<")
    view.wait_for(lambda text: "LIVE*" in text and "in holds_most" in selected(text))
    view.keys("I")
    view.wait_for(lambda text: "LIVE^" in text and "in allocates_most" in selected(text))


def test_a_filter_works_as_it_is_typed(screen, growing):
    view = screen("top", growing.pid)
    view.wait_for(lambda text: "in holds_most" in text and "in grows_fastest" in text)
    view.keys("/", "GROWS")
    text = view.wait_for(lambda text: "in holds_most" not in text)
    assert "in grows_fastest" in selected(text) and "filter: GROWS_" in text
    view.keys("BSpace", "BSpace", "BSpace", "BSpace", "BSpace")
    view.wait_for(lambda text: "in holds_most" in text and "filter: _" in text)
    view.keys("q", "Escape")
    view.wait_for(lambda text: "in holds_most" in text and "q quit" in text)


def test_stacks_are_folded_by_module_call_and_kind(screen, growing):
    view = screen("top", growing.pid)
    view.wait_for(lambda text: "in holds_most" in text)
    view.keys("m")
    view.wait_for(lambda text: "MODULE" in text and re.search(r"growing \(\d stacks\)$", text, re.M))
    view.keys("m")
    view.wait_for(lambda text: "cudaMallocHost (1 stack)" in text and "cudaMalloc (" in text)
    view.keys("m")
    view.wait_for(lambda text: "pinned host memory (1 stack)" in text and "device memory (GPU 0) (" in selected(text))
    view.keys("Enter")
    text = view.wait_for(lambda text: "WHERE, in device memory (GPU 0)" in text)
    assert "in holds_most" in text and "in grows_fastest" not in text
    view.keys("Escape")
    view.wait_for(lambda text: "device memory (GPU 0) (" in selected(text))
    view.keys("m")
    view.wait_for(lambda text: "in grows_fastest" in text)


def test_h_shows_the_keys(screen, growing):
    view = screen("top", growing.pid)
    view.wait_for(lambda text: "in holds_most" in text)
    view.keys("h")
    view.wait_for(lambda text: text.startswith("Keys of cuwarden top") and "q                quit" in text)
    view.keys("Enter")
    view.wait_for(lambda text: "in holds_most" in text)


def test_the_view_fits_the_terminal_as_soon_as_that_changes(screen, growing):
    view = screen("top", growing.pid)
    view.wait_for(lambda text: "in holds_most" in text)
    for columns, rows in ((20, 5), (60, 8), (80, 24), (200, 50), (33, 6)):
        view.resize(columns, rows)
        text = view.wait_for(
            lambda text: text.splitlines()[rows - 1 :] != []
            and text.splitlines()[-1].startswith("q quit")
            and selected(text).startswith(">  4.0 GiB ")
        )
        lines = text.splitlines()
        assert len(lines) == rows and lines[0].startswith("growing (pid")
        assert all(len(line) <= columns for line in lines)
    view.keys("Escape")
    view.resize(20, 5)
    view.wait_for(lambda text: text.startswith("cuwarden top: ") and len(text.splitlines()) <= 5)


def test_a_line_that_is_cut_shows_so_at_the_last_column(screen, growing):
    view = screen("top", growing.pid)
    view.wait_for(lambda text: "in holds_most" in text)
    view.resize(40, 20)
    text = view.wait_for(lambda text: text.startswith("growing (pid") and text.endswith("…\n"))
    first, *_, last = text.splitlines()
    assert len(first) == len(last) == 40 and first.endswith("…")


def test_an_ended_process_stays_until_it_is_left(screen, workspace, growing):
    view = screen("top")
    view.wait_for(lambda text: str(growing.pid) in text)
    other = start(workspace, [program("dying"), "wait"])
    only(view, other)
    other.kill()
    other.wait(PATIENCE_S)
    other.stdout.close()
    view.wait_for(lambda text: re.search(r"\bended\b", selected(text)))
    view.keys("Enter")
    view.wait_for(lambda text: text.startswith(f"dying (pid {other.pid}) has ended after "))
    view.wait_for(lambda text: "in allocate_two" in text)
    view.keys("Escape")
    view.wait_for(lambda text: "No process has the text of the filter." in text)
    view.keys("Escape")
    view.wait_for(lambda text: str(growing.pid) in text)


def test_a_request_that_waits_is_seen_in_the_list_and_in_its_process(screen, live):
    process = live(program("shortages"), "own", "room=10000", "more=900", env=SHORTAGE)
    view = screen("top")
    only(view, process)
    view.wait_for(lambda text: re.search(r"waits \d.* \(wait\)", selected(text)))
    view.keys("Enter")
    view.wait_for(
        lambda text: re.search(
            r"^waits for memory: cudaMalloc of .* \(GPU 0\), rung wait for \d.*: "
            r"shortages\.cpp:\d+ in shortages::allocate",
            text,
            re.M,
        )
    )


def test_without_utf_8_all_is_ascii(screen, growing):
    view = screen("top", growing.pid, through=("env", "LC_ALL=C"))
    text = view.wait_for(lambda text: "in holds_most" in text)
    assert text.isascii()
    assert re.search(r"^device memory \(GPU 0\) +4\.0 GiB +2 +4\.0 GiB +[_.:=+*#-]*#$", text, re.M)
    view.keys("Enter")
    text = view.wait_for(lambda text: re.search(r"^-> .*in holds_most$", text, re.M))
    assert text.isascii()


@pytest.mark.parametrize("through", [(), ("env", "NO_COLOR=1")], ids=["colour", "no_colour"])
def test_no_color_is_heeded_and_the_selection_is_seen_nevertheless(screen, growing, through):
    view = screen("top", growing.pid, through=through)
    view.wait_for(lambda text: "in holds_most" in selected(text))
    assert ("\033[" in view.text("-e")) == (through == ())


def test_on_a_terminal_without_controls_it_prints_once(screen, growing):
    view = screen("top", growing.pid, through=("env", "TERM=dumb"))
    text = view.wait_for(lambda text: "status 0" in text)
    assert text.startswith("before") and "holds_most" in text
