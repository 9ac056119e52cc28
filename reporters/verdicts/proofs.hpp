// The proofs of verdicts: figures that show why a request was refused. All figures are as of the
// refusal. The report leaves out null figures. `requested_bytes` is null if the call does not say
// how much it asks for; `free_bytes` is null if the device could not be asked.
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
  // Size of the request in decimal digits, since the number may be above 2^53.
  Text requested;
  Figure requested_bytes;  // size of the request; null in the report if above 2^53
  CUWARDEN_FIELDS(requested, requested_bytes)
};

// Figures that prove the verdict device_restricted: the device's compute mode, a MIG slice or a
// quota of MPS forbids the request. Only the figures of the restriction that was found are set.
struct RestrictionProof {
  Text compute_mode;  // "prohibited" or "exclusive_process"; null: another restriction
  // Bytes that other processes hold on the device (if compute_mode is "exclusive_process"); size of
  // the process's MIG slice. Null: another restriction was found.
  Figure other_processes_bytes, total_bytes;
  Text slice;  // name of the MIG slice; null: another restriction
  // Bytes of the device of which the slice is a part; free bytes of the device; quota of MPS for
  // the process; live bytes that the process allocated; all bytes of the process that count towards
  // the quota; bytes asked for.
  Figure whole_device_bytes, free_bytes, mps_limit_bytes, own_bytes, held_bytes, requested_bytes;
  CUWARDEN_FIELDS(compute_mode, other_processes_bytes, total_bytes, slice, whole_device_bytes,
                  free_bytes, mps_limit_bytes, own_bytes, held_bytes, requested_bytes)
};

// Figures that prove the verdict larger_than_device: the whole device is smaller than the request.
struct LargerProof {
  Figure total_bytes;  // bytes of the device, or of the process's MIG slice of it
  Text slice;          // name of the MIG slice; null: the process has a whole device
  // Bytes of the device of which the slice is a part (null: unknown, or no slice); bytes asked for.
  Figure whole_device_bytes, requested_bytes;
  CUWARDEN_FIELDS(total_bytes, slice, whole_device_bytes, requested_bytes)
};

// Figures that prove the verdict address_space_gap: the process lacks addresses or mappings.
struct AddressProof {
  // Limit of the address space (ulimit -v; null: none); bytes of addresses in use; largest gap
  // between mappings; number of mappings; most mappings that the kernel allows (vm.max_map_count).
  Figure address_space_limit_bytes, address_space_bytes, largest_gap_bytes, mappings, max_mappings;
  Figure requested_bytes;  // bytes asked for
  CUWARDEN_FIELDS(address_space_limit_bytes, address_space_bytes, largest_gap_bytes, mappings,
                  max_mappings, requested_bytes)
};

// Figures that prove the verdict host_ram_exhausted: the host, or the process's cgroup, lacks
// memory that can be page-locked.
struct HostProof {
  // Memory of the host; available memory; free swap; memory limit of the cgroup (null: none);
  // memory in use in the cgroup.
  Figure ram_bytes, ram_available_bytes, swap_free_bytes, cgroup_limit_bytes, cgroup_used_bytes;
  // Value of vm.overcommit_memory; CommitLimit and Committed_AS of /proc/meminfo, in bytes, if they
  // are the cause (else null); bytes that the process has page-locked; bytes asked for.
  Figure overcommit_mode, commit_limit_bytes, committed_bytes, pinned_bytes, requested_bytes;
  CUWARDEN_FIELDS(ram_bytes, ram_available_bytes, swap_free_bytes, cgroup_limit_bytes,
                  cgroup_used_bytes, overcommit_mode, commit_limit_bytes, committed_bytes,
                  pinned_bytes, requested_bytes)
};

// Figures that prove the verdict pending_frees: memory that was freed in stream order waits for the
// device.
struct PendingProof {
  // Bytes that wait for the device; free bytes of the device; bytes asked for.
  Figure pending_free_bytes, free_bytes, requested_bytes;
  CUWARDEN_FIELDS(pending_free_bytes, free_bytes, requested_bytes)
};

// Figures that prove the verdict slab_fragmentation: freed memory is locked in pages (slabs) that
// are still partly used, or memory is lost to rounding.
struct WasteProof {
  Figure slab_locked_bytes, rounding_bytes;  // freed bytes locked in slabs; bytes lost to rounding
  // Bytes that cuwarden's own pool holds and that no allocation has; null: none.
  Figure pool_unused_bytes;
  Figure free_bytes, requested_bytes;  // free bytes of the device; bytes asked for
  CUWARDEN_FIELDS(slab_locked_bytes, rounding_bytes, pool_unused_bytes, free_bytes, requested_bytes)
};

// Figures that prove the verdict held_by_framework: another library of the process than the one
// that asked holds the memory.
struct LibraryProof {
  Text holder;  // path of the library that holds the memory
  // Bytes that this library holds; free bytes of the device; bytes asked for.
  Figure held_bytes, free_bytes, requested_bytes;
  CUWARDEN_FIELDS(holder, held_bytes, free_bytes, requested_bytes)
};

// Figures that prove the verdict device_full_own: the process itself holds the memory, all of it
// live.
struct OwnProof {
  Figure own_bytes;  // live bytes that the process allocated on the device
  // Live bytes of call stacks whose live bytes grow; null: these are fewer than the bytes that the
  // device lacked for the request.
  Figure growing_bytes;
  Figure free_bytes, requested_bytes;  // free bytes of the device; bytes asked for
  CUWARDEN_FIELDS(own_bytes, growing_bytes, free_bytes, requested_bytes)
};

// Figures that prove the verdicts held_by_other_processes and held_by_unlisted_owner: other
// processes, or owners that are not visible from this process, hold the memory.
struct OthersProof {
  Figure other_processes_bytes;  // bytes of the other processes that NVML lists
  Figure opened_bytes;           // memory of other processes that this process opened; null: none
  Figure own_bytes;              // live bytes that this process allocated on the device
  // Used bytes of the device that belong neither to this process nor to a process that NVML lists.
  // Null for the verdict held_by_other_processes.
  Figure unlisted_bytes;
  Figure free_bytes, requested_bytes;  // free bytes of the device; bytes asked for
  CUWARDEN_FIELDS(other_processes_bytes, opened_bytes, own_bytes, unlisted_bytes, free_bytes,
                  requested_bytes)
};

// Figures that prove the verdict implicit_memory: the call needs memory of its own, or contexts,
// code, local memory and the device heap hold the memory.
struct ImplicitProof {
  // Bytes that the driver gave back to the device while it refused the request. free_bytes includes
  // them. Null: unknown.
  Figure given_back_bytes;
  // Device bytes of contexts, of code, of kernels' local memory, of the device heap, and of
  // streams; null: none known.
  Figure context_bytes, modules_bytes, local_memory_bytes, heap_bytes, streams_bytes;
  Figure free_bytes, requested_bytes;  // free bytes of the device; bytes asked for
  CUWARDEN_FIELDS(given_back_bytes, context_bytes, modules_bytes, local_memory_bytes, heap_bytes,
                  streams_bytes, free_bytes, requested_bytes)
};

// Figures of the verdict unknown: no cause is proven.
struct UnknownProof {
  // Free bytes of the device; bytes of the whole device; bytes asked for.
  Figure free_bytes, total_bytes, requested_bytes;
  CUWARDEN_FIELDS(free_bytes, total_bytes, requested_bytes)
};

}  // namespace cuwarden::verdicts
