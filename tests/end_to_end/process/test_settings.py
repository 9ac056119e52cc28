"""Settings come from the environment. A wrong one gives a line that says what to do, never a failure."""

import os
import shutil
import subprocess

import pytest

from shimmed import PATIENCE_S, program

ALLOCATE = [program("allocate"), "3", "5000"]

BAD = [
    ("CUWARDEN_ENABLED", "maybe"),
    ("CUWARDEN_ENABLED", "2"),
    ("CUWARDEN_STACK_DEPTH", "-1"),
    ("CUWARDEN_STACK_DEPTH", "deep"),
    ("CUWARDEN_STACK_DEPTH", "12frames"),
    ("CUWARDEN_STACK_DEPTH", "99999999999999999999"),
    ("CUWARDEN_LOG", "loud"),
    ("CUWARDEN_DEEPBIND", "maybe"),
    ("CUWARDEN_REPORT", "report-%q.json"),
    ("CUWARDEN_REPORT", "-"),
    ("CUWARDEN_SYMBOL_TIME", "2"),
    ("CUWARDEN_SYMBOL_TIME", "1.5s"),
]
ACCEPTED = {
    "CUWARDEN_ENABLED": ["0", "1"],
    "CUWARDEN_STACK_DEPTH": ["0"],
    "CUWARDEN_LOG": ["off", "error", "warn", "info", "debug"],
    "CUWARDEN_DEEPBIND": ["drop", "keep"],
    "CUWARDEN_REPORT": ["%p"],
    "CUWARDEN_SYMBOL_TIME": ["500ms", "30s"],
}


HOSTILE = "\033]0;owned\007\ncuwarden: forged \u202e \u009b8m"


@pytest.mark.parametrize(
    "name, value",
    [
        ("CUWARDEN_POOL", HOSTILE),
        ("CUWARDEN_" + HOSTILE, "1"),
        ("CUWARDEN_LEDGER_DIR", "/nonexistent" + HOSTILE),
        ("CUWARDEN_REPORT", "/dev/null/" + HOSTILE),
    ],
    ids=["value", "name", "folder", "report"],
)
def test_a_value_does_not_act_on_the_terminal(run_shimmed, name, value):
    run = run_shimmed(ALLOCATE, {name: value})
    assert run.returncode == 0
    run.said_about("?]0;owned??cuwarden: forged")
    shown = run.stderr.replace("\n", "")
    assert shown.isprintable(), shown


@pytest.mark.parametrize("name, value", BAD)
def test_a_bad_value_gives_one_line_and_the_default(run_both, name, value):
    run = run_both(ALLOCATE, {name: value})
    line = run.said_about(name, value)
    assert all(accepted in line for accepted in ACCEPTED[name]), line
    assert len(run.said) == 1
    run.report.check_leaks(run.last_line["leaked"])


@pytest.mark.parametrize(
    "name, nearest",
    [
        ("CUWARDEN_REPROT", "CUWARDEN_REPORT"),
        ("CUWARDEN_STACKDEPTH", "CUWARDEN_STACK_DEPTH"),
        ("CUWARDEN_LEDGER", "CUWARDEN_LEDGER_DIR"),
        ("CUWARDEN_ENABLE", "CUWARDEN_ENABLED"),
    ],
)
def test_an_unknown_name_gives_one_line_with_the_nearest_known_one(run_both, name, nearest):
    run = run_both(ALLOCATE, {name: "some-value"})
    line = run.said_about(name)
    assert nearest in line.replace(name, "", 1), line
    assert len(run.said) == 1
    run.report.check_leaks(run.last_line["leaked"])


@pytest.mark.parametrize("name, value", [("CUWARDEN_WAIT", "3s"), ("CUWARDEN_SPILL", "1GiB")])
def test_a_setting_that_needs_rescues_is_said_to_have_no_effect_without_them(run_both, name, value):
    run = run_both(ALLOCATE, {"CUWARDEN_POOL": "off", name: value})
    assert run.said_about(name, "CUWARDEN_POOL=off") and len(run.said) == 1


@pytest.mark.parametrize("name", ["CUWARDEN_MODE", "CUWARDEN_FOO", "CUWARDEN_", "CUWARDEN_S"])
def test_a_name_unlike_all_known_ones_gives_one_line_without_a_guess(run_both, name):
    run = run_both(ALLOCATE, {name: "some-value"})
    line = run.said_about(name, "no such setting")
    assert line.count("CUWARDEN_") == 1 and len(run.said) == 1


def test_several_bad_settings_are_a_line_each(run_both):
    run = run_both(
        ALLOCATE,
        {"CUWARDEN_LOG": "loud", "CUWARDEN_STACK_DEPTH": "deep", "CUWARDEN_NO_SUCH_THING": "1"},
    )
    for parts in (
        ("CUWARDEN_LOG", "loud"),
        ("CUWARDEN_STACK_DEPTH", "deep"),
        ("CUWARDEN_NO_SUCH_THING",),
    ):
        run.said_about(*parts)
    assert len(run.said) == 3


def test_names_of_the_simulated_gpu_and_of_the_command_are_known(run_both):
    run = run_both(ALLOCATE, {"CUWARDEN_SIM_MEMORY": "4GiB", "CUWARDEN_REPORT_LIST": "1"})
    assert not [line for line in run.said if "CUWARDEN_SIM" in line]


def test_a_process_without_cuda_is_told_nothing_of_its_settings(run_both):
    run = run_both(["/bin/echo", "hello"], {"CUWARDEN_LOG": "loud", "CUWARDEN_REPROT": "x"})
    assert run.stderr == ""
    assert run.reports == [] and run.ledgers == []


def test_disabled_means_that_nothing_happens_at_all(run_both):
    run = run_both(ALLOCATE, {"CUWARDEN_ENABLED": "0"})
    assert run.said == [] and run.reports == [] and run.ledgers == []


def test_settings_are_in_the_report_with_where_they_came_from(run_shimmed):
    run = run_shimmed(ALLOCATE, {"CUWARDEN_STACK_DEPTH": "17"})
    row = run.report.setting("CUWARDEN_STACK_DEPTH")
    assert row == {"name": "CUWARDEN_STACK_DEPTH", "value": "17", "source": "environment"}
    assert run.report.setting("CUWARDEN_ENABLED")["source"] == "default"


# --- stack depth


def native_depth(report, group):
    """Returns the number of walked frames; an inlined function has none of its own."""
    return len([frame for frame in report.stack_frames(group) if not frame["inlined"]])


def test_a_cut_stack_says_so_and_keeps_its_innermost_frames(run_shimmed):
    run = run_shimmed([program("allocate"), "1", "100", "40"], {"CUWARDEN_STACK_DEPTH": "5"})
    (group,) = run.report.leaks()
    stack = run.report.stacks[group["stack"]]
    assert stack["truncated"] is True
    assert native_depth(run.report, group) <= 5
    assert run.report.functions(group)[0][0] == "allocate"
    assert "main" not in [name for name, _ in run.report.functions(group)]


def test_a_whole_stack_reaches_main(run_shimmed):
    run = run_shimmed([program("allocate"), "1", "100", "40"])
    (group,) = run.report.leaks()
    names = [name for name, _ in run.report.functions(group)]
    assert names[:41] == ["allocate"] * 41
    assert names[41] == "main"
    assert run.report.stacks[group["stack"]]["truncated"] is False


def test_depth_zero_keeps_the_counts_without_stacks(run_shimmed):
    run = run_shimmed(ALLOCATE, {"CUWARDEN_STACK_DEPTH": "0"})
    assert run.report["leaks"]["count"] == 3
    assert run.report["leaks"]["bytes"] == 15000
    assert run.report["frames"] == []


# --- the report's path


def test_the_paths_percent_sequences_are_replaced(workspace):
    run = workspace.run(
        ALLOCATE,
        {
            "CUWARDEN_REPORT": workspace.reports / "%e_%h_%p_%j_%r_100%%.json",
            "SLURM_JOB_ID": "4711",
            "SLURM_PROCID": "3",
        },
    )
    pid = run.report["process"]["pid"]
    assert run.report.path.name == f"allocate_{os.uname().nodename}_{pid}_4711_3_100%.json"
    assert run.report["job"]["job_id"] == "4711"
    assert run.report["job"]["rank"] == 3


def test_an_unset_job_and_rank_are_none(workspace):
    run = workspace.run(ALLOCATE, {"CUWARDEN_REPORT": workspace.reports / "%j-%r.json"})
    assert run.report.path.name == "none-none.json"


def test_an_unset_step_and_array_task_are_none(workspace):
    run = workspace.run(ALLOCATE, {"CUWARDEN_REPORT": workspace.reports / "%s-%a.json"})
    assert run.report.path.name == "none-none.json"
    assert (run.report["job"]["job_step"], run.report["job"]["array_task"]) == (None, None)


def test_a_jobs_step_and_array_task_are_in_the_name_and_in_the_report(workspace, cuwarden):
    slurm = {
        "SLURM_JOB_ID": "90",
        "SLURM_ARRAY_JOB_ID": "83",
        "SLURM_ARRAY_TASK_ID": "7",
        "SLURM_STEP_ID": "2",
        "SLURM_PROCID": "3",
    }
    run = workspace.run(ALLOCATE, {"CUWARDEN_REPORT": workspace.reports / "%j.%s-%a-%r.json", **slurm})
    assert run.report.path.name == "90.2-7-3.json"
    job = run.report["job"]
    assert (job["job_id"], job["job_step"], job["array_task"], job["rank"]) == ("90", "2", "7", 3)
    text = cuwarden("report", run.report.path).stdout
    assert "  slurm job 90, array task 7, step 2, rank 3\n" in text


def test_a_program_started_by_a_batch_script_itself_has_no_rank(workspace):
    slurm = {"SLURM_JOB_ID": "90", "SLURM_PROCID": "0", "ENVIRONMENT": "BATCH"}
    run = workspace.run(ALLOCATE, {"CUWARDEN_REPORT": workspace.reports / "%r.json", **slurm})
    assert run.report.path.name == "none.json"
    assert run.report["job"]["rank"] is None
    assert "ENVIRONMENT" not in [row["name"] for row in run.report["environment"]]


@pytest.mark.parametrize(
    "variable",
    ["PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID", "RANK"],
)
def test_a_rank_is_found_for_each_launcher(workspace, variable):
    run = workspace.run(ALLOCATE, {"CUWARDEN_REPORT": workspace.reports / "%r.json", variable: "12"})
    assert run.report.path.name == "12.json"


def test_the_default_report_lies_in_the_working_directory(workspace):
    run = workspace.run(ALLOCATE, {"CUWARDEN_REPORT": None})
    pid = run.report["process"]["pid"]
    assert run.report.path == workspace.work / f"cuwarden-allocate-{os.uname().nodename}-{pid}.json"


def listing_of_dev():
    return {name for name in os.listdir("/dev") if not name.startswith(("shm", "pts"))}


def test_dev_null_means_no_report(workspace, cuwarden):
    before = listing_of_dev()
    run = workspace.run_both(ALLOCATE, {"CUWARDEN_REPORT": "/dev/null"})
    assert (run.reports, run.ledgers, run.said) == ([], [], [])
    shortage = {"CUWARDEN_REPORT": "/dev/null", "CUWARDEN_SIM_FAIL": "cuMemAlloc:2"}
    assert workspace.run(ALLOCATE, shortage).reports == []
    killed = workspace.run([program("ending"), "kill"], {"CUWARDEN_REPORT": "/dev/null"})
    (ledger,) = killed.ledgers
    done = cuwarden("recover", ledger)
    assert "CUWARDEN_REPORT=/dev/null asks for none" in done.stdout
    assert not ledger.exists()
    assert listing_of_dev() == before


@pytest.mark.parametrize("path", ["/dev/full", "/dev/stdout", "/dev/tty", "/proc/self/fd/1"])
def test_a_path_below_the_systems_folders_is_not_accepted(workspace, path):
    before = listing_of_dev()
    run = workspace.run_both(ALLOCATE, {"CUWARDEN_REPORT": path})
    assert "/dev/null for no report" in run.said_about(f"CUWARDEN_REPORT={path}")
    assert [found.parent for found in workspace.work.glob("*.json")] == [workspace.work]
    assert listing_of_dev() == before


def test_a_report_is_not_written_into_a_pipe(workspace):
    pipe = workspace.folder / "pipe"
    os.mkfifo(pipe)
    run = workspace.run_both(ALLOCATE, {"CUWARDEN_REPORT": pipe})
    assert "a device, a pipe or a socket holds no report" in run.said_about(str(pipe))
    assert len(list(workspace.work.glob("*.json"))) == 1
    assert not list(workspace.folder.glob("pipe.*"))


@pytest.mark.parametrize("ending", ["", "/"])
def test_the_path_of_a_report_in_a_folder_has_one_slash_before_its_name(workspace, ending):
    env = {"CUWARDEN_REPORT": f"{workspace.reports}{ending}", "CUWARDEN_LOG": "debug"}
    run = workspace.run([program("allocate"), "1", "5000"], env)
    run.said_about("the report will be", f" {run.report.path}")


def test_missing_folders_are_made(workspace):
    path = workspace.reports / "a" / "b" / "report.json"
    run = workspace.run(ALLOCATE, {"CUWARDEN_REPORT": path})
    assert run.report.path == path


def test_the_ledger_goes_where_it_is_told_and_goes_away_with_the_report(workspace):
    where = workspace.folder / "other-ledger"
    where.mkdir()
    killed = workspace.run([program("ending"), "kill"], {"CUWARDEN_LEDGER_DIR": where})
    assert len(list(where.iterdir())) == 1 and killed.reports == []
    left = next(where.iterdir())
    ended = workspace.run([program("ending"), "return"], {"CUWARDEN_LEDGER_DIR": where})
    assert list(where.iterdir()) == [left] and ended.report["leaks"]["count"] == 3


def test_without_a_ledger_folder_of_its_own_the_ledger_is_beside_the_report_until_it_is_whole(
    workspace,
):
    run = workspace.run(ALLOCATE, {"CUWARDEN_LEDGER_DIR": None, "TMPDIR": workspace.work})
    assert run.report["leaks"]["count"] == 3
    left = [p for p in (*workspace.reports.iterdir(), *workspace.work.iterdir()) if p != run.report.path]
    assert left == []


def test_an_unusable_ledger_folder_gives_a_line_and_another_folder_is_used(workspace):
    (workspace.folder / "file").write_text("not a folder")
    where = workspace.folder / "file" / "ledger"
    run = workspace.run_both(ALLOCATE, {"CUWARDEN_LEDGER_DIR": where})
    run.said_about("CUWARDEN_LEDGER_DIR", str(where))
    run.report.check_leaks(run.last_line["leaked"])


# --- the log


def test_log_off_silences_warnings(run_both):
    run = run_both(ALLOCATE, {"CUWARDEN_LOG": "off", "CUWARDEN_STACK_DEPTH": "deep"})
    assert run.said == []
    assert run.report["leaks"]["count"] == 3


def test_the_log_can_go_into_a_file(workspace):
    log = workspace.folder / "cuwarden.log"
    run = workspace.run_both(ALLOCATE, {"CUWARDEN_LOG": f"debug:{log}", "CUWARDEN_STACK_DEPTH": "deep"})
    assert run.said == []
    assert "CUWARDEN_STACK_DEPTH" in log.read_text()


def test_the_log_file_is_not_written_through_a_symbolic_link(workspace):
    victim = workspace.folder / "victim"
    victim.write_text("precious\n")
    log = workspace.folder / "cuwarden.log"
    log.symlink_to(victim)
    run = workspace.run_both(ALLOCATE, {"CUWARDEN_LOG": f"warn:{log}", "CUWARDEN_STACK_DEPTH": "deep"})
    assert victim.read_text() == "precious\n"
    run.said_about("CUWARDEN_STACK_DEPTH")  # the message goes to stderr instead


def test_messages_stay_out_of_a_file_that_took_the_place_of_stderr(workspace):
    data = workspace.folder / "data"
    run = workspace.run([program("ending"), "stderr_reused", data], {"CUWARDEN_STACK_DEPTH": "deep"})
    assert run.returncode == 0
    assert data.read_text() == "data"
    assert run.report["leaks"]["count"] == 3


def test_messages_follow_stderr_into_the_programs_own_log(workspace):
    log = workspace.folder / "program.log"
    run = workspace.run([program("ending"), "stderr_to_log", log], {"CUWARDEN_STACK_DEPTH": "deep"})
    assert run.returncode == 0
    assert "CUWARDEN_STACK_DEPTH" in log.read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a program to another group")
def test_a_program_with_more_rights_than_its_caller_is_left_alone(workspace):
    ordinary, privileged = (workspace.folder / name for name in ("ordinary", "privileged"))
    for path in (ordinary, privileged):
        shutil.copy(program("linked_to_shim"), path)
    os.chown(privileged, -1, 65534)
    privileged.chmod(0o2755)
    env = workspace.environment()
    del env["LD_PRELOAD"]  # the program is linked with the shim instead
    for path, reports in ((ordinary, 1), (privileged, 0)):
        done = subprocess.run([path], env=env, cwd=workspace.work, timeout=PATIENCE_S, stdout=subprocess.DEVNULL)
        assert done.returncode == 0
        assert len(list(workspace.reports.iterdir())) == reports
        for report in workspace.reports.iterdir():
            report.unlink()


def test_the_environment_is_not_copied_into_the_report(run_shimmed):
    run = run_shimmed(ALLOCATE, {"MY_SECRET_TOKEN": "hunter2hunter2", "CUDA_VISIBLE_DEVICES": "0"})
    text = run.report.path.read_text()
    assert "hunter2hunter2" not in text
    assert run.report["job"]["visible_devices"] == "0"


def test_two_processes_with_one_path_make_two_reports(workspace):
    path = workspace.reports / "same.json"
    env = workspace.environment({"CUWARDEN_REPORT": path})
    both = [
        subprocess.Popen([program("allocate"), str(n)], env=env, stdout=subprocess.DEVNULL)
        for n in (1, 2)
    ]
    assert [process.wait(60) for process in both] == [0, 0]
    third = workspace.run([program("allocate"), "3"], {"CUWARDEN_REPORT": path})
    assert third.report.path.name == "same.2.json"
    names = sorted(p.name for p in workspace.reports.iterdir())
    assert names == ["same.1.json", "same.2.json", "same.json"]

