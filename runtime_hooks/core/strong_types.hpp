// Numbers that must not be mixed up have types of their own; raw integers stay at the C edge.
#pragma once

#include <compare>
#include <cstdint>

namespace cuwarden {

template <class Tag, class Representation>
struct Strong {
  Representation value{};
  friend constexpr auto operator<=>(Strong, Strong) = default;
};

using ByteCount = Strong<struct ByteCountTag, std::uint64_t>;
// A device or host address, or an opaque CUDA handle, as the driver gives it.
using DeviceAddress = Strong<struct DeviceAddressTag, std::uint64_t>;
// CUDA ordinal as the process sees it; no_device for host memory.
using DeviceOrdinal = Strong<struct DeviceOrdinalTag, std::int32_t>;
inline constexpr DeviceOrdinal no_device{-1};
// A CUcontext as a number; 0 means none.
using ContextId = Strong<struct ContextIdTag, std::uint64_t>;

// Row numbers of the ledger's tables. Row 0 is reserved, so that 0 means none.
using StackId = Strong<struct StackIdTag, std::uint32_t>;
using GroupId = Strong<struct GroupIdTag, std::uint32_t>;
using RecordId = Strong<struct RecordIdTag, std::uint32_t>;
using ThreadId = Strong<struct ThreadIdTag, std::uint32_t>;
using IncidentId = Strong<struct IncidentIdTag, std::uint32_t>;
using ModuleId = Strong<struct ModuleIdTag, std::uint32_t>;
// Index of a row of driver/hooks.def; the ledger carries the names.
using HookId = Strong<struct HookIdTag, std::uint16_t>;

}  // namespace cuwarden
