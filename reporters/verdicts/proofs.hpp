// The proofs of verdicts: figures that show why a request was refused. All figures are as of the
// refusal. Figures whose names end in `bytes` are in bytes. The report leaves out null figures.
// `requested_bytes` is null if the call does not say how much it asks for; `free_bytes` is null if
// the device could not be asked.
#pragma once

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

// Figures that prove the verdict device_restricted: a restriction forbids the request. There are
// four: the device's compute mode, a MIG slice, a quota of MPS and a limit of the process's cgroup.
// Figures of the other three are null.
struct RestrictionProof {
  // Compute mode of the device, in which it gives this process no context: "prohibited" or
  // "exclusive_process". Null: the compute mode is not the cause of the refusal.
  Text compute_mode;
  // Bytes that other processes hold on the device, as NVML lists them. Null: unknown, or
  // compute_mode is not "exclusive_process".
  Figure other_processes_bytes;
  Figure total_bytes;  // size of the process's MIG slice; null: the slice is not the cause
  Text slice;          // name of the process's MIG slice; null: the slice is not the cause
  // Bytes of the whole device of which the MIG slice is a part; null: the slice is not the cause.
  Figure whole_device_bytes;
  // Free bytes of the device at the refusal. Null: unknown, or neither a quota of MPS nor a limit
  // of the cgroup is the cause.
  Figure free_bytes;
  Figure mps_limit_bytes;  // quota of MPS for the process in bytes; null: it is not the cause
  // Live bytes that the process had allocated on the device. Null if neither a quota of MPS nor a
  // limit of the cgroup is the cause.
  Figure own_bytes;
  // Bytes of the process that count towards the quota of MPS; null: the quota is not the cause.
  Figure held_bytes;
  Figure requested_bytes;  // size of the refused request; null: unknown, or a context was refused
  // Limit of the process's cgroup on its use of the device's memory, for all processes of the
  // cgroup together; bytes that count towards this limit. Null: the limit is not the cause.
  Figure cgroup_device_limit_bytes, cgroup_device_used_bytes;
  CUWARDEN_FIELDS(compute_mode, other_processes_bytes, total_bytes, slice, whole_device_bytes,
                  free_bytes, mps_limit_bytes, own_bytes, held_bytes, requested_bytes,
                  cgroup_device_limit_bytes, cgroup_device_used_bytes)
};

// Figures that prove the verdict larger_than_device: the request is larger than the whole device.
// If the size of the whole device is unknown, it is larger than the process's MIG slice.
struct LargerProof {
  Figure total_bytes;  // bytes of the process's MIG slice; of the whole device if there is no slice
  Text slice;          // name of the process's MIG slice; null: the process has a whole device
  // Bytes of the whole device of which the MIG slice is a part. Null: unknown, or the process has
  // no MIG slice.
  Figure whole_device_bytes;
  Figure requested_bytes;  // size of the refused request
  CUWARDEN_FIELDS(total_bytes, slice, whole_device_bytes, requested_bytes)
};

// Figures that prove the verdict address_space_gap: the process lacks a range of free addresses, or
// may have no more mappings.
struct AddressProof {
  // Limit of the process's address space in bytes (ulimit -v); null: no limit, or unknown.
  Figure address_space_limit_bytes;
  Figure address_space_bytes;  // bytes of addresses that the process's mappings use; null: unknown
  // Bytes of the largest range of the process's addresses without a mapping; null: unknown.
  Figure largest_gap_bytes;
  Figure mappings;  // number of the process's mappings; null: unknown
  // Most mappings that the kernel allows a process (vm.max_map_count); null: unknown.
  Figure max_mappings;
  Figure requested_bytes;  // size of the refused request; null: a context was refused
  CUWARDEN_FIELDS(address_space_limit_bytes, address_space_bytes, largest_gap_bytes, mappings,
                  max_mappings, requested_bytes)
};

// Figures that prove the verdict host_ram_exhausted: the host, or the process's cgroup, lacks
// memory that can be page-locked.
struct HostProof {
  Figure ram_bytes;            // bytes of the host's RAM; null: unknown
  Figure ram_available_bytes;  // available bytes of the host's RAM (MemAvailable); null: unknown
  Figure swap_free_bytes;      // free bytes of the host's swap; null: unknown
  // Memory limit of the process's cgroup or of a cgroup above it: the one of these limits that
  // leaves the fewest unused bytes. Null: there is no limit, or it is unknown.
  Figure cgroup_limit_bytes;
  // Bytes in use in the cgroup that has the limit cgroup_limit_bytes; in the process's own cgroup
  // if there is no limit. Null: unknown.
  Figure cgroup_used_bytes;
  Figure overcommit_mode;  // value of vm.overcommit_memory, 0 to 2 (2: strict); null: unknown
  // Bytes that the kernel commits at most, and bytes that it has committed (CommitLimit and
  // Committed_AS of /proc/meminfo). Null: this limit is not the cause of the refusal.
  Figure commit_limit_bytes, committed_bytes;
  Figure pinned_bytes;     // bytes of live page-locked memory that the process allocated
  Figure requested_bytes;  // size of the refused request
  CUWARDEN_FIELDS(ram_bytes, ram_available_bytes, swap_free_bytes, cgroup_limit_bytes,
                  cgroup_used_bytes, overcommit_mode, commit_limit_bytes, committed_bytes,
                  pinned_bytes, requested_bytes)
};

// Figures that prove the verdict held_by_page_cache: the device shares its memory with the host,
// and the request would have fitted into it without the host's page cache.
struct CacheProof {
  Figure page_cache_bytes;     // bytes of the host's page cache that the kernel could drop
  Figure ram_available_bytes;  // available bytes of the host's RAM (MemAvailable); null: unknown
  Figure free_bytes;           // free bytes of the device at the refusal, without the page cache
  Figure requested_bytes;      // size of the refused request; null: unknown
  CUWARDEN_FIELDS(page_cache_bytes, ram_available_bytes, free_bytes, requested_bytes)
};

// Figures that prove the verdict pending_frees: memory was freed in stream order (cuMemFreeAsync),
// but the device has not yet reached these frees in its streams.
struct PendingProof {
  // Bytes that were freed, but whose frees the device had not reached at the refusal: an estimate
  // that is not too high. Never null.
  Figure pending_free_bytes;
  Figure free_bytes;       // free bytes of the device at the refusal
  Figure requested_bytes;  // size of the refused request; null: a context was refused
  CUWARDEN_FIELDS(pending_free_bytes, free_bytes, requested_bytes)
};

// Figures that prove the verdict slab_fragmentation: freed memory is locked in pages (slabs) that
// are still partly used, or memory is lost to rounding.
struct WasteProof {
  // Unused bytes of slabs (the driver's 2 MiB pages of small requests) in which an allocation was
  // live at the refusal. Never null; 0: none, or unknown.
  Figure slab_locked_bytes;
  // Bytes that rounding had added to the sizes of allocations that were live at the refusal. Never
  // null; 0: none, or unknown.
  Figure rounding_bytes;
  // Bytes that cuwarden's own pool held at the refusal, and that no allocation had; null: none.
  Figure pool_unused_bytes;
  // Free bytes of the device at the refusal; size of the refused request. Null: unknown.
  Figure free_bytes, requested_bytes;
  CUWARDEN_FIELDS(slab_locked_bytes, rounding_bytes, pool_unused_bytes, free_bytes, requested_bytes)
};

// Figures that prove the verdict framework_fragmentation: the framework that asked has enough free
// memory in segments that it has taken from CUDA, but no free block that is large enough for the
// request.
struct FrameworkProof {
  Text framework;          // name of the framework that asked: "PyTorch"
  Figure reserved_bytes;   // bytes of the device that the framework had taken from CUDA
  Figure allocated_bytes;  // bytes of blocks that the framework had handed out and not got back
  Figure idle_bytes;       // bytes that the framework had taken from CUDA and not handed out
  // hole_count: number of free blocks in partly used segments (pieces of memory that the framework
  // took from CUDA). largest_free_bytes: bytes of the framework's largest free block. Null:
  // unknown, because blocks were not recorded.
  Figure hole_count, largest_free_bytes;
  // Free bytes of the device at the refusal; size of the refused request. Null: unknown.
  Figure free_bytes, requested_bytes;
  CUWARDEN_FIELDS(framework, reserved_bytes, allocated_bytes, idle_bytes, hole_count,
                  largest_free_bytes, free_bytes, requested_bytes)
};

// Figures that prove the verdict held_by_framework: a library of the process holds the memory, but
// another one asked for more.
struct LibraryProof {
  Text holder;  // path of the file of the library with the most live bytes on the device
  // Live bytes that the library `holder` had allocated on the device at the refusal. Only the call
  // stacks that held most memory, or locked most unused bytes in slabs, count. So the library may
  // hold more.
  Figure held_bytes;
  // Bytes that the library `holder` had taken from CUDA and not handed out, by its own figures;
  // null: unknown.
  Figure idle_bytes;
  Figure free_bytes;       // free bytes of the device at the refusal; null: unknown
  Figure requested_bytes;  // size of the refused request; null: unknown
  CUWARDEN_FIELDS(holder, held_bytes, idle_bytes, free_bytes, requested_bytes)
  CUWARDEN_MAY_LACK(idle_bytes)
};

// Figures that prove the verdict device_full_own: the process itself holds the memory, all of it
// live.
struct OwnProof {
  Figure own_bytes;  // live bytes that the process had allocated on the device at the refusal
  // The part of own_bytes that belongs to call stacks whose live bytes grow steadily. Null: it is
  // smaller than the number of bytes that the device lacked for the request.
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
  // Live bytes of imported memory: opened by IPC, or imported as external memory from another
  // process or another API, such as Vulkan. Null: none.
  Figure opened_bytes;
  Figure own_bytes;  // live bytes that this process had allocated on the device at the refusal
  // Used bytes of the device that belong neither to this process nor to a process that NVML lists.
  // Null for the verdict held_by_other_processes.
  Figure unlisted_bytes;
  // Free bytes of the device at the refusal; size of the refused request. Null: unknown.
  Figure free_bytes, requested_bytes;
  CUWARDEN_FIELDS(other_processes_bytes, opened_bytes, own_bytes, unlisted_bytes, free_bytes,
                  requested_bytes)
};

// Figures that prove the verdict implicit_memory: the refused call needs memory for itself, or most
// of the device is implicit memory of this process: contexts, code, local memory, device heap,
// streams and executable graphs.
struct ImplicitProof {
  // Bytes that the driver gave back to the device while it refused the request. free_bytes includes
  // them. Null: none, or unknown.
  Figure given_back_bytes;
  // Bytes of the device that the driver took for contexts of this process; null: none known.
  Figure context_bytes;
  // Bytes that the driver took for code of this process, without known libraries; null: none known.
  Figure modules_bytes;
  // Bytes that the driver took for kernels' local memory; null: none known.
  Figure local_memory_bytes;
  // Bytes that the driver took for the heap of malloc() in kernels; null: none known.
  Figure heap_bytes;
  // Bytes that the driver took for streams, without those of known libraries; null: none known.
  Figure streams_bytes;
  // Bytes that the driver took for executable graphs, without those of known libraries; null: none
  // known.
  Figure graphs_bytes;
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
