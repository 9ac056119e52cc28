// Numbers that must not be mixed up have types of their own; raw integers stay at the C edge.
#pragma once

#include <compare>
#include <cstdint>

namespace cuwarden {

// A number with a type of its own, which converts to no other number implicitly. `Tag` makes the
// type distinct and is never defined.
template <class Tag, class Representation>
struct Strong {
  Representation value{};
  friend constexpr auto operator<=>(Strong, Strong) = default;
};

// A number of bytes.
using ByteCount = Strong<struct ByteCountTag, std::uint64_t>;
// A device or host address, or an opaque CUDA handle, as the driver gives it.
using DeviceAddress = Strong<struct DeviceAddressTag, std::uint64_t>;
// A device's CUDA ordinal as the process sees it, from 0; no_device for host memory.
using DeviceOrdinal = Strong<struct DeviceOrdinalTag, std::int32_t>;
inline constexpr DeviceOrdinal no_device{-1};  // Stands for the host.
// A CUDA context: the CUcontext handle as a number; 0 means none.
using ContextId = Strong<struct ContextIdTag, std::uint64_t>;

// Row numbers in the ledger's tables of stacks, groups, records, threads, incidents and modules.
// Rows count from 1; 0 means none.
using StackId = Strong<struct StackIdTag, std::uint32_t>;
using GroupId = Strong<struct GroupIdTag, std::uint32_t>;
using RecordId = Strong<struct RecordIdTag, std::uint32_t>;
using ThreadId = Strong<struct ThreadIdTag, std::uint32_t>;
using IncidentId = Strong<struct IncidentIdTag, std::uint32_t>;
using ModuleId = Strong<struct ModuleIdTag, std::uint32_t>;
// Number of a hook: the index of its row in driver/hooks.def and in the ledger's hooks table, from
// 0.
using HookId = Strong<struct HookIdTag, std::uint16_t>;

}  // namespace cuwarden
