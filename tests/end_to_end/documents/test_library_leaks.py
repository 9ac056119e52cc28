"""The walk of docs/library-leaks.md: its commands, typed in their order, have the output that it shows.

The page's figures are compared with those that the sample prints about itself, too.
"""

import json
import os
import re
import shlex
import subprocess

import pytest

import shimmed

PAGE = (shimmed.SOURCE / "docs" / "library-leaks.md").read_text()
LEFT_OUT = "…"
# Text that differs from run to run, from build to build or from folder to folder.
VARYING = [
    (r"\b[\d.,]+ (?:ns|µs|ms|s|min)\b", "TIME"),
    (r"\+0x[0-9a-f]+", "+OFFSET"),
    (r"(?<= )\S*/samples/", "samples/"),
    (r"(?<=report: )\S*/", "FOLDER/"),
]


def steady(line):
    for pattern, word in VARYING:
        line = re.sub(pattern, word, line)
    return line


def steps():
    """Yields (command, lines of its output) for each command of the page."""
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *shown = step.rstrip("\n").split("\n")
            yield command, shown


class Shell:
    """A shell in an empty folder, as the page's reader has it."""

    def __init__(self, workspace):
        self.folder = workspace.folder / "walk"
        self.folder.mkdir()
        self.env = workspace.environment(shim=False, preload=())
        self.status = 0

    def type(self, command):
        command = command.replace("/path/to/cuwarden/build", shlex.quote(str(shimmed.BUILD)))
        export = re.fullmatch(r"export PATH=\$PWD/build:\$PATH", command)
        if export:
            self.env["PATH"] = f"{self.folder}/build:{os.environ['PATH']}"
            return ""
        done = subprocess.run(
            ["bash", "-c", f"(exit {self.status}); {command}"], env=self.env, cwd=self.folder, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=shimmed.PATIENCE_S,
        )  # fmt: skip
        self.status = done.returncode
        return done.stdout

    def report(self, name):
        return json.loads((self.folder / name).read_text())


@pytest.fixture(scope="module")
def walk(tmp_path_factory):
    """Follows the page once. Returns the shell, and (command, shown, output, status) of each step."""
    shell = Shell(shimmed.Workspace(tmp_path_factory.mktemp("page")))
    return shell, [(command, shown, shell.type(command), shell.status) for command, shown in steps()]


def output_of(walk, part):
    (output,) = [output for command, _, output, _ in walk[1] if part in command]
    return output


def facts_of(walk, report):
    """Returns the facts that the service printed in the run that wrote this report."""
    (line,) = re.findall(r'^\{"leaked":.*$', output_of(walk, f"--report {report} "), re.MULTILINE)
    return json.loads(line)


def test_each_command_has_the_output_that_the_page_shows(walk):
    assert len(walk[1]) >= 15
    for command, shown, output, _ in walk[1]:
        rest = [steady(line) for line in output.splitlines()]
        parts = [[]]
        for line in map(steady, shown):
            if line == LEFT_OUT:
                parts.append([])
            else:
                parts[-1].append(line)
        for number, part in enumerate(parts):
            starts = [i for i in range(len(rest) - len(part) + 1) if rest[i : i + len(part)] == part]
            assert starts, f"{command}: these lines are not in the output:\n" + "\n".join([*part, "--- output", output])
            assert number > 0 or not part or starts[0] == 0, f"{command}: its output begins otherwise:\n{output}"
            rest = rest[starts[0] + len(part) :]
        is_whole = not shown or shown[-1] != LEFT_OUT
        assert not is_whole or not rest, f"{command}: more was written than is shown:\n{output}"


def test_only_the_check_of_the_known_leak_fails(walk):
    failed = [command for command, _, _, status in walk[1] if status != 0]
    assert len(failed) == 1 and "--fail-on-leak=lost" in failed[0] and "ci.json" in failed[0]


@pytest.mark.parametrize("name", ["before.json", "more.json"])
def test_as_many_buffers_are_lost_as_the_service_says_that_pictures_were_refused(walk, name):
    facts, report = facts_of(walk, name), walk[0].report(name)
    assert facts["refused"] > 0
    assert sum(group["lost_count"] for group in report["leak_groups"]) == facts["refused"]
    assert sum(group["lost_bytes"] for group in report["leak_groups"]) == facts["refused_bytes"]


def test_the_next_version_refused_as_many_pictures_and_lost_nothing(walk):
    before, after = facts_of(walk, "before.json"), facts_of(walk, "after.json")
    assert after["refused"] == before["refused"]
    assert sum(group["lost_count"] for group in walk[0].report("after.json")["leak_groups"]) == 0


def test_the_copy_for_the_maintainers_has_the_build_of_the_library_and_no_host(walk):
    shell, _ = walk
    copied = shell.report("for-maintainers.json")
    note = subprocess.run(
        ["readelf", "-n", shimmed.SAMPLES / "libvendor_filter.so"], text=True, capture_output=True, check=True
    )
    (build_id,) = re.findall(r"Build ID: ([0-9a-f]+)", note.stdout)
    modules = {module["path"]: module["build_id"] for module in copied["modules"]}
    assert modules["libvendor_filter.so"] == build_id
    assert copied["process"]["host"] is None and copied["process"]["command_line"] == []
    assert str(shell.folder) not in (shell.folder / "for-maintainers.json").read_text()


def test_the_line_that_the_debug_file_gives_is_the_allocation(walk):
    _, leaks = output_of(walk, "--symbols").split("\nLEAKS: ")
    leaks, _ = leaks.split("\nMEMORY ")
    (number,) = re.findall(r"libraries/vendor_filter\.cpp:(\d+) +vendor_filter_sharpen\n", leaks)
    source = shimmed.SOURCE / "samples" / "libraries" / "vendor_filter.cpp"
    assert "cudaMalloc(&image" in source.read_text().splitlines()[int(number) - 1]


def test_the_librarys_stripped_file_has_names_of_its_interface_alone():
    library = shimmed.SAMPLES / "libvendor_filter.so"
    names = subprocess.run(["nm", "-D", "--defined-only", library], text=True, capture_output=True, check=True)
    assert set(re.findall(r" T (\w+)", names.stdout)) == {
        "vendor_filter_sharpen", "vendor_filter_memory", "vendor_filter_version",
    }  # fmt: skip
    sections = subprocess.run(["readelf", "-SW", library], text=True, capture_output=True, check=True)
    assert ".symtab" not in sections.stdout and ".debug" not in sections.stdout


def test_the_setting_that_treats_the_library_as_a_framework_names_the_callers_line(workspace):
    run = workspace.run([shimmed.sample("library_leak")], {"CUWARDEN_LIBRARIES": "libvendor_filter"})
    facts = run.last_line
    (group,) = [group for group in run.report["leak_groups"] if group["lost_count"]]
    assert re.fullmatch(rf".*/library_leak\.cpp:{facts['calling_line']} in store_upload", group["where"])
