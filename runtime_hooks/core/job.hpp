// What the environment says about the job that a process belongs to. Pure: the environment is
// given as a lookup from name to value, so that a running process and a ledger are asked alike.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace cuwarden {

struct Job {
  std::optional<std::string_view> scheduler;  // slurm, pbs, lsf, sge, cobalt, flux
  std::optional<std::string_view> id;
  std::optional<int> rank;
  std::optional<std::string_view> visible_devices;
};

// Variables that a report keeps (besides CUWARDEN_*, CUDA_* and NVIDIA_*), and that job_from reads.
// The first job id that is set names the scheduler; the first rank that is set is the rank:
// a launcher's own comes before the scheduler's, because it is the finer one.
inline constexpr std::array<std::array<std::string_view, 2>, 6> job_id_variables{{
    {"SLURM_JOB_ID", "slurm"},
    {"PBS_JOBID", "pbs"},
    {"LSB_JOBID", "lsf"},
    {"COBALT_JOBID", "cobalt"},
    {"FLUX_JOB_ID", "flux"},
    {"JOB_ID", "sge"},
}};
inline constexpr std::array<std::string_view, 6> rank_variables{
    "PMIX_RANK",  // PMIx: Open MPI 5, srun --mpi=pmix
    "OMPI_COMM_WORLD_RANK",
    "PMI_RANK",  // MPICH and its relatives
    "SLURM_PROCID",
    "FLUX_TASK_RANK",
    "RANK",  // torchrun
};

constexpr std::optional<int> parse_rank(std::string_view text) {
  if (text.empty() || text.size() > 9) return std::nullopt;
  int rank = 0;
  for (const char letter : text) {
    if (letter < '0' || letter > '9') return std::nullopt;
    rank = rank * 10 + (letter - '0');
  }
  return rank;
}

constexpr bool is_job_variable(std::string_view name) {
  for (const auto& variable : job_id_variables) {
    if (variable[0] == name) return true;
  }
  for (const std::string_view variable : rank_variables) {
    if (variable == name) return true;
  }
  return false;
}

// `lookup(name)` gives std::optional<std::string_view>. An empty value counts as unset, except for
// CUDA_VISIBLE_DEVICES, where it hides every device.
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
  for (const std::string_view name : rank_variables) {
    const std::optional<std::string_view> value = lookup(name);
    if (!value) continue;
    job.rank = parse_rank(*value);
    if (job.rank) break;
  }
  job.visible_devices = lookup(std::string_view{"CUDA_VISIBLE_DEVICES"});
  return job;
}

}  // namespace cuwarden
