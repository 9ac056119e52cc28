// The kind of a recorded allocation, and the address space that its key belongs to.
#pragma once

#include <cstdint>
#include <iterator>
#include <string_view>

namespace cuwarden {

// The kind of memory of a recorded allocation: the report's `kind` column. The ledger stores these
// values, so the enumerators' order is part of the ledger's layout.
enum class Kind : std::uint8_t {
  device,          // Linear device memory (cuMemAlloc and relatives).
  pinned,          // Page-locked host memory (cuMemHostAlloc, cuMemAllocHost).
  registered,      // Host memory that the program has page-locked by cuMemHostRegister.
  managed,         // Managed memory (cuMemAllocManaged).
  stream_ordered,  // Stream-ordered memory (cuMemAllocAsync, cuMemAllocFromPoolAsync).
  vmm,             // Physical memory of cuMemCreate, on a device or the host.
  array,           // CUDA arrays and mipmapped arrays.
  imported,        // Memory of another process or another API, imported by the program.
  graph,           // Memory that nodes of CUDA graphs allocate when the graph is launched.
  // The kinds from here on are implicit memory: the driver takes it for an object or a call of the
  // program, without being asked for memory.
  stream,  // Memory that the driver takes for a stream.
  // Memory that the driver takes for modules and libraries, and for kernels' code loaded later.
  module,
  graph_exec,    // Memory that the driver takes for an executable graph.
  context,       // Memory that the driver takes for a context.
  local_memory,  // Memory that the driver takes for the local memory of kernels.
  heap,          // Memory that the driver takes for calls inside kernels, such as malloc().
  // A block that a framework hands out. It lies in memory that the framework has taken from CUDA,
  // which has an allocation record of its own.
  framework_block,
};
inline constexpr std::uint8_t kind_count = 16;  // Number of kinds of memory (enumerators of Kind).

// True if memory of this kind is implicit: the driver takes it for an object or a call of the
// program, such as a context, without being asked for memory.
constexpr bool is_implicit(Kind kind) { return kind >= Kind::stream && kind <= Kind::heap; }

// True if the program asked CUDA for memory of this kind, so that totals of the process count it.
constexpr bool is_asked_for(Kind kind) {
  return !is_implicit(kind) && kind != Kind::framework_block;
}

// True if the driver takes memory of this kind for kernels to use while they run: local memory, and
// memory for calls inside kernels such as malloc(). All kernels of a context share it. The program
// can free it only by ending the context or by a smaller limit (cuCtxSetLimit).
constexpr bool is_for_kernels(Kind kind) {
  return kind == Kind::local_memory || kind == Kind::heap;
}

// Names of the kinds of memory in reports, by Kind.
inline constexpr std::string_view kind_names[] = {
    "device",  "pinned",       "registered", "managed",        "stream_ordered", "vmm",
    "array",   "imported",     "graph",      "stream",         "module",         "graph_exec",
    "context", "local_memory", "heap",       "framework_block"};
static_assert(std::size(kind_names) == kind_count);

// Returns the name in reports of this kind of memory; "unknown" for a value that is no Kind.
constexpr std::string_view kind_name(Kind kind) {
  return static_cast<std::uint8_t>(kind) < kind_count ? kind_names[static_cast<std::uint8_t>(kind)]
                                                      : "unknown";
}

// True if the live allocations of this kind are a part of their device's used memory. False for
// page-locked and registered memory, which is the host's. False for managed memory: the driver does
// not tell how much of it is on the device. False for implicit memory, which the ledger sums up by
// device (ImplicitBytes), and for blocks of frameworks, which are parts of other memory.
constexpr bool is_in_device_account(Kind kind) {
  return kind != Kind::pinned && kind != Kind::registered && kind != Kind::managed &&
         is_asked_for(kind);
}

// True if an allocation of this kind takes its bytes from the device when it is made, and returns
// them to the device when it is freed. False for memory of memory pools and graphs, which keep
// freed bytes for later. False also for imported memory, which belongs to another process or API.
constexpr bool is_taken_at_once(Kind kind) {
  return kind == Kind::device || kind == Kind::vmm || kind == Kind::array;
}

// The kind of number by which an allocation record is found. A pointer, a handle and an array may
// be equal as numbers, so the key of a record is a pair of Space and number.
enum class Space : std::uint8_t {
  pointer,     // Address of device, pinned, managed, stream-ordered, imported or graph memory.
  registered,  // Address of a range of host memory that was passed to cuMemHostRegister.
  vmm_handle,  // CUmemGenericAllocationHandle: handle of virtual memory.
  // Address at which cuMemMap has mapped a handle's memory. The record counts no bytes of its own.
  vmm_mapping,
  array,            // CUarray.
  mipmapped_array,  // CUmipmappedArray.
  external_memory,  // CUexternalMemory.
  graph_exec,       // CUgraphExec.
  stream,           // CUstream.
  module,           // CUmodule.
  library,          // CUlibrary.
  kernel,           // CUfunction or CUkernel: code that was loaded when it was first needed.
  context,          // CUcontext.
  // Number that cuwarden makes up for memory of kind local_memory or heap, which has no handle.
  for_kernels,
  framework_block,  // Address of a block that a framework has handed out.
};

}  // namespace cuwarden
