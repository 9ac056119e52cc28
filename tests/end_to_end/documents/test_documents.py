"""The documents: each link has a target, README is short, and the examples in them work."""

import fnmatch
import re
import shutil
import subprocess
import sys

import pytest

import shimmed
from pages import DOCUMENTS, blocks, check_shown, name_of


def anchors_of(path):
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_each_link_leads_to_a_file_and_a_heading_that_are_there(path):
    text = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)]+)\)", text):
        assert not target.startswith("http"), f"{target}: documents link to each other only"
        file, _, anchor = target.partition("#")
        to = (path.parent / file).resolve() if file else path
        assert to.exists(), target
        assert not anchor or anchor in anchors_of(to), target


# A path of the sources within a sentence, from the root; NAME stands for the name of something new.
SOURCE_PATH = re.compile(r"`((?:docs|include|reporters|runtime_hooks|samples|shim|tests|tools)/[\w./*-]+)`")
# A source that is named alone, or by the last folders of its path.
ROOM_PATH = re.compile(r"`((?:[\w*-]+/)*[\w*-]+\.(?:hpp|cpp|def|h|py|S|map))`")


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_each_path_that_a_document_names_is_there(path):
    named = [name.rstrip("/") for name in SOURCE_PATH.findall(path.read_text()) if "NAME" not in name]
    assert [name for name in named if not any(shimmed.SOURCE.glob(name))] == []


FOLDERS_OF_SOURCES = ("docs", "include", "reporters", "runtime_hooks", "samples", "shim", "tests", "tools")
ALL_SOURCES = [
    f"/{file.relative_to(shimmed.SOURCE)}"
    for folder in FOLDERS_OF_SOURCES
    for file in (shimmed.SOURCE / folder).rglob("*.*")
]


def is_a_source(name):
    return bool(fnmatch.filter(ALL_SOURCES, f"*/{name}"))


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_each_source_that_a_document_names_within_its_room_is_there(path):
    named = [name for name in ROOM_PATH.findall(path.read_text()) if "NAME" not in name]
    assert [name for name in named if not is_a_source(name)] == []


def test_readme_is_read_in_one_sitting():
    assert len((shimmed.SOURCE / "README.md").read_text().splitlines()) < 150


def alike(text):
    """Returns the text in one line, with the same words in place of folders, hosts, pids, times and durations. So it is
    for the share of allocations that stay, which is judged by times.
    """
    text = re.sub(r"/\S*/(?=cuwarden-)|\S*/(?=samples/)", "", " ".join(text.split()))
    text = re.sub(r"-\S+-\d+\.json", "-HOST-PID.json", text)
    text = re.sub(r"\d\d:\d\d:\d\d", "TIME", text)
    text = re.sub(r"1 in \d+ is never", "1 in N is never", text)
    return re.sub(r"[\d.]+ (ns|µs|ms|s)\b", "DURATION", text)


@pytest.mark.parametrize("heading", ["A leak", "Out of memory"])
def test_the_readme_shows_what_the_command_says(heading, shown):
    (section,) = re.findall(rf"^## {heading}\n(.*?)^## ", (shimmed.SOURCE / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    (output,) = blocks("", section)
    (command,) = re.findall(r"`(cuwarden run [^`]*)`[^`]*```", section)
    run = shown(command)
    parts = re.split(r"^…$", output, flags=re.MULTILINE)
    assert len(parts) == 2
    check_shown("\n".join(map(alike, parts)), alike(run.stderr))


@pytest.mark.parametrize("page, schema", [("report", "report"), ("merged-report", "merged")])
def test_the_page_of_the_reports_fields_is_made_from_the_schema(page, schema):
    made = subprocess.run(
        [shimmed.SOURCE / "tools" / "document_report.py", shimmed.SOURCE / "reporters" / f"{schema}.schema.json"],
        text=True, capture_output=True, check=True,
    )  # fmt: skip
    assert (shimmed.SOURCE / "docs" / f"{page}.md").read_text() == made.stdout


def test_the_verdicts_of_the_schema_are_made_from_the_list_of_verdicts(tmp_path):
    schema = shimmed.SOURCE / "reporters" / "report.schema.json"
    made = tmp_path / "schema.json"
    shutil.copy(schema, made)
    verdicts = shimmed.SOURCE / "reporters" / "verdicts" / "verdicts.def"
    subprocess.run([shimmed.SOURCE / "tools" / "write_verdicts.py", verdicts, made], check=True)
    assert made.read_text() == schema.read_text(), "reporters/report.schema.json: run tools/write_verdicts.py"


def test_the_page_of_settings_is_made_from_the_list_of_settings():
    made = subprocess.run(
        [shimmed.SOURCE / "tools" / "document_settings.py", shimmed.SOURCE / "runtime_hooks/core/settings/settings.def"],
        text=True, capture_output=True, check=True,
    )  # fmt: skip
    assert (shimmed.SOURCE / "docs" / "settings.md").read_text() == made.stdout


def test_the_page_of_commands_names_each_format_of_export_and_no_other():
    rows = (shimmed.SOURCE / "reporters" / "exports" / "exports.def").read_text()
    formats = set(re.findall(r"^EXPORT\((\w+),", rows, re.MULTILINE))
    page = (shimmed.SOURCE / "docs" / "commands.md").read_text()
    (row,) = re.findall(r"^\| `cuwarden export .*", page, re.MULTILINE)
    named = set(re.findall(r"`(\w+)`", row))
    assert named >= formats, f"docs/commands.md lacks formats of `cuwarden export`: {formats - named}"
    assert named == formats, f"docs/commands.md names formats that `cuwarden export` lacks: {named - formats}"


def shown_defaults():
    page = (shimmed.SOURCE / "docs" / "settings.md").read_text()
    return dict(re.findall(r"^\| `(CUWARDEN_\w+)` \| (.*?) \|", page, re.MULTILINE))


def amount(text):
    """Returns the time or size in the smallest unit; None for another text."""
    units = {"": 1, "ms": 1, "s": 1000, "m": 60_000, "KiB": 1024, "GiB": 1 << 30}
    parts = re.fullmatch(r"(\d+)(ms|s|m|KiB|GiB|)", text)
    return parts and int(parts[1]) * units[parts[2]]


def test_a_process_without_settings_has_the_defaults_that_the_page_shows(workspace):
    nothing_set = {
        name: None
        for name in ("CUWARDEN_REPORT", "CUWARDEN_LEDGER_DIR", "CUWARDEN_SYMBOL_TIME", "CUWARDEN_SYNC_TIMEOUT")
    }
    run = workspace.run([shimmed.program("allocate"), "1", "5000"], nothing_set)
    in_force = {row["name"]: row["value"] for row in run.report["settings"]}
    shown = shown_defaults()
    assert shown.keys() == in_force.keys() and len(shown) > 10
    for name, default in shown.items():
        value, code = in_force[name], default.strip("`")
        if code == default:
            assert not value, f"{name}: the default is {default}, and {value} is in force"
        else:
            assert value == code or amount(value) == amount(code) is not None, f"{name}: {value}, not {code}"


def commands_by_verdict():
    """Yields (verdict, options of `cuwarden run`, sample with its arguments) for each verdict of the table."""
    page = (shimmed.SOURCE / "docs" / "rescue.md").read_text()
    for verdicts, options, samples in re.findall(r"^\| (`\w+`.*?) \| `cuwarden run (.*?)-- .*\| (.*?) \|$", page, re.MULTILINE):
        yield from (
            (verdict, options, sample)
            for verdict, sample in zip(re.findall("`(.*?)`", verdicts), re.findall("`(.*?)`", samples), strict=True)
        )


@pytest.mark.parametrize("verdict, options, sample", commands_by_verdict())
def test_the_command_for_a_verdict_serves_the_request_of_its_sample(verdict, options, sample, shown):
    # The neighbour leaves after a second, and the field is a tenth larger than the device's memory.
    argument = {"neighbour": " 1", "oversubscribe": " 110"}.get(sample, "")
    program = f"build/samples/{sample}{argument}"
    refused = shown(f"cuwarden run --simulate 2GiB --pool off -- {program}")
    assert refused.returncode == 0 and f"({verdict})" in refused.stderr, refused.stderr
    served = shown(f"cuwarden run --simulate 2GiB {options}-- {program}")
    assert served.returncode == 1 and "was to fail, and was served" in served.stderr, served.stderr


@pytest.mark.parametrize("size, status", [("2GiB", 1), ("16GiB", 0)])
def test_the_request_of_churn_is_served_by_default_on_a_small_device(size, status, shown):
    # A loaded machine may need longer to copy memory than the program is paused by default.
    run = shown(f"cuwarden run --simulate {size} --mesh-pause 1m -- build/samples/churn")
    assert run.returncode == status, run.stderr


def test_the_table_of_commands_by_verdict_is_read():
    assert len(list(commands_by_verdict())) >= 6


RECLAIMERS = (shimmed.SOURCE / "docs" / "reclaimers.md").read_text()


def test_the_example_of_a_reclaimer_in_c_compiles(tmp_path):
    (example,) = blocks("c", RECLAIMERS)
    (tmp_path / "my_cache.h").write_text(
        "struct my_cache;\nsize_t my_cache_trim(struct my_cache *, int device, size_t bytes);\n"
    )
    (tmp_path / "example.c").write_text(example)
    flags = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{shimmed.SOURCE / 'include'}"]
    subprocess.run(["cc", *flags, tmp_path / "example.c"], check=True)


def test_the_example_of_a_reclaimer_in_python_runs(shown):
    (example,) = blocks("python", RECLAIMERS)
    run = shown(f"python3 - <<'END'\nmy_cache = None\n{example}END")
    assert run.returncode == 0, run.stderr


# A library that leaks where a file is missing, for the page's tests.
MY_LIBRARY = """
import ctypes
cudart = ctypes.CDLL("libcudart.so.13")
cudart.cudaMalloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]

class Image:
    def __init__(self, memory):
        self.memory = memory

    def close(self):
        assert cudart.cudaFree(self.memory) == 0

def load(path):
    memory = ctypes.c_void_p()
    assert cudart.cudaMalloc(ctypes.byref(memory), 4 << 20) == 0
    return None if "missing" in path else Image(memory)
"""


def test_the_page_on_tests_that_leak_shows_what_is_said(shown, workspace):
    page = (shimmed.SOURCE / "docs" / "leaking-tests.md").read_text()
    (command,), (tests,) = blocks("bash", page), blocks("python", page)
    entry, last = blocks("text", page)
    (workspace.work / "my_library.py").write_text(MY_LIBRARY)
    (workspace.work / "test_cache.py").write_text(tests)
    command = command.replace("tools/python", str(shimmed.SOURCE / "tools" / "python"))
    run = shown(command.replace(" python3 ", f" {sys.executable} "))
    said = (run.stdout + run.stderr).replace(f"{workspace.work}/", "")
    assert run.returncode == 1 and "2 passed" in said
    assert said.splitlines()[-1] == last.strip()
    check_shown(entry, said)  # the versions of Python and pytest say how far columns are apart


def test_the_listener_that_the_page_shows_compiles(tmp_path):
    (example,) = blocks("cpp", (shimmed.SOURCE / "docs" / "leaking-tests.md").read_text())
    (tmp_path / "example.cpp").write_text(example)
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{shimmed.SOURCE / 'include'}"]
    subprocess.run(["c++", *flags, tmp_path / "example.cpp"], check=True)


def test_the_script_against_new_leaks_passes_and_fails_as_its_page_says(shown, workspace):
    page = (shimmed.SOURCE / "docs" / "leaks-in-ci.md").read_text()
    (script, preloaded, with_status) = blocks("bash", page)
    (write, _) = blocks("sh", page)
    (workspace.work / "check.sh").write_text(script)
    (workspace.work / "known.supp").write_text("")

    def take(sample):
        shutil.copy(shimmed.sample(sample), workspace.work / "tests")

    def check():
        done = shown("sh check.sh")
        return done.returncode, done.stderr.splitlines()[-1], (workspace.work / "leaks.xml").read_text()

    (workspace.work / "libvendor_filter.so").symlink_to(shimmed.SAMPLES / "libvendor_filter.so")
    take("lost_on_throw")
    assert shown(write).returncode == 0
    for _ in range(3):
        assert check()[:2] == (0, "OK: 1 leak, none new")
    take("library_leak")
    status, line, results = check()
    assert (status, line) == (1, "FAIL: 3 leaks, 3 new: vendor_filter_sharpen in libvendor_filter.so")
    assert 'failures="3"' in results and "vendor_filter_sharpen" in results
    (patterns,) = re.findall(r"```\n([^`]*leak:[^`]*)```", page)
    (workspace.work / "known.supp").write_text(patterns)
    (workspace.work / "check.sh").write_text(script.replace("--baseline", "--suppressions known.supp --baseline", 1))
    status, line, results = check()
    assert (status, line) == (0, "OK: no leaks, none new")
    assert 'failures="0"' in results

    def preload(block):
        shim = f'"{shimmed.SHIM}:{shimmed.DRIVER}:{shimmed.RUNTIME}"'
        return shown(block.replace("/path/to/libcuwarden.so", shim))

    (workspace.work / "reports").mkdir()
    checked = preload(preloaded)
    assert checked.returncode == 1 and "\nFAIL: 3 leaks, 3 new: " in checked.stdout
    assert preload(with_status).returncode == 0
    (workspace.work / "known.supp").write_text("")
    ended = preload(with_status)
    assert ended.returncode == 23 and "exit status 23 takes the place of 0" in ended.stderr
