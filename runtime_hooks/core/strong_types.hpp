// Numbers that must not be mixed up have types of their own; raw integers stay at the C edge.
#pragma once

#include <compare>
#include <cstdint>

namespace cuwarden {

// A number with a type of its own, which converts to no other number implicitly. `Tag` makes the
// type distinct and is never defined.
template <class Tag, class Representation>
struct Strong {
  Representation value{};  // The bare number.
  friend constexpr auto operator<=>(Strong, Strong) = default;
};

// A number of bytes.
using ByteCount = Strong<struct ByteCountTag, std::uint64_t>;
// A device or host address, or an opaque CUDA handle, as the driver gives it.
using DeviceAddress = Strong<struct DeviceAddressTag, std::uint64_t>;
// A device's CUDA ordinal as the process sees it, from 0; no_device for host memory or an unknown
// device.
using DeviceOrdinal = Strong<struct DeviceOrdinalTag, std::int32_t>;
inline constexpr DeviceOrdinal no_device{-1};  // Host memory, or an unknown device.
// A CUDA context: the CUcontext handle as a number; 0 means none.
using ContextId = Strong<struct ContextIdTag, std::uint64_t>;

// A call stack: its row number in the ledger's table of stacks, from 1; 0 means none.
using StackId = Strong<struct StackIdTag, std::uint32_t>;
// A group (allocations with the same call stack, function, kind and device): its row number in the
// ledger's table of groups, from 1; 0 means none.
using GroupId = Strong<struct GroupIdTag, std::uint32_t>;
// An allocation record: its row number in the ledger's table of records, from 1; 0 means none.
using RecordId = Strong<struct RecordIdTag, std::uint32_t>;
// A thread: its row number in the ledger's table of threads, from 1; 0 means none. Not the kernel's
// thread id.
using ThreadId = Strong<struct ThreadIdTag, std::uint32_t>;
// An incident (refused requests of one group): its row number in the ledger's table of incidents,
// from 1; 0 means none.
using IncidentId = Strong<struct IncidentIdTag, std::uint32_t>;
// A module (the program or a library): its row number in the ledger's table of modules, from 1; 0
// means none.
using ModuleId = Strong<struct ModuleIdTag, std::uint32_t>;
// Number of a hook (a function that stands in for one of CUDA's): the index of its row in
// runtime_hooks/driver/hooks.def and in the ledger's hooks table, from 0. ledger::no_function:
// none.
using HookId = Strong<struct HookIdTag, std::uint16_t>;

}  // namespace cuwarden
