#include "runtime_hooks/rescue/process_means.hpp"

#include <algorithm>

#include "runtime_hooks/ledger/write/allocation_records/totals.hpp"
#include "runtime_hooks/ledger/write/devices.hpp"
#include "runtime_hooks/rescue/asking_modules.hpp"

namespace cuwarden::rescue {
namespace {

// Returns true where the calling thread holds a lock that is named in the comma-separated list.
bool holds_lock_among(HostProcess& process, std::string_view names) {
  constexpr std::string_view locks[] = {"python:gil"};
  return std::ranges::any_of(locks, [&](std::string_view lock) {
    return names.find(lock) != names.npos && process.holds_lock(lock);
  });
}

}  // namespace

bool ProcessMeans::is_unsafe_to_reclaim(std::string_view modules) {
  if (parts_.captures.any() || holds_lock_among(parts_.process, modules)) return true;
  if (!stack_) stack_ = parts_.sites.whole_stack(caller_);
  return !has_none_of(parts_.ledger.stacks, *stack_, modules);
}

// Judges by what is live now, since a rung may have given something back. Contexts and code do not
// count: how much of them is a neighbour's, which may leave, is not known.
bool ProcessMeans::may_others_help() {
  const std::uint64_t total = parts_.queries.total_bytes_of(device_);
  if (total == 0) return true;
  const std::uint64_t live = parts_.ledger.totals.live_bytes_on(device_);
  const std::uint64_t there =
      live - std::min(live, parts_.ledger.devices.spilled_bytes_on(device_));
  return asked_for_.bytes <= total && there <= total - asked_for_.bytes;
}

}  // namespace cuwarden::rescue
