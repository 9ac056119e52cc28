#include "shim/process/start_facts.hpp"

#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "runtime_hooks/core/job.hpp"
#include "runtime_hooks/ledger/write/names.hpp"
#include "shim/interpose/driver_table.hpp"

namespace cuwarden::shim {

void note_start(ledger::Writer& ledger, const Settings& settings) {
  // The conditions and the number of reports are read again from the ledger by the process that
  // makes the report (reporters/reports/report_policy.hpp).
  each_setting(settings, [&](std::string_view variable, const std::string& value) {
    ledger.names.set_setting(variable, value,
                             std::getenv(std::string(variable).c_str()) != nullptr);
  });
  const bool is_slurm_rank = is_slurm_task([](std::string_view name) {
    const char* value = std::getenv(std::string(name).c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string_view>(value);
  });
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = text.substr(0, equals);
    if (name == "SLURM_PROCID" && !is_slurm_rank) continue;
    if (name.starts_with("CUWARDEN_") || name.starts_with("CUDA_") || name.starts_with("NVIDIA_") ||
        is_job_variable(name))
      ledger.names.set_environment(name, text.substr(equals + 1));
  }
  int version = 0;
  const auto& real = real_driver();
  if (real.cuDriverGetVersion != nullptr && real.cuDriverGetVersion(&version) == CUDA_SUCCESS)
    ledger.set_versions(version, 0);
}

}  // namespace cuwarden::shim
