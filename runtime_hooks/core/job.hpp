// Finds the batch job that a process belongs to, from its environment. The environment is given as
// a lookup from name to value, so that a running process and a ledger are asked in the same way.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace cuwarden {

// A job; each field is none if the environment does not tell it.
struct Job {
  std::optional<std::string_view> scheduler;  // One of slurm, pbs, lsf, sge, cobalt, flux.
  std::optional<std::string_view> id;
  std::optional<std::string_view> step;        // The job step: the tasks that one srun started.
  std::optional<std::string_view> array_task;  // Index in an array of jobs.
  std::optional<int> rank;
  // The value of CUDA_VISIBLE_DEVICES.
  std::optional<std::string_view> visible_devices;
};

// Variables that job_from() reads and that a report keeps, besides CUWARDEN_*, CUDA_* and NVIDIA_*.
// The first job id that is set names the scheduler.
inline constexpr std::array<std::array<std::string_view, 2>, 6> job_id_variables{{
    {"SLURM_JOB_ID", "slurm"},
    {"PBS_JOBID", "pbs"},
    {"LSB_JOBID", "lsf"},
    {"COBALT_JOBID", "cobalt"},
    {"FLUX_JOB_ID", "flux"},
    {"JOB_ID", "sge"},
}};
inline constexpr std::string_view step_variable = "SLURM_STEP_ID";
inline constexpr std::array<std::string_view, 5> array_task_variables{
    "SLURM_ARRAY_TASK_ID",
    "PBS_ARRAY_INDEX",  // PBS Professional, OpenPBS.
    "PBS_ARRAYID",      // Torque.
    "LSB_JOBINDEX",     // 0 outside of an array.
    "SGE_TASK_ID",      // "undefined" outside of an array.
};

// A variable that gives the rank. The first one that is set counts. A launcher's own variable comes
// before the scheduler's: several launchers may run in one task of the scheduler.
struct RankVariable {
  std::string_view name;
  int first = 0;  // The value that rank 0 has.
};
inline constexpr std::array<RankVariable, 11> rank_variables{{
    {"PMIX_RANK"},  // PMIx: Open MPI 5, srun --mpi=pmix.
    {"OMPI_COMM_WORLD_RANK"},
    {"PMI_RANK"},  // MPICH and its relatives.
    {"MV2_COMM_WORLD_RANK"},
    {"JSM_NAMESPACE_RANK"},  // jsrun.
    {"PALS_RANKID"},         // HPE's mpiexec and aprun.
    {"ALPS_APP_PE"},
    {"SLURM_PROCID"},
    {"FLUX_TASK_RANK"},
    {"LSF_PM_TASKID", 1},  // blaunch.
    {"RANK"},              // torchrun.
}};
// torchrun sets this variable beside RANK. Its workers share one task of the scheduler, which may
// have given that task a rank: if the variable is set, RANK comes first.
inline constexpr std::string_view torchrun_variable = "TORCHELASTIC_RUN_ID";
// Slurm sets this variable to BATCH in a batch script, and in programs that srun starts there.
inline constexpr std::string_view batch_variable = "ENVIRONMENT";

// Returns the rank in decimal; none if the text is not a number of 1 to 9 digits.
constexpr std::optional<int> parse_rank(std::string_view text) {
  if (text.empty() || text.size() > 9) return std::nullopt;
  int rank = 0;
  for (const char letter : text) {
    if (letter < '0' || letter > '9') return std::nullopt;
    rank = rank * 10 + (letter - '0');
  }
  return rank;
}

// True if job_from() reads the variable and a report keeps it.
constexpr bool is_job_variable(std::string_view name) {
  for (const auto& variable : job_id_variables) {
    if (variable[0] == name) return true;
  }
  for (const std::string_view variable : array_task_variables) {
    if (variable == name) return true;
  }
  for (const RankVariable& variable : rank_variables) {
    if (variable.name == name) return true;
  }
  return name == step_variable || name == torchrun_variable;
}

// True for Slurm's numbers of steps that srun did not start: the script of a batch job, an
// interactive shell, a container from outside, a step that waits.
constexpr bool is_special_step(std::string_view step) {
  return step.size() == 10 && step >= "4294967290" && step <= "4294967295";
}

// True unless the process belongs to Slurm's batch script or interactive shell. Slurm sets
// SLURM_PROCID to 0 there, too, and each process inherits it.
template <class Lookup>
constexpr bool is_slurm_task(const Lookup& lookup) {
  const std::optional<std::string_view> step = lookup(step_variable);
  if (step && !step->empty()) return !is_special_step(*step);
  return lookup(batch_variable) != std::optional<std::string_view>("BATCH");
}

// Returns the rank, counted from 0; none if no variable gives one.
template <class Lookup>
constexpr std::optional<int> rank_from(const Lookup& lookup) {
  const auto rank = [&](const RankVariable& variable) -> std::optional<int> {
    const std::optional<std::string_view> value = lookup(variable.name);
    const std::optional<int> number = value ? parse_rank(*value) : std::nullopt;
    if (!number || *number < variable.first) return std::nullopt;
    return *number - variable.first;
  };
  if (lookup(torchrun_variable)) {
    if (const auto found = rank(rank_variables.back())) return found;
  }
  for (const RankVariable& variable : rank_variables) {
    if (variable.name == "SLURM_PROCID" && !is_slurm_task(lookup)) continue;
    if (const auto found = rank(variable)) return found;
  }
  return std::nullopt;
}

// Reads the job from variables. `lookup(name)` returns std::optional<std::string_view>. An empty
// value counts as unset, except for CUDA_VISIBLE_DEVICES, where it hides every device.
template <class Lookup>
constexpr Job job_from(const Lookup& lookup) {
  Job job;
  for (const auto& [name, scheduler] : job_id_variables) {
    const std::optional<std::string_view> value = lookup(name);
    if (!value || value->empty()) continue;
    job.scheduler = scheduler;
    job.id = value;
    break;
  }
  const std::optional<std::string_view> step = lookup(step_variable);
  if (step && !step->empty() && !is_special_step(*step)) job.step = step;
  for (const std::string_view name : array_task_variables) {
    const std::optional<std::string_view> value = lookup(name);
    if (!value || value->empty() || *value == "undefined") continue;
    if (name == "LSB_JOBINDEX" && *value == "0") continue;
    job.array_task = value;
    break;
  }
  job.rank = rank_from(lookup);
  job.visible_devices = lookup(std::string_view{"CUDA_VISIBLE_DEVICES"});
  return job;
}

}  // namespace cuwarden
