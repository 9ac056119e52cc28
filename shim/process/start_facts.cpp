#include "shim/process/start_facts.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "runtime_hooks/core/job.hpp"
#include "runtime_hooks/ledger/write/names.hpp"
#include "shim/interpose/driver_table.hpp"
#include "shim/policy/spilling.hpp"

namespace cuwarden::shim {

void note_start(ledger::Writer& ledger, const Settings& settings) {
  const auto note = [&](std::string_view name, std::string_view value) {
    ledger.names.set_setting(name, value, std::getenv(std::string(name).c_str()) != nullptr);
  };
  note("CUWARDEN_ENABLED", "1");
  note("CUWARDEN_REPORT", settings.report);
  // The command reads these from the ledger when it makes the report
  // (reporters/reports/report_policy.hpp).
  note("CUWARDEN_REPORT_IF", report_if_text(settings.report_if));
  note("CUWARDEN_REPORT_KEEP",
       settings.report_keep == 0 ? "" : fmt::to_string(settings.report_keep));
  note("CUWARDEN_STACK_DEPTH", fmt::to_string(settings.stack_depth));
  note("CUWARDEN_LEDGER_DIR", settings.ledger_folder);
  note("CUWARDEN_LOG", log_level_names[static_cast<int>(settings.log_level)]);
  note("CUWARDEN_POOL", pool_mode_names[static_cast<int>(settings.pool)]);
  note("CUWARDEN_WAIT", fmt::format("{}ms", settings.wait_ns / 1'000'000));
  note("CUWARDEN_SYNC_TIMEOUT", fmt::format("{}ms", settings.sync_timeout_ns / 1'000'000));
  note("CUWARDEN_SPILL", spill_text(settings));
  note("CUWARDEN_MESH", settings.meshes ? "on" : "off");
  note("CUWARDEN_MESH_PAUSE", fmt::format("{}ms", settings.mesh_pause_ns / 1'000'000));
  note("CUWARDEN_SYMBOL_TIME", fmt::format("{}ms", settings.symbol_time_ns / 1'000'000));
  note("CUWARDEN_DEEPBIND", settings.drop_deepbind ? "drop" : "keep");
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
