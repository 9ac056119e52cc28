// The proofs of verdicts. Null figures are left out of the report. `requested_bytes` is null if the
// call does not say how much it asks for, `free_bytes` if the device could not be asked.
#pragma once

#include <string>

#include "reporters/model/fields.hpp"
#include "reporters/model/values.hpp"

namespace cuwarden::verdicts {

using model::Figure;
using model::Text;

// Figures that prove the verdict size_overflow.
struct SizeProof {
  Text requested;  // in decimal digits, since it may be above the numbers of JSON
  Figure requested_bytes;
  CUWARDEN_FIELDS(requested, requested_bytes)
};

// Figures that prove the verdict device_restricted.
struct RestrictionProof {
  Text compute_mode;  // "prohibited" or "exclusive_process"
  Figure other_processes_bytes, total_bytes;
  Text slice;  // name of the MIG slice
  Figure whole_device_bytes, free_bytes, mps_limit_bytes, own_bytes, held_bytes, requested_bytes;
  CUWARDEN_FIELDS(compute_mode, other_processes_bytes, total_bytes, slice, whole_device_bytes,
                  free_bytes, mps_limit_bytes, own_bytes, held_bytes, requested_bytes)
};

// Figures that prove the verdict larger_than_device.
struct LargerProof {
  Figure total_bytes;
  Text slice;  // name of the MIG slice
  Figure whole_device_bytes, requested_bytes;
  CUWARDEN_FIELDS(total_bytes, slice, whole_device_bytes, requested_bytes)
};

// Figures that prove the verdict address_space_gap.
struct AddressProof {
  Figure address_space_limit_bytes, address_space_bytes, largest_gap_bytes, mappings, max_mappings;
  Figure requested_bytes;
  CUWARDEN_FIELDS(address_space_limit_bytes, address_space_bytes, largest_gap_bytes, mappings,
                  max_mappings, requested_bytes)
};

// Figures that prove the verdict host_ram_exhausted.
struct HostProof {
  Figure ram_bytes, ram_available_bytes, swap_free_bytes, cgroup_limit_bytes, cgroup_used_bytes;
  Figure overcommit_mode, commit_limit_bytes, committed_bytes, pinned_bytes, requested_bytes;
  CUWARDEN_FIELDS(ram_bytes, ram_available_bytes, swap_free_bytes, cgroup_limit_bytes,
                  cgroup_used_bytes, overcommit_mode, commit_limit_bytes, committed_bytes,
                  pinned_bytes, requested_bytes)
};

// Figures that prove the verdict pending_frees.
struct PendingProof {
  Figure pending_free_bytes, free_bytes, requested_bytes;
  CUWARDEN_FIELDS(pending_free_bytes, free_bytes, requested_bytes)
};

// Figures that prove the verdict slab_fragmentation.
struct WasteProof {
  Figure slab_locked_bytes, rounding_bytes;
  Figure pool_unused_bytes;  // in cuwarden's own pool; null: none
  Figure free_bytes, requested_bytes;
  CUWARDEN_FIELDS(slab_locked_bytes, rounding_bytes, pool_unused_bytes, free_bytes, requested_bytes)
};

// Figures that prove the verdict held_by_framework.
struct LibraryProof {
  Text holder;  // path of the library
  Figure held_bytes, free_bytes, requested_bytes;
  CUWARDEN_FIELDS(holder, held_bytes, free_bytes, requested_bytes)
};

// Figures that prove the verdict device_full_own.
struct OwnProof {
  Figure own_bytes;
  Figure growing_bytes;  // live bytes of groups that grow; null: less than the request lacked
  Figure free_bytes, requested_bytes;
  CUWARDEN_FIELDS(own_bytes, growing_bytes, free_bytes, requested_bytes)
};

// Figures that prove the verdict held_by_other_processes and held_by_unlisted_owner.
struct OthersProof {
  Figure other_processes_bytes;
  Figure opened_bytes;  // memory of other processes that this process opened; null: none
  Figure own_bytes;
  Figure unlisted_bytes;  // bytes of no listed process; null: listed processes hold more
  Figure free_bytes, requested_bytes;
  CUWARDEN_FIELDS(other_processes_bytes, opened_bytes, own_bytes, unlisted_bytes, free_bytes,
                  requested_bytes)
};

// Figures that prove the verdict implicit_memory.
struct ImplicitProof {
  Figure given_back_bytes;  // freed by the driver after the refusal, and among free_bytes
  Figure context_bytes, modules_bytes, local_memory_bytes, heap_bytes, streams_bytes;
  Figure free_bytes, requested_bytes;
  CUWARDEN_FIELDS(given_back_bytes, context_bytes, modules_bytes, local_memory_bytes, heap_bytes,
                  streams_bytes, free_bytes, requested_bytes)
};

// Figures that prove the verdict unknown.
struct UnknownProof {
  Figure free_bytes, total_bytes, requested_bytes;
  CUWARDEN_FIELDS(free_bytes, total_bytes, requested_bytes)
};

}  // namespace cuwarden::verdicts
