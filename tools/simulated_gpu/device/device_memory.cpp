// Takes bytes of the device and gives them back.
#include "tools/simulated_gpu/device/device_memory.hpp"

#include <sys/mman.h>

#include <algorithm>

#include "tools/simulated_gpu/device/pool.hpp"
#include "tools/simulated_gpu/device/simulator.hpp"
#include "tools/simulated_gpu/hardware/sharing.hpp"

namespace cuwarden::simulated_gpu {
namespace {

// Multiprocessors, threads on each, and the local memory (bytes) that each thread has by default.
constexpr std::size_t kMultiprocessors = 132;
constexpr std::size_t kThreadsEach = 2048;
constexpr std::size_t kDefaultLocal = 1024;
// Returns the bytes of tables that the device needs for so many bytes of mapped host memory: 8
// bytes for 4 KiB, in steps of 2 MiB for every GiB.
std::size_t host_tables(std::size_t mapped) { return mapped / 512 / kPage * kPage; }

}  // namespace

void trim_device(Device& device) {
  for (MemoryPool* pool : all_memory_pools()) {
    if (pool->device == &device) pool->trim(0);
  }
  device.refund(device.graph_reserved - device.graph_used);
  device.graph_reserved = device.graph_used;
}

bool charge_device(Device& device, std::size_t bytes) {
  if (device.charge(bytes)) return true;
  trim_device(device);
  return device.charge(bytes);
}

bool map_host(Device& device, std::size_t bytes) {
  const std::size_t needed = host_tables(device.host_mapped + bytes);
  if (needed > device.host_tables && !charge_device(device, needed - device.host_tables))
    return false;
  device.host_tables = std::max(device.host_tables, needed);
  device.host_mapped += bytes;
  return true;
}

void unmap_host(Device& device, std::size_t bytes) {
  device.host_mapped -= bytes;
  const std::size_t needed = host_tables(device.host_mapped);
  device.refund(device.host_tables - needed);
  device.host_tables = needed;
}

CUdeviceptr take_linear(Context& context, std::size_t size, bool& in_slab, std::size_t& held) {
  Device& device = *context.device;
  in_slab = size <= kSlabLimit;
  if (in_slab) {
    if (const CUdeviceptr found = context.slabs.take(size)) {
      held = 0;
      return found;
    }
  } else if (size > device.capacity) {
    return 0;
  }
  held = in_slab ? kPage : round_up(size, kPage);
  if (!charge_device(device, held)) return 0;
  const CUdeviceptr start = device.arena.take(held);
  if (start == 0) {
    device.refund(held);
    return 0;
  }
  if (!in_slab) return start;
  context.slabs.open(start);
  held = 0;  // The page is charged to the slab, not to the range that opened it.
  return context.slabs.take(size);
}

void release_range(const Range& given) {
  Simulator& sim = simulator();
  const Range range = given;  // A copy, because the table's row is erased first.
  sim.ranges.erase(range.start);
  void* const address = reinterpret_cast<void*>(range.start);
  switch (range.kind) {
    case RangeKind::device:
      if (range.in_slab) {
        CUdeviceptr page = 0;
        if (range.context->slabs.give(range.start, range.requested, page)) {
          unshare_pages(page, kPage);
          range.device->refund(kPage);
          range.device->arena.give(page, kPage);
        }
      } else {
        unshare_pages(range.start, range.held);
        range.device->refund(range.held);
        range.device->arena.give(range.start, range.held);
      }
      break;
    case RangeKind::stream_ordered:
      range.pool->give_now(range.start);
      break;
    case RangeKind::pinned:
      sim.pinned_bytes -= range.held;
      munmap(address, range.held);
      break;
    case RangeKind::managed:
    case RangeKind::imported:
      if (range.held > 0) munmap(static_cast<char*>(address) - range.lead, range.held);
      break;
    case RangeKind::registered:
      sim.pinned_bytes -= range.held;
      break;
    case RangeKind::mapping:
    case RangeKind::graph:
      break;
  }
}

void release_context_memory(Context& context) {
  Simulator& sim = simulator();
  const auto owned = sim.ranges.where([&](const Range& r) {
    return r.context == &context && r.kind != RangeKind::stream_ordered &&
           r.kind != RangeKind::mapping;
  });
  for (const CUdeviceptr start : owned) release_range(*sim.ranges.at(start));
  for (const DeferredFree& freed : context.deferred) {
    sim.ranges.insert(freed.range);
    release_range(freed.range);
  }
  context.deferred.clear();
}

std::size_t local_memory_cost(std::size_t bytes) {
  if (bytes <= kDefaultLocal) return 0;
  return kMultiprocessors * kThreadsEach * (bytes - kDefaultLocal);
}

}  // namespace cuwarden::simulated_gpu
