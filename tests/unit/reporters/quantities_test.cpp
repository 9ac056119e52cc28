// Numbers, times and versions as people read them, and facts about the job from the environment.
#include "reporters/words/quantities.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <map>

#include "reporters/tables/process_facts.hpp"
#include "reporters/words/wall_clock.hpp"
#include "runtime_hooks/core/job.hpp"

namespace cuwarden {
namespace {

TEST(Quantities, bytes_are_in_the_largest_unit_that_fits) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1536), "1.5 KiB");
  EXPECT_EQ(human_bytes((1u << 20) - 1), "1.0 MiB");
  EXPECT_EQ(human_bytes(21474836480), "20.0 GiB");
}

TEST(Quantities, counts_are_grouped) {
  EXPECT_EQ(human_count(7), "7");
  EXPECT_EQ(human_count(999), "999");
  EXPECT_EQ(human_count(71932), "71,932");
  EXPECT_EQ(human_count(1234567), "1,234,567");
}

TEST(Quantities, times_are_short) {
  EXPECT_EQ(human_time(12), "12 ns");
  EXPECT_EQ(human_time(1'500'000), "1.5 ms");
  EXPECT_EQ(human_time(59'990'000'000), "1 min 0 s");
  EXPECT_EQ(human_time(6'586'877'545'214), "1 h 49 min");
  EXPECT_EQ(human_supply(2431, {}), "about 2,431 steps");
  EXPECT_EQ(human_supply(1, 200), "less than 1 step, and less than 3 h 20 min");
  EXPECT_EQ(human_supply({}, 59), "about 59 min");
  EXPECT_EQ(human_supply({}, 31 * 24 * 60), "");
  EXPECT_EQ(human_supply(1'000'001, {}), "");
  EXPECT_EQ(human_supply({}, {}), "");
}

TEST(Quantities, sizes_are_read_with_their_units) {
  EXPECT_EQ(parse_size("4096"), 4096u);
  EXPECT_EQ(parse_size("64MiB"), 64u << 20);
  EXPECT_EQ(parse_size("1.5 GB"), 1'500'000'000u);
  EXPECT_EQ(parse_size("2TiB"), std::uint64_t{2} << 40);
  for (const char* bad : {"", "GiB", "12 parsecs", "-1", "1e9", "1..5", "99999999TiB", "1gib"}) {
    EXPECT_EQ(parse_size(bad), std::nullopt) << bad;
  }
}

TEST(Quantities, large_whole_sizes_are_read_exactly) {
  // A double holds whole numbers exactly only up to 9007199254740992.
  EXPECT_EQ(parse_size("9007199254740993"), 9'007'199'254'740'993u);
  EXPECT_EQ(parse_size("9199999999999999999 B"), 9'199'999'999'999'999'999u);
  EXPECT_EQ(parse_size("9007199254740993KB"), 9'007'199'254'740'993'000u);
  EXPECT_EQ(parse_size("9200000000000001KB"), std::nullopt);
  EXPECT_EQ(parse_size("8796093022208001KiB"), 9'007'199'254'740'993'024u);
  EXPECT_EQ(parse_size("9200000000000000000"), 9'200'000'000'000'000'000u);
  EXPECT_EQ(parse_size("9200000000000000001"), std::nullopt);
  EXPECT_EQ(parse_size("99999999999999999999999"), std::nullopt);
}

TEST(Quantities, parts_of_a_byte_are_dropped) {
  EXPECT_EQ(parse_size("1.001KB"), 1001u);
  EXPECT_EQ(parse_size("1.9999"), 1u);
  EXPECT_EQ(parse_size(".5 KiB"), 512u);
  EXPECT_EQ(parse_size("2.GiB"), std::uint64_t{2} << 30);
  EXPECT_EQ(parse_size("1.25" + std::string(30, '0') + "KiB"), 1280u);
  EXPECT_EQ(parse_size("0." + std::string(400, '9') + "KiB"), std::nullopt);
}

TEST(ProcessFacts, a_start_time_is_iso_8601_to_the_nanosecond) {
  EXPECT_EQ(iso_8601(1'795'161'601'123'456'789), "2026-11-20T08:00:01.123456789Z");
  EXPECT_EQ(iso_8601(951'782'399'000'000'001), "2000-02-28T23:59:59.000000001Z");
}

TEST(ProcessFacts, versions_are_major_and_minor) {
  EXPECT_EQ(version_text(13000), "13.0");
  EXPECT_EQ(version_text(12080), "12.8");
  EXPECT_EQ(version_text(0), "");
}

Job job_of(const std::map<std::string_view, std::string_view>& environment) {
  return job_from([&](std::string_view name) -> std::optional<std::string_view> {
    const auto found = environment.find(name);
    if (found == environment.end()) return std::nullopt;
    return found->second;
  });
}

TEST(Job, outside_of_a_job_everything_is_unknown) {
  const Job job = job_of({});
  EXPECT_FALSE(job.scheduler || job.id || job.rank || job.visible_devices);
}

TEST(Job, a_launchers_rank_comes_before_the_schedulers) {
  const Job job = job_of({{"SLURM_JOB_ID", "882113"},
                          {"SLURM_PROCID", "0"},
                          {"OMPI_COMM_WORLD_RANK", "5"},
                          {"RANK", "9"}});
  EXPECT_EQ(job.scheduler, "slurm");
  EXPECT_EQ(job.id, "882113");
  EXPECT_EQ(job.rank, 5);
}

TEST(Job, a_rank_that_is_no_number_is_passed_over) {
  EXPECT_EQ(job_of({{"PMI_RANK", "none"}, {"RANK", "3"}}).rank, 3);
}

TEST(Job, each_launchers_rank_is_found) {
  for (const RankVariable& variable : rank_variables) {
    EXPECT_EQ(job_of({{variable.name, variable.first == 0 ? "7" : "8"}}).rank, 7) << variable.name;
  }
  EXPECT_FALSE(job_of({{"LSF_PM_TASKID", "0"}}).rank) << "LSF counts from 1";
}

TEST(Job, a_batch_scripts_procid_is_no_rank) {
  const std::map<std::string_view, std::string_view> script{
      {"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}, {"ENVIRONMENT", "BATCH"}};
  EXPECT_FALSE(job_of(script).rank);
  auto task = script;
  task["SLURM_STEP_ID"] = "0";
  EXPECT_EQ(job_of(task).rank, 0);
  auto launched = script;
  launched["MV2_COMM_WORLD_RANK"] = "3";
  EXPECT_EQ(job_of(launched).rank, 3);
}

TEST(Job, an_interactive_step_is_neither_a_step_nor_a_rank) {
  const Job job =
      job_of({{"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "4294967290"}});
  EXPECT_FALSE(job.rank || job.step);
}

TEST(Job, torchruns_workers_have_ranks_of_their_own_in_one_task) {
  EXPECT_EQ(job_of({{"SLURM_PROCID", "1"}, {"SLURM_STEP_ID", "0"}, {"RANK", "11"}}).rank, 1);
  EXPECT_EQ(job_of({{"SLURM_PROCID", "1"},
                    {"SLURM_STEP_ID", "0"},
                    {"RANK", "11"},
                    {"TORCHELASTIC_RUN_ID", "x"}})
                .rank,
            11);
}

TEST(Job, steps_and_tasks_of_arrays_are_told) {
  const Job slurm = job_of({{"SLURM_JOB_ID", "90"},
                            {"SLURM_STEP_ID", "2"},
                            {"SLURM_ARRAY_JOB_ID", "83"},
                            {"SLURM_ARRAY_TASK_ID", "7"}});
  EXPECT_EQ(slurm.id, "90");
  EXPECT_EQ(slurm.step, "2");
  EXPECT_EQ(slurm.array_task, "7");
  EXPECT_EQ(job_of({{"PBS_JOBID", "1[4].host"}, {"PBS_ARRAY_INDEX", "4"}}).array_task, "4");
  EXPECT_EQ(job_of({{"LSB_JOBID", "1"}, {"LSB_JOBINDEX", "5"}}).array_task, "5");
  EXPECT_EQ(job_of({{"JOB_ID", "1"}, {"SGE_TASK_ID", "6"}}).array_task, "6");
}

TEST(Job, a_job_outside_of_an_array_has_no_task) {
  EXPECT_FALSE(job_of({{"LSB_JOBID", "1"}, {"LSB_JOBINDEX", "0"}}).array_task);
  EXPECT_FALSE(job_of({{"JOB_ID", "1"}, {"SGE_TASK_ID", "undefined"}}).array_task);
}

TEST(Job, no_visible_devices_is_not_the_same_as_unset) {
  EXPECT_EQ(job_of({{"CUDA_VISIBLE_DEVICES", ""}}).visible_devices, "");
}

TEST(WallClock, points_in_time_are_read_as_reports_write_them) {
  EXPECT_EQ(parse_iso_8601("1970-01-02T00:00:01.000000002Z"), 86'401'000'000'002);
  EXPECT_EQ(parse_iso_8601("2026-11-26T04:28:16.977002377Z"), 1'795'667'296'977'002'377);
  // Digits behind the second are a decimal fraction: JavaScript writes three.
  EXPECT_EQ(parse_iso_8601("2026-11-26T04:28:16.977Z"), 1'795'667'296'977'000'000);
  EXPECT_EQ(parse_iso_8601("2026-11-26T04:28:16.9Z"), 1'795'667'296'900'000'000);
  EXPECT_EQ(parse_iso_8601("2026-11-26T04:28:16.07Z"), 1'795'667'296'070'000'000);
  for (const char* bad :
       {"", "2026-11-26", "2026-11-26T04:28:16Z", "2026-13-26T04:28:16.977002377Z",
        "2026-02-30T04:28:16.977002377Z", "2026-11-26T24:28:16.977002377Z",
        "2026-11-26T04:60:16.977002377Z", "2026-11-26T04:28:61.977002377Z",
        "1969-11-26T04:28:16.977002377Z", "2026-11-26T04:28:16.977002377Z ",
        "2026-11-26T04:28:16.Z", "2026-11-26T04:28:16.9770023771Z", "2026-11-26T04:28:16.-77Z",
        "2026-11-26T04:28:16. 77Z"})
    EXPECT_EQ(parse_iso_8601(bad), std::nullopt) << bad;
}

TEST(WallClock, a_point_in_time_is_shown_in_the_time_zone_of_the_machine) {
  const char* const zone = std::getenv("TZ");
  const std::string before = zone == nullptr ? "" : zone;
  setenv("TZ", "UTC-2", 1);
  tzset();
  EXPECT_EQ(time_of_day(1'795'667'296'977'002'377), "06:28:16");
  EXPECT_EQ(time_of_day(1'795'667'296'977'002'377, true), "2026-11-26 06:28:16");
  before.empty() ? unsetenv("TZ") : setenv("TZ", before.c_str(), 1);
  tzset();
}

}  // namespace
}  // namespace cuwarden
