// The writer's knowledge of threads: each that makes a call has a row with its number and its name.
#include <sys/prctl.h>

#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/thread_id.hpp"
#include "runtime_hooks/ledger/write/writer_state.hpp"

namespace cuwarden::ledger {

ThreadId Writer::thread() noexcept {
  const std::uint32_t row = state_.lanes.my_row();
  if (row == 0) return state_.register_thread(now_ns());
  return ThreadId{row == Lanes::no_row ? 0 : row};
}

std::uint64_t Writer::known_thread_row() const noexcept {
  const std::uint32_t row = state_.lanes.my_row();
  return row == Lanes::no_row ? 0 : row;
}
std::uint64_t Writer::thread_rows() const noexcept {
  return state_.storage.used(RegionId::threads);
}

ThreadId Writer::State::register_thread(std::uint64_t now) noexcept {
  if (is_confined()) return {};  // its name and number would have to be asked for
  const ErrnoGuard guard;
  const auto row = static_cast<std::uint32_t>(storage.allocate(RegionId::threads, 1));
  lanes.set_my_row(row == 0 ? Lanes::no_row : row);
  if (row == 0) {
    storage.add_reason(reason_names_missing);
    return {};
  }
  Thread& thread = storage.rows<Thread>(RegionId::threads)[row];
  thread.tid = static_cast<std::uint32_t>(own_thread_id());
  prctl(PR_GET_NAME, thread.name);
  thread.first_ns = now;
  thread.state.store(1, std::memory_order_release);
  return ThreadId{row};
}

ThreadSlot Writer::thread_slot() noexcept { return state_.lanes.mine().slot(); }

}  // namespace cuwarden::ledger
