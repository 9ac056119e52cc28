// Finds the batch job that a process belongs to, from its environment. The environment is given as
// a lookup from name to value, so that a running process and a ledger are asked in the same way.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace cuwarden {

// The batch job that a process belongs to. A field is none if no environment variable tells its
// value. Each text but `scheduler` points into the value of its environment variable, and is valid
// as long as that.
struct Job {
  std::optional<std::string_view> scheduler;  // One of slurm, pbs, lsf, sge, cobalt, flux; or none.
  std::optional<std::string_view> id;         // The scheduler's id of the job; none: in no job.
  // Number of the Slurm job step (the tasks that one srun started); none: not in such a step.
  std::optional<std::string_view> step;
  std::optional<std::string_view> array_task;  // Index of the job in an array of jobs, or none.
  std::optional<int> rank;                     // The process's rank in its job, from 0; or none.
  // The value of CUDA_VISIBLE_DEVICES; null if the variable is not set. With an empty value the
  // process may use no device.
  std::optional<std::string_view> visible_devices;
};

// Pairs of an environment variable that holds a job's id, and the scheduler that sets the variable.
// The variables are looked up in this order; the first one that is set and not empty counts.
inline constexpr std::array<std::array<std::string_view, 2>, 6> job_id_variables{{
    {"SLURM_JOB_ID", "slurm"},
    {"PBS_JOBID", "pbs"},
    {"LSB_JOBID", "lsf"},
    {"COBALT_JOBID", "cobalt"},
    {"FLUX_JOB_ID", "flux"},
    {"JOB_ID", "sge"},
}};
// The environment variable that holds the id of Slurm's job step (Job::step).
inline constexpr std::string_view step_variable = "SLURM_STEP_ID";
// Environment variables that may hold the job's index in an array of jobs (Job::array_task). They
// are looked up in this order. The first one counts that is not empty and does not say that the job
// is in no array. Its text is taken as it is.
inline constexpr std::array<std::string_view, 5> array_task_variables{
    "SLURM_ARRAY_TASK_ID",
    "PBS_ARRAY_INDEX",  // Set by PBS Professional and OpenPBS.
    "PBS_ARRAYID",      // Set by Torque.
    "LSB_JOBINDEX",     // Set by LSF; the value is 0 if the job is in no array.
    "SGE_TASK_ID",      // Set by Grid Engine; the value is "undefined" if the job is in no array.
};

// An environment variable in which a launcher or scheduler gives a process its rank.
struct RankVariable {
  std::string_view name;  // Name of the variable, such as PMI_RANK.
  int first = 0;          // The variable's value in the process that has rank 0.
};
// Environment variables that may hold the process's rank in its job. rank_from() looks them up in
// this order until one holds a valid rank, a number of 1 to 9 digits. A launcher's own variable
// comes before the scheduler's, because several launchers may run in one task of the scheduler.
// RANK comes first if `torchrun_variable` is set. SLURM_PROCID is passed over if is_slurm_task() is
// false.
inline constexpr std::array<RankVariable, 11> rank_variables{{
    {"PMIX_RANK"},  // Set by launchers with PMIx: Open MPI 5, srun --mpi=pmix.
    {"OMPI_COMM_WORLD_RANK"},
    {"PMI_RANK"},  // Set by MPICH and its relatives.
    {"MV2_COMM_WORLD_RANK"},
    {"JSM_NAMESPACE_RANK"},  // Set by jsrun.
    {"PALS_RANKID"},         // Set by HPE's mpiexec and aprun.
    {"ALPS_APP_PE"},
    {"SLURM_PROCID"},
    {"FLUX_TASK_RANK"},
    {"LSF_PM_TASKID", 1},  // Set by LSF's blaunch; the first process has the value 1.
    {"RANK"},              // Set by torchrun.
}};
// Name of an environment variable that torchrun sets beside RANK. torchrun's workers share one task
// of the scheduler, which may have given the task a rank of its own. So if this variable is set,
// even to an empty value, RANK is looked up before all other rank variables.
inline constexpr std::string_view torchrun_variable = "TORCHELASTIC_RUN_ID";
// Name of an environment variable that Slurm sets to BATCH for a batch script (is_slurm_task()).
// Programs that srun starts in the script inherit the value.
inline constexpr std::string_view batch_variable = "ENVIRONMENT";

// Returns the number in `text`, which has 1 to 9 decimal digits and nothing else; none for any
// other text.
constexpr std::optional<int> parse_rank(std::string_view text) {
  if (text.empty() || text.size() > 9) return std::nullopt;
  int rank = 0;
  for (const char letter : text) {
    if (letter < '0' || letter > '9') return std::nullopt;
    rank = rank * 10 + (letter - '0');
  }
  return rank;
}

// True if the environment variable `name` may tell a batch job's id, step, array index or rank, or
// is `torchrun_variable`. A report keeps the values of these variables, SLURM_PROCID's only if
// is_slurm_task() is true. (A report also keeps variables that begin with CUWARDEN_, CUDA_ or
// NVIDIA_.)
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

// True if `step`, a value of SLURM_STEP_ID, is one of Slurm's reserved numbers. These stand for
// steps that srun did not start: the batch script, an interactive shell, `extern`, a pending step.
constexpr bool is_special_step(std::string_view step) {
  return step.size() == 10 && step >= "4294967290" && step <= "4294967295";
}

// False if the process belongs to Slurm's batch script, interactive shell or the like. SLURM_PROCID
// is 0 in all processes there, so the value is no rank. True for all other processes, also outside
// of Slurm. The process belongs to a script if SLURM_STEP_ID is that of a special step
// (is_special_step()), or is not set or empty while ENVIRONMENT is BATCH. `lookup(name)` returns
// the value of an environment variable as std::optional<std::string_view>; none: not set.
template <class Lookup>
constexpr bool is_slurm_task(const Lookup& lookup) {
  const std::optional<std::string_view> step = lookup(step_variable);
  if (step && !step->empty()) return !is_special_step(*step);
  return lookup(batch_variable) != std::optional<std::string_view>("BATCH");
}

// Returns the rank of the process in its job, counted from 0; none if no variable gives one.
// `lookup(name)` returns the value of an environment variable as std::optional<std::string_view>;
// none: not set.
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

// Finds the batch job of a process from its environment. `lookup(name)` returns the value of an
// environment variable as std::optional<std::string_view>; none: not set. An empty value counts as
// not set, except for CUDA_VISIBLE_DEVICES, where it hides every device, and for
// TORCHELASTIC_RUN_ID.
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
