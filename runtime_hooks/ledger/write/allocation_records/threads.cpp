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

}  // namespace cuwarden::ledger
