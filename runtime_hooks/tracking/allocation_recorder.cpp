#include "runtime_hooks/tracking/allocation_recorder.hpp"

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/ledger/format/record_fields.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "runtime_hooks/ledger/write/allocation_records/allocations.hpp"
#include "runtime_hooks/ledger/write/allocation_records/group_table.hpp"
#include "runtime_hooks/ledger/write/allocation_records/virtual_memory.hpp"

namespace cuwarden::tracking {

void AllocationRecorder::give_notice_of(std::uint32_t reasons) noexcept {
  const ErrnoGuard keep;
  const std::uint32_t fresh = reasons & ~noticed_.fetch_or(reasons, std::memory_order_relaxed);
  for (const ledger::Reason reason : {ledger::reason_ledger_full, ledger::reason_recording_stopped})
    if ((fresh & reason) != 0) listener_.ledger_is_incomplete(reason);
}

DeviceOrdinal AllocationRecorder::allocated(const Caller& caller,
                                            const Allocation& allocation) noexcept {
  const ErrnoGuard keep;
  implicit_.bases.memory_may_change();  // before the device is read below
  const CurrentContext here = queries_.current_that_served();
  const DeviceOrdinal device = allocation.device_in(here);
  readings_.meet(here.device);
  // Handles and memory pools may lie on a device that has no context here.
  if (device != here.device) {
    readings_.meet(device);
    implicit_.disturb(device);
  }
  const GroupId group = sites_.group_unguarded(caller, allocation.kind, device);
  if (allocation.address == 0) return device;  // success without memory: a size of 0
  // The time of the kernel's last tick is used: its exact answer would take a tenth of the call.
  const std::uint64_t now = ledger_.time.recently_ns();
  ledger::NewRecord record;
  record.space = allocation.space;
  record.address.value = allocation.address;
  record.bytes.value = allocation.bytes;
  record.group = group;
  record.time_ns = now;
  record.context = contexts_.owner(here.context);
  record.references = allocation.opened ? 1 : 0;
  if (allocation.owned_by_context) record.flags |= ledger::record_owned_by_context;
  if (allocation.counts_no_bytes) record.flags |= ledger::record_counts_no_bytes;
  if (allocation.in_pool) record.flags |= ledger::record_in_pool;
  if (allocation.space == Space::vmm_handle)
    ledger_.virtual_memory.created(record);
  else
    ledger_.allocations.add(record);
  give_notice();
  readings_.read_now_and_then(now);
  return device;
}

ledger::TakenRecord AllocationRecorder::take(Space space, std::uint64_t address) noexcept {
  const ledger::TakenRecord taken = ledger_.allocations.take(space, DeviceAddress{address});
  if (taken && implicit_.any_span())
    implicit_.disturb(ledger_.groups.device_of(taken.fields.group));
  return taken;
}

void AllocationRecorder::settle(const ledger::TakenRecord& taken, CUresult result) noexcept {
  implicit_.bases.memory_may_change();  // before the device is read below
  const bool gone = result == CUDA_SUCCESS || result == CUDA_ERROR_DEINITIALIZED;
  if (!taken) {
    if (result == CUDA_SUCCESS) unknown_free();
    return;
  }
  if (gone)
    freed_addresses.add(taken.address.value);
  else
    ledger_.allocations.put_back(taken);
  if (implicit_.any_span()) implicit_.disturb(ledger_.groups.device_of(taken.fields.group));
  give_notice();
  if (result == CUDA_SUCCESS) readings_.read_now_and_then(taken.taken_ns);
}

void AllocationRecorder::unknown_free() noexcept {
  give_notice();
  // An incomplete ledger may lack the allocation itself: such a free proves nothing.
  constexpr std::uint32_t incomplete = noteworthy | ledger::reason_confined;
  if ((ledger_.file.header().reasons.load(std::memory_order_relaxed) & incomplete) == 0)
    ledger_.allocations.count_unknown_free();
}

void AllocationRecorder::unknown_release() noexcept {
  if (!unrecorded_.load(std::memory_order_relaxed)) unknown_free();
}

}  // namespace cuwarden::tracking
