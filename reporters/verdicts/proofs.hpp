// The proofs of verdicts: figures that show why a request was refused. All figures are as of the
// refusal. Figures whose names end in `bytes` are in bytes. The report leaves out null figures.
// `requested_bytes` is null if the call does not say how much it asks for; `free_bytes` is null if
// the device could not be asked.
#pragma once

#include <string>

#include "reporters/model/fields.hpp"
#include "reporters/model/values.hpp"

namespace cuwarden::verdicts {

using model::Figure;
using model::Text;

// Figures that prove the verdict size_overflow: the size comes from a negative number or an
// overflow.
struct SizeProof {
  // Size of the request in bytes, in decimal digits, since the number may be above 2^53.
  Text requested;
  Figure requested_bytes;  // size of the request in bytes; null in the report if above 2^53
  CUWARDEN_FIELDS(requested, requested_bytes)
};

// Figures that prove the verdict device_restricted: the device's compute mode, a MIG slice, a quota
// of MPS or a limit of the process's cgroup forbids the request. Figures of other restrictions are
// null.
struct RestrictionProof {
  // Compute mode of the device, if it keeps this process from making a context there: "prohibited"
  // or "exclusive_process". Null: another restriction was found.
  Text compute_mode;
  // Bytes that other processes hold on the device, as NVML lists them. Null if compute_mode is not
  // "exclusive_process".
  Figure other_processes_bytes;
  Figure total_bytes;  // size of the process's MIG slice; null: another restriction was found
  Text slice;          // name of the process's MIG slice; null: another restriction was found
  // Size of the device of which the MIG slice is a part; null: another restriction was found.
  Figure whole_device_bytes;
  // Free bytes of the device. Null if neither a quota of MPS nor a limit of the cgroup is the
  // cause.
  Figure free_bytes;
  Figure mps_limit_bytes;  // quota of MPS for the process; null: another restriction was found
  // Live bytes that the process allocated. Null if neither a quota of MPS nor a limit of the cgroup
  // is the cause.
  Figure own_bytes;
  // All bytes of the process that count towards the quota of MPS; null: another restriction was
  // found.
  Figure held_bytes;
  Figure requested_bytes;  // size of the refused request; null: unknown, or a context was refused
  // Limit of the process's cgroup on the device's memory, for all its processes together, and the
  // bytes that count towards it. Null if another restriction is the cause.
  Figure cgroup_device_limit_bytes, cgroup_device_used_bytes;
  CUWARDEN_FIELDS(compute_mode, other_processes_bytes, total_bytes, slice, whole_device_bytes,
                  free_bytes, mps_limit_bytes, own_bytes, held_bytes, requested_bytes,
                  cgroup_device_limit_bytes, cgroup_device_used_bytes)
};

// Figures that prove the verdict larger_than_device: the whole device is smaller than the request,
// or the process's MIG slice is, if the size of the whole device is unknown.
struct LargerProof {
  Figure total_bytes;  // bytes of the device, or of the process's MIG slice of it
  Text slice;          // name of the process's MIG slice; null: the process has a whole device
  // Size of the device of which the MIG slice is a part; null: unknown, or no slice.
  Figure whole_device_bytes;
  Figure requested_bytes;  // size of the refused request
  CUWARDEN_FIELDS(total_bytes, slice, whole_device_bytes, requested_bytes)
};

// Figures that prove the verdict address_space_gap: the process lacks addresses, or may have no
// more mappings. Null figures are unknown.
struct AddressProof {
  // Limit of the process's address space (ulimit -v); null: none.
  Figure address_space_limit_bytes;
  Figure address_space_bytes;  // addresses in use
  Figure largest_gap_bytes;    // largest range of addresses without a mapping
  Figure mappings;             // number of the process's mappings
  Figure max_mappings;         // most mappings that the kernel allows a process (vm.max_map_count)
  Figure requested_bytes;      // size of the refused request
  CUWARDEN_FIELDS(address_space_limit_bytes, address_space_bytes, largest_gap_bytes, mappings,
                  max_mappings, requested_bytes)
};

// Figures that prove the verdict host_ram_exhausted: the host, or the process's cgroup, lacks
// memory that can be page-locked.
struct HostProof {
  Figure ram_bytes;            // bytes of the host's RAM
  Figure ram_available_bytes;  // available bytes of the RAM (MemAvailable)
  Figure swap_free_bytes;      // free bytes of swap
  // Memory limit of the process's cgroup or of one above it: the limit that leaves the fewest bytes
  // unused. Null: none, or unknown.
  Figure cgroup_limit_bytes;
  // Bytes in use in the cgroup that has the limit cgroup_limit_bytes, or in the process's own one
  // if there is no limit; null: unknown.
  Figure cgroup_used_bytes;
  Figure overcommit_mode;  // value of vm.overcommit_memory, 0 to 2
  // CommitLimit and Committed_AS of /proc/meminfo; null if they are not the cause.
  Figure commit_limit_bytes, committed_bytes;
  Figure pinned_bytes;     // live page-locked memory that the process allocated
  Figure requested_bytes;  // size of the refused request
  CUWARDEN_FIELDS(ram_bytes, ram_available_bytes, swap_free_bytes, cgroup_limit_bytes,
                  cgroup_used_bytes, overcommit_mode, commit_limit_bytes, committed_bytes,
                  pinned_bytes, requested_bytes)
};

// Figures that prove the verdict held_by_page_cache: the device shares its memory with the host,
// and the host's page cache takes memory that the request would have fitted into.
struct CacheProof {
  Figure page_cache_bytes;     // bytes of the page cache that the kernel could drop; null: unknown
  Figure ram_available_bytes;  // available bytes of the host's RAM (MemAvailable); null: unknown
  Figure free_bytes;           // free bytes of the device, without the page cache; null: unknown
  Figure requested_bytes;      // size of the refused request; null: unknown
  CUWARDEN_FIELDS(page_cache_bytes, ram_available_bytes, free_bytes, requested_bytes)
};

// Figures that prove the verdict pending_frees: memory was freed in stream order (cuMemFreeAsync),
// but work on the device has not reached the frees.
struct PendingProof {
  // Bytes, at least, whose frees the device has not reached, by an estimate.
  Figure pending_free_bytes;
  Figure free_bytes;       // free bytes of the device
  Figure requested_bytes;  // size of the refused request
  CUWARDEN_FIELDS(pending_free_bytes, free_bytes, requested_bytes)
};

// Figures that prove the verdict slab_fragmentation: freed memory is locked in pages (slabs) that
// are still partly used, or memory is lost to rounding.
struct WasteProof {
  // Unused bytes of slabs (the driver's 2 MiB pages of small requests) with a live piece.
  Figure slab_locked_bytes;
  Figure rounding_bytes;  // bytes that rounding adds to live requests
  // Bytes that cuwarden's own pool holds and that no allocation has; null: none.
  Figure pool_unused_bytes;
  // Free bytes of the device at the refusal; size of the refused request. Null: unknown.
  Figure free_bytes, requested_bytes;
  CUWARDEN_FIELDS(slab_locked_bytes, rounding_bytes, pool_unused_bytes, free_bytes, requested_bytes)
};

// Figures that prove the verdict framework_fragmentation: the framework that asked has free memory
// in the segments that it has taken from CUDA, but no free block that the request fits into.
struct FrameworkProof {
  Text framework;          // name of the framework
  Figure reserved_bytes;   // bytes of the device that the framework has taken from CUDA
  Figure allocated_bytes;  // bytes of blocks that it has handed out
  Figure idle_bytes;       // bytes that it has taken and not handed out
  // Number of free blocks in segments of which another part is in use; bytes of the largest free
  // block. Null: unknown, as blocks were not recorded.
  Figure hole_count, largest_free_bytes;
  // Free bytes of the device at the refusal; size of the refused request. Null: unknown.
  Figure free_bytes, requested_bytes;
  CUWARDEN_FIELDS(framework, reserved_bytes, allocated_bytes, idle_bytes, hole_count,
                  largest_free_bytes, free_bytes, requested_bytes)
};

// Figures that prove the verdict held_by_framework: another library of the process than the one
// that asked holds the memory.
struct LibraryProof {
  Text holder;  // path of the library that holds the memory
  // Live bytes that this library had allocated on the device at the refusal. Only the call stacks
  // that held or locked most memory count, so the library may hold more.
  Figure held_bytes;
  // The part of the library's memory that it had not handed out, by its own figures; null: unknown.
  Figure idle_bytes;
  Figure free_bytes;       // free bytes of the device at the refusal; null: unknown
  Figure requested_bytes;  // size of the refused request; null: unknown
  CUWARDEN_FIELDS(holder, held_bytes, idle_bytes, free_bytes, requested_bytes)
  CUWARDEN_MAY_LACK(idle_bytes)
};

// Figures that prove the verdict device_full_own: the process itself holds the memory, all of it
// live.
struct OwnProof {
  Figure own_bytes;  // live bytes that the process allocated on the device
  // The part of own_bytes that belongs to call stacks whose live bytes grow steadily; null if it is
  // less than the device lacked for the request.
  Figure growing_bytes;
  // Free bytes of the device at the refusal; size of the refused request. Null: unknown.
  Figure free_bytes, requested_bytes;
  CUWARDEN_FIELDS(own_bytes, growing_bytes, free_bytes, requested_bytes)
};

// Figures that prove the verdicts held_by_other_processes and held_by_unlisted_owner: other
// processes, or owners that are not visible from this process, hold the memory.
struct OthersProof {
  // Bytes of the device that other processes hold, as NVML lists them; null: unknown.
  Figure other_processes_bytes;
  // Live bytes of other processes' memory that this process opened (IPC); null: none.
  Figure opened_bytes;
  Figure own_bytes;  // live bytes that this process allocated on the device
  // Used bytes of the device that belong neither to this process nor to a process that NVML lists.
  // Null for the verdict held_by_other_processes.
  Figure unlisted_bytes;
  // Free bytes of the device at the refusal; size of the refused request. Null: unknown.
  Figure free_bytes, requested_bytes;
  CUWARDEN_FIELDS(other_processes_bytes, opened_bytes, own_bytes, unlisted_bytes, free_bytes,
                  requested_bytes)
};

// Figures that prove the verdict implicit_memory: the refused call needs memory of its own, or this
// process's contexts, code, local memory, device heap, streams and executable graphs hold most of
// the device.
struct ImplicitProof {
  // Bytes that the driver gave back to the device while it refused the request. free_bytes includes
  // them. Null: unknown.
  Figure given_back_bytes;
  // Bytes of the device that the driver took for this process, by kind.
  Figure context_bytes;       // bytes taken for contexts; null: none known
  Figure modules_bytes;       // bytes taken for code; null: none known
  Figure local_memory_bytes;  // bytes taken for kernels' local memory; null: none known
  Figure heap_bytes;          // bytes taken for the heap of malloc() in kernels; null: none known
  Figure streams_bytes;       // bytes taken for streams; null: none known
  Figure graphs_bytes;        // bytes taken for executable graphs; null: none known
  // Free bytes of the device at the refusal; size of the refused request. Null: unknown.
  Figure free_bytes, requested_bytes;
  CUWARDEN_FIELDS(given_back_bytes, context_bytes, modules_bytes, local_memory_bytes, heap_bytes,
                  streams_bytes, graphs_bytes, free_bytes, requested_bytes)
  CUWARDEN_MAY_LACK(graphs_bytes)
};

// Figures of the verdict unknown: no cause is proven.
struct UnknownProof {
  Figure free_bytes;       // free bytes of the device at the refusal; null: unknown
  Figure total_bytes;      // size of the device; null: unknown
  Figure requested_bytes;  // size of the refused request; null: unknown
  CUWARDEN_FIELDS(free_bytes, total_bytes, requested_bytes)
};

}  // namespace cuwarden::verdicts
