// Tables of the report about memory that is held but cannot be used: at the end of the process, at
// the moment at which most memory was locked in slabs, and at refused requests (incidents).
// report.schema.json describes each field.
//
// A slab is a page of device memory (2 MiB) from which the driver cuts small requests, its pieces.
// Freed memory is locked while its slab has another live piece: no other request can use it.
#pragma once

#include <string>
#include <vector>

#include "reporters/model/fields.hpp"
#include "reporters/model/values.hpp"

namespace cuwarden::model {

// Memory of a device that no allocation has but that other requests cannot use, at the end of the
// process.
struct Fragmentation {
  Id device = 0;  // CUDA ordinal of the device, from 0
  // Moment at which the device was read for mempool_idle_bytes, largest_request_bytes and
  // excess_bytes. "exit": while the process ended. "last_call": at the last CUDA call at which
  // cuwarden read the device, which may be long before the end. Null: the device was never read, or
  // the report is older than this field.
  Text at;
  // Number of slabs (the driver's 2 MiB pages of small requests) in which at least one allocation
  // is live at the process's end.
  Figure slab_count;
  // Unused bytes of slabs in which an allocation is live at the process's end. The bytes cannot go
  // back to the device before the slab's last allocation is freed.
  Figure slab_locked_bytes;
  Figure rounding_bytes;  // bytes that rounding adds to requests that are live at the process's end
  // Unused bytes of memory pools (CUmemoryPool) and graphs at the last reading of the device. Null:
  // unknown, the device was never read, or the report is older than this field.
  Figure mempool_idle_bytes;
  // Bytes of the largest request that the driver could serve with whole pages, by
  // Device::free_bytes and mempool_idle_bytes. Null: unknown, or the device was never read.
  Figure largest_request_bytes;
  // Size of a page, the unit in which the driver takes memory from the device. Derived from the
  // addresses of live allocations; 2 MiB if they do not show it. Null: the report is older than
  // this field.
  Figure page_bytes;
  // Alignment of small allocations within a page, in bytes. Derived from the addresses of live
  // allocations; 512 if they do not show it. Null: the report is older than this field.
  Figure step_bytes;
  // Bytes of the largest live allocation that shares its page (of page_bytes) with another one.
  // Null: no two allocations share a page, or the report is older than this field.
  Figure largest_piece_bytes;
  // Bytes by which the sum of the device's items in the table `accounts` (without `unexplained`)
  // exceeds Device::used_bytes; 0: it does not. Null: the device was never read, or the report is
  // older than this field.
  Figure excess_bytes;
  CUWARDEN_FIELDS(device, at, slab_count, slab_locked_bytes, rounding_bytes, mempool_idle_bytes,
                  largest_request_bytes, page_bytes, step_bytes, largest_piece_bytes, excess_bytes)
  CUWARDEN_MAY_LACK(at, mempool_idle_bytes, page_bytes, step_bytes, largest_piece_bytes,
                    excess_bytes)
};

// The slabs of one size class on a device, with the live allocations (pieces) in them. Rows of
// table `slab_classes` are of the end of the process. Rows of table `worst_slab_classes` are of the
// moment of the run at which slabs held the largest amount of freed memory (locked memory).
struct SlabClass {
  Id device = 0;  // CUDA ordinal of the device, from 0
  // Size class of the slabs in bytes; never null. The class of a piece (small allocation) is its
  // size, rounded up to a power of two. In the table `slab_classes`, a slab has the class whose
  // pieces have the most live bytes in it. In the table `worst_slab_classes`, it has the class of a
  // piece of average size.
  Figure class_bytes;
  Figure slab_count;  // number of slabs (the driver's 2 MiB pages) of this size class
  // Number and bytes of the live pieces (small allocations) in the slabs of this size class.
  Figure live_count, live_bytes;
  CUWARDEN_FIELDS(device, class_bytes, slab_count, live_count, live_bytes)
};

// A slab with a live piece at the end of the process. A slab is a page of device memory from which
// the driver cuts small requests, its pieces.
struct Slab {
  Id device = 0;        // CUDA ordinal of the device, from 0
  std::string address;  // address at which the slab starts, in hexadecimal
  // Size class of the slab in bytes; never null. The class of a piece (small allocation) is its
  // size, rounded up to a power of two. The slab has the class whose pieces have the most live
  // bytes in it.
  Figure class_bytes;
  // Number of pieces of class_bytes that fit into the slab, at least `live`. Never null.
  Figure slots;
  Figure live;  // number of live pieces (small allocations) in the slab; never null
  // Ids, in the table `stacks`, of the call stacks of the groups (stack, function, kind, device)
  // with the most live pieces in the slab: at most 4 groups, most pieces first. Stacks that were
  // not recorded are left out. Empty also if the report is older than this field.
  std::vector<Id> stacks{};
  CUWARDEN_FIELDS(device, address, class_bytes, slots, live, stacks)
  CUWARDEN_MAY_LACK(stacks)
};

// A call stack with live pieces in slabs at the end of the process. Pieces are small allocations
// that the driver cuts from slabs, its 2 MiB pages.
struct SlabHolder {
  Id device = 0;  // CUDA ordinal of the device, from 0
  MaybeId stack;  // id of the call stack in the table `stacks`; null: no stack was recorded
  // Number and bytes of this stack's allocations that are live in slabs at the process's end.
  Figure count, bytes;
  // Unused bytes of slabs, at the process's end, that cannot go back to the device because of this
  // stack's live pieces. The unused bytes of a slab are divided equally among its live pieces.
  Figure locked_bytes;
  CUWARDEN_FIELDS(device, stack, count, bytes, locked_bytes)
};

// The moment of the run at which most freed memory of a device was locked in slabs.
struct WorstFragmentation {
  Id device = 0;  // CUDA ordinal of the device, from 0
  // Time at which most freed memory of the device was locked in slabs, in ns since the process's
  // start.
  Figure time_ns;
  Figure slab_count;         // number of slabs in which an allocation was live at time_ns
  Figure slab_locked_bytes;  // freed bytes that were locked in slabs at time_ns
  // Bytes that rounding had added to the sizes of allocations that were live at time_ns. Null: the
  // report is older than this field.
  Figure rounding_bytes;
  // Number of live allocations whose addresses showed, at WorstSlabHolder::time_ns, that
  // allocations share pages as expected of slabs. 0: no address showed it, so the other figures
  // rest on an assumption. Null: the report is older than this field.
  Figure pieces_seen;
  // Unused bytes of memory pools (CUmemoryPool) and graphs at read_ns. Null: unknown, read_ns is
  // null, or the report is older than this field.
  Figure mempool_idle_bytes;
  // Bytes of the largest request that could have been served at read_ns. Null: read_ns is null.
  Figure largest_request_bytes;
  // Time of a reading of the device (cuMemGetInfo), in ns since the process's start: the last one
  // before cuwarden looked for the allocations that keep slabs. Null: there was no such reading, or
  // cuwarden never looked for them.
  Figure read_ns;
  CUWARDEN_FIELDS(device, time_ns, slab_count, slab_locked_bytes, rounding_bytes, pieces_seen,
                  mempool_idle_bytes, largest_request_bytes, read_ns)
  CUWARDEN_MAY_LACK(rounding_bytes, pieces_seen, mempool_idle_bytes, largest_request_bytes, read_ns)
};

// A slab at the moment of the run at which most freed memory of its device was locked in slabs. The
// call stacks of its pieces are not recorded at that moment.
struct WorstSlab {
  Id device = 0;            // CUDA ordinal of the device, from 0
  std::string address;      // address at which the slab starts, in hexadecimal
  Figure live, live_bytes;  // number of live pieces (small allocations) in the slab; their bytes
  CUWARDEN_FIELDS(device, address, live, live_bytes)
};

// A call stack whose live pieces locked much freed memory in slabs of a device. The stacks were
// looked for at `time_ns`: at or before the moment of the run at which most of the device's memory
// was locked.
struct WorstSlabHolder {
  Id device = 0;  // CUDA ordinal of the device, from 0
  MaybeId stack;  // id of the call stack in the table `stacks`; null: no stack was recorded
  // Number and bytes of this stack's allocations that were live in slabs at time_ns.
  Figure count, bytes;
  // Unused bytes of slabs at time_ns that could not go back to the device because of this stack's
  // live allocations. The unused bytes of a slab are divided equally among its live allocations.
  Figure locked_bytes;
  // Time at which the stack's allocations were counted, in ns since the process's start. Null: the
  // report is older than this field.
  Figure time_ns;
  // Sum of locked_bytes over all stacks on the device at time_ns, also those that have no row.
  // Null: the report is older than this field.
  Figure of_locked_bytes;
  CUWARDEN_FIELDS(device, stack, count, bytes, locked_bytes, time_ns, of_locked_bytes)
  CUWARDEN_MAY_LACK(time_ns, of_locked_bytes)
};

// Memory of a device that no allocation had but that other requests could not use, at the moment of
// a refused request.
struct IncidentFragmentation {
  Id incident = 0;  // id of the refused request in the table `incidents`
  Id device = 0;    // CUDA ordinal of the device, from 0
  // Number of slabs (the driver's 2 MiB pages of small requests) in which an allocation was live at
  // the refusal.
  Figure slab_count;
  // Number of the device's slabs at the refusal that have a row in the table `incident_slab_map`;
  // may be less than slab_count.
  Figure slabs_listed;
  // Freed bytes that could not go back to the device at the refusal, because other allocations in
  // their slabs were live. Null: unknown.
  Figure slab_locked_bytes;
  // Bytes that rounding had added to the sizes of allocations that were live at the refusal; null:
  // unknown.
  Figure rounding_bytes;
  // Unused bytes of memory pools (CUmemoryPool) and graphs at the refusal; null: unknown.
  Figure mempool_idle_bytes;
  // Bytes of the largest request that could have been served at the refusal, always fewer than the
  // refused request's. Null: unknown, or no memory was asked for.
  Figure largest_request_bytes;
  CUWARDEN_FIELDS(incident, device, slab_count, slabs_listed, slab_locked_bytes, rounding_bytes,
                  mempool_idle_bytes, largest_request_bytes)
};

// The slabs of one size class on the device of a refused request, at the refusal, with the live
// allocations (pieces) in them.
struct IncidentSlabClass {
  Id incident = 0;  // id of the refused request in the table `incidents`
  // Size class of the slabs in bytes; never null. The class of a piece (small allocation) is its
  // size, rounded up to a power of two. A slab has the class whose pieces have the most live bytes
  // in it.
  Figure class_bytes;
  Figure slab_count;  // number of slabs (the driver's 2 MiB pages) of this size class
  // Number and bytes of the live pieces (small allocations) in the slabs of this size class.
  Figure live_count, live_bytes;
  CUWARDEN_FIELDS(incident, class_bytes, slab_count, live_count, live_bytes)
};

// A slab of the device of a refused request, at the refusal. A slab is a page of device memory from
// which the driver cuts small requests, its pieces.
struct IncidentSlab {
  Id incident = 0;          // id of the refused request in the table `incidents`
  std::string address;      // address at which the slab starts, in hexadecimal
  Figure live, live_bytes;  // number of live pieces (small allocations) in the slab; their bytes
  // Ids, in the table `stacks`, of the call stacks of the groups (stack, function, kind, device)
  // with the most live pieces in the slab: at most 4 groups, most pieces first. Stacks that were
  // not recorded are left out. Empty also if the report is older than this field.
  std::vector<Id> stacks{};
  CUWARDEN_FIELDS(incident, address, live, live_bytes, stacks)
  CUWARDEN_MAY_LACK(stacks)
};

}  // namespace cuwarden::model
