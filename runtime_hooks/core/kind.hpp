// The kind of a recorded allocation, and the address space that its key belongs to.
#pragma once

#include <cstdint>
#include <string_view>

namespace cuwarden {

// The report's `kind` column. The ledger stores these values, so they are part of its layout.
enum class Kind : std::uint8_t {
  device,
  pinned,
  registered,
  managed,
  stream_ordered,
  vmm,
  array,
  imported,
  graph,
};
inline constexpr std::uint8_t kind_count = 9;

constexpr std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::device:
      return "device";
    case Kind::pinned:
      return "pinned";
    case Kind::registered:
      return "registered";
    case Kind::managed:
      return "managed";
    case Kind::stream_ordered:
      return "stream_ordered";
    case Kind::vmm:
      return "vmm";
    case Kind::array:
      return "array";
    case Kind::imported:
      return "imported";
    case Kind::graph:
      return "graph";
  }
  return "unknown";
}

// True if memory of this kind counts as used on its device. Page-locked and registered memory is
// the host's. Managed memory takes device memory only where it was touched there, which the driver
// does not tell.
constexpr bool is_in_device_account(Kind kind) {
  return kind != Kind::pinned && kind != Kind::registered && kind != Kind::managed;
}

// The key of an allocation record is a pair of space and value, because one number may be a
// pointer, a handle and an array at once.
enum class Space : std::uint8_t {
  pointer,          // Device, pinned, managed, stream-ordered and imported addresses.
  registered,       // Host ranges under cuMemHostRegister.
  vmm_handle,       // CUmemGenericAllocationHandle.
  vmm_mapping,      // Address of a cuMemMap, which carries no bytes of its own.
  array,            // CUarray.
  mipmapped_array,  // CUmipmappedArray.
  external_memory,  // CUexternalMemory.
  graph_exec,       // CUgraphExec that owns memory nodes.
};

}  // namespace cuwarden
