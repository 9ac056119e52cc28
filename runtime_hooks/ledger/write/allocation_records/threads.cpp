#include "runtime_hooks/ledger/write/allocation_records/threads.hpp"

#include <sys/prctl.h>

#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/thread_id.hpp"

namespace cuwarden::ledger {

ThreadId Threads::add_mine() noexcept {
  if (is_confined()) return {};  // a confined thread must not ask the kernel for its name and id
  const ErrnoGuard guard;
  const std::uint64_t now_ns = time_.now_ns();
  const auto row = static_cast<std::uint32_t>(storage_.allocate(RegionId::threads, 1));
  thread_shards_.set_my_row(row == 0 ? ThreadShards::no_row : row);
  if (row == 0) {
    storage_.add_reason(reason_names_missing);
    return {};
  }
  Thread& thread = storage_.rows<Thread>(RegionId::threads)[row];
  thread.tid = static_cast<std::uint32_t>(own_thread_id());
  prctl(PR_GET_NAME, thread.name);
  thread.first_ns = now_ns;
  thread.state.store(1, std::memory_order_release);
  return ThreadId{row};
}

void Threads::begin_rung(IncidentId incident, Rung rung, std::uint64_t bytes) noexcept {
  const ThreadId thread = mine();
  if (thread.value == 0) return;
  RequestUnderWay& mine = storage_.rows<Thread>(RegionId::threads)[thread.value].under_way;
  mine.rung.store(rung, std::memory_order_relaxed);
  mine.bytes.store(bytes, std::memory_order_relaxed);
  mine.since_ns.store(time_.now_ns(), std::memory_order_relaxed);
  mine.incident.store(incident.value, std::memory_order_release);
}

void Threads::end_rung() noexcept {
  const std::uint64_t row = known_row();
  if (row == 0) return;
  storage_.rows<Thread>(RegionId::threads)[row].under_way.incident.store(0,
                                                                         std::memory_order_release);
}

}  // namespace cuwarden::ledger
