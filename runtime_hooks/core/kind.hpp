// What a recorded allocation is, and the address space its key belongs to.
#pragma once

#include <cstdint>
#include <string_view>

namespace cuwarden {

// The report's `kind` column. Stored in the ledger: values are part of its layout.
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

// Page-locked and registered memory is the host's. Managed memory takes device memory only where it
// was touched there, which nobody says.
constexpr bool is_in_device_account(Kind kind) {
  return kind != Kind::pinned && kind != Kind::registered && kind != Kind::managed;
}

// One number may be a pointer, a handle and an array at once: a record is found by (space, value).
enum class Space : std::uint8_t {
  pointer,          // device, pinned, managed, stream-ordered and imported addresses
  registered,       // host ranges under cuMemHostRegister
  vmm_handle,       // CUmemGenericAllocationHandle
  vmm_mapping,      // address of a cuMemMap; carries no bytes of its own
  array,            // CUarray
  mipmapped_array,  // CUmipmappedArray
  external_memory,  // CUexternalMemory
  graph_exec,       // CUgraphExec that owns memory nodes
};

}  // namespace cuwarden
