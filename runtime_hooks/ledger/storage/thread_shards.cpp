#include "runtime_hooks/ledger/storage/thread_shards.hpp"

#include <unistd.h>

#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/thread_id.hpp"
#include "runtime_hooks/ledger/format/group_counts.hpp"

namespace cuwarden::ledger {

constinit thread_local ThreadShards::Mine ThreadShards::mine_{nullptr, 0, 0};

bool ThreadShards::create(std::uint32_t serial, std::uint32_t pid) noexcept {
  memory_ = Mapping::anonymous(count * sizeof(ThreadShard));
  if (!memory_) return false;
  for (std::uint32_t i = 0; i < count; ++i) thread_shards()[i].number_ = i;
  serial_ = serial;
  pid_ = pid;
  return true;
}

ThreadShard& ThreadShards::take() noexcept {
  // A confined thread cannot ask the kernel which threads have ended, so it gets the shared shard.
  if (is_confined()) return thread_shards()[0];
  const ErrnoGuard keep;
  // A process that shares this memory (vfork, CLONE_VM) cannot tell which of the parent's threads
  // live.
  if (static_cast<std::uint32_t>(getpid()) != pid_) return thread_shards()[0];
  const auto thread = static_cast<std::uint32_t>(own_thread_id());
  const auto take_from = [&](std::uint32_t owner, std::uint32_t shard) {
    return thread_shards()[shard].owner_.compare_exchange_strong(owner, thread,
                                                                 std::memory_order_acq_rel);
  };
  std::uint32_t found = 0;
  for (std::uint32_t i = 1; i < count && found == 0; ++i) {
    if (thread_shards()[i].owner_.load(relaxed) == 0 && take_from(0, i)) found = i;
  }
  for (std::uint32_t i = 1; i < count && found == 0; ++i) {
    const std::uint32_t owner = thread_shards()[i].owner_.load(relaxed);
    // If a new thread has the ended thread's id, the shard stays unused until that thread ends,
    // too.
    if (thread_has_ended(static_cast<int>(owner)) && take_from(owner, i)) found = i;
  }
  ThreadShard& shard = thread_shards()[found];
  if (found != 0) {
    ++shard.tenancy_;
    shard.in_call_.store(0, relaxed);  // the last thread may have left its call by a longjmp
    std::uint32_t used = used_.load(relaxed);
    while (used <= found && !used_.compare_exchange_weak(used, found + 1)) {
    }
    if (shard.calls_ == nullptr) {
      const std::uint64_t hooks = storage_.used(RegionId::hooks);
      const std::uint64_t first = storage_.allocate(RegionId::shard_calls, calls_in_shard(hooks));
      if (first != 0) {
        shard.calls_ = storage_.rows<std::atomic<std::uint64_t>>(RegionId::shard_calls) + first;
        shard.hooks_ = hooks;
      }
    }
  }
  // A signal handler that interrupts these stores finds no shard, and takes another one, which
  // lasts as long as the thread.
  mine_.serial = 0;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  mine_.shard = &shard;
  mine_.row = 0;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  mine_.serial = serial_;
  return shard;
}

Counters& ThreadShards::find_group_shard(ThreadShard& shard, Group& group, GroupId id) noexcept {
  GroupShard* const group_shards = storage_.rows<GroupShard>(RegionId::group_shards);
  std::uint32_t found = group.first_shard.load(std::memory_order_acquire);
  while (found != 0 && group_shards[found].shard != shard.number_) found = group_shards[found].next;
  if (found == 0) {
    found = static_cast<std::uint32_t>(storage_.allocate(RegionId::group_shards, 1));
    if (found == 0) {
      // Another thread may count in the same counters at the same moment, so they are no
      // longer exact. The ledger says so.
      storage_.add_reason(reason_ledger_full);
      return group.counters;
    }
    GroupShard& group_shard = group_shards[found];
    group_shard.group = id.value;
    group_shard.shard = shard.number_;
    std::uint32_t first = group.first_shard.load(relaxed);
    do {
      store_field(group_shard.next, first);
    } while (!group.first_shard.compare_exchange_weak(first, found, std::memory_order_release));
  }
  shard.counter_rows_[id.value % ThreadShard::remembered].store(
      std::uint64_t{id.value} << 32 | found, relaxed);
  return group_shards[found].counters;
}

void ThreadShards::count_for_all(HookId hook) noexcept {
  if (hook.value < storage_.used(RegionId::hooks))
    storage_.rows<Hook>(RegionId::hooks)[hook.value].calls.fetch_add(1, relaxed);
}

std::uint64_t ThreadShards::live_count(const Series& series, std::size_t row) const noexcept {
  std::uint64_t live = series.live_count.load(relaxed);
  const std::uint32_t used = used_.load(relaxed);
  for (std::uint32_t i = 1; i < used && row < ThreadShard::series_limit; ++i) {
    live += thread_shards()[i].live_[row].load(relaxed);
  }
  return live;
}

}  // namespace cuwarden::ledger
