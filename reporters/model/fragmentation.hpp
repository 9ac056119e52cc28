// Tables of the report about memory that is held but cannot be used: at the end of the process, at
// the moment at which most memory was locked in slabs, and at refused requests (incidents).
// report.schema.json describes each field.
//
// A slab is a page of device memory (2 MiB) from which the driver cuts small requests, its pieces.
// Freed memory is locked while its slab has another live piece: no other request can use it.
#pragma once

#include <string>

#include "reporters/model/fields.hpp"
#include "reporters/model/values.hpp"

namespace cuwarden::model {

// Memory of a device that no allocation has but that other requests cannot use, at the end of the
// process.
struct Fragmentation {
  Id device = 0;  // CUDA ordinal of the device, from 0
  // Tells when the device was read for mempool_idle_bytes, largest_request_bytes and excess_bytes:
  // "exit" (while the process ended), or "last_call" (at the last CUDA call at which cuwarden read
  // the device, which may be long before the end). Null: the device was never read.
  Text at;
  // slab_count: slabs (the driver's 2 MiB pages of small requests) with a live piece (allocation).
  // slab_locked_bytes: their unused bytes, which cannot go back to the device before the last piece
  // is freed. rounding_bytes: bytes that rounding adds to live requests. mempool_idle_bytes: unused
  // bytes of memory pools (CUmemoryPool) and graphs. largest_request_bytes: largest request that
  // the driver could serve with whole pages. The last two are null if they are unknown, as for a
  // device that was never read.
  Figure slab_count, slab_locked_bytes, rounding_bytes, mempool_idle_bytes, largest_request_bytes;
  // page_bytes: size of a page, the unit that the driver takes from the device. step_bytes: pieces
  // of a page begin at multiples of this number. Both are derived from the addresses of live
  // allocations; they are 2 MiB and 512 if the addresses do not tell. Null: the report is older
  // than these fields.
  Figure page_bytes, step_bytes;
  // Bytes of the largest allocation that shares its page (page_bytes) with another; null: no two
  // share a page.
  Figure largest_piece_bytes;
  // Bytes by which the device's items in the report's table `accounts`, without the item
  // `unexplained`, exceed its used bytes at the last reading (cuMemGetInfo); 0: they do not. Null:
  // the device was never read.
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
  // Size class: the size of a typical piece (small allocation) of a slab, rounded up to a power of
  // two. Number of slabs (the driver's 2 MiB pages) of this class; number of live pieces in them;
  // bytes of these pieces.
  Figure class_bytes, slab_count, live_count, live_bytes;
  CUWARDEN_FIELDS(device, class_bytes, slab_count, live_count, live_bytes)
};

// A slab with a live piece at the end of the process. A slab is a page of device memory from which
// the driver cuts small requests, its pieces.
struct Slab {
  Id device = 0;        // CUDA ordinal of the device, from 0
  std::string address;  // address at which the slab starts, in hexadecimal
  // Size class of the slab in bytes, a power of two: the size of the pieces (small allocations)
  // that have most of the slab's live bytes, rounded up.
  Figure class_bytes;
  // slots: number of pieces of class_bytes that fit into the slab, at least `live`. live: number of
  // live pieces (small allocations) in the slab.
  Figure slots, live;
  CUWARDEN_FIELDS(device, address, class_bytes, slots, live)
};

// A call stack with live pieces in slabs at the end of the process. Pieces are small allocations
// that the driver cuts from slabs, its 2 MiB pages.
struct SlabHolder {
  Id device = 0;  // CUDA ordinal of the device, from 0
  MaybeId stack;  // row of the table `stacks`; null: no stack was recorded
  // Number of live allocations of this stack that are parts of slabs; their bytes.
  Figure count, bytes;
  // Bytes of slabs that no live piece takes, and that cannot go back to the device because of this
  // stack's live pieces. The bytes of a slab count in equal parts for each of its live pieces.
  Figure locked_bytes;
  CUWARDEN_FIELDS(device, stack, count, bytes, locked_bytes)
};

// The moment of the run at which most freed memory of a device was locked in slabs.
struct WorstFragmentation {
  Id device = 0;  // CUDA ordinal of the device, from 0
  // time_ns: time at which most freed memory of the device was locked in slabs. slab_count,
  // slab_locked_bytes, rounding_bytes: number of slabs, freed bytes locked in them, and bytes that
  // rounding added to requests at that time. pieces_seen: allocations whose addresses showed, when
  // the holders of slabs were last looked for (at WorstSlabHolder::time_ns), that they share pages;
  // 0: none was seen, so the assumed layout of slabs is not confirmed.
  Figure time_ns, slab_count, slab_locked_bytes, rounding_bytes, pieces_seen;
  // Result of the device's last reading (cuMemGetInfo) before the holders of slabs were looked for
  // (WorstSlabHolder::time_ns): unused bytes of memory pools and graphs; bytes of the largest
  // request that could have been served; time of the reading. Null: there was no reading, or
  // the holders were never looked for. The unused bytes are also null if they were unknown.
  Figure mempool_idle_bytes, largest_request_bytes, read_ns;
  CUWARDEN_FIELDS(device, time_ns, slab_count, slab_locked_bytes, rounding_bytes, pieces_seen,
                  mempool_idle_bytes, largest_request_bytes, read_ns)
  CUWARDEN_MAY_LACK(rounding_bytes, pieces_seen, mempool_idle_bytes, largest_request_bytes, read_ns)
};

// A slab at the moment of the run at which most freed memory of its device was locked in slabs.
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
  MaybeId stack;  // row of the table `stacks`; null: no stack was recorded
  // At time_ns: number of live allocations of this stack that were parts of slabs; their bytes; and
  // the unused bytes in those slabs, which could not go back to the device while these allocations
  // lived.
  Figure count, bytes, locked_bytes;
  // time_ns: time at which the pieces were counted, in ns since the process's start.
  // of_locked_bytes: sum of locked_bytes over all stacks on the device at that time, also those
  // that have no row.
  Figure time_ns, of_locked_bytes;
  CUWARDEN_FIELDS(device, stack, count, bytes, locked_bytes, time_ns, of_locked_bytes)
  CUWARDEN_MAY_LACK(time_ns, of_locked_bytes)
};

// Memory of a device that no allocation had but that other requests could not use, at the moment of
// a refused request.
struct IncidentFragmentation {
  Id incident = 0;  // row of the table `incidents` about the refused request
  Id device = 0;    // CUDA ordinal of the device, from 0
  // Number of slabs (the driver's 2 MiB pages of small requests) with a live piece at the refusal.
  Figure slab_count;
  // Number of the device's slabs at the refusal that have a row in the table `incident_slab_map`;
  // may be less than slab_count.
  Figure slabs_listed;
  // At the refusal: freed bytes that could not go back to the device, since their slabs had live
  // pieces; bytes that rounding added to live requests; unused bytes of memory pools (CUmemoryPool)
  // and graphs; bytes of the largest request that could have been served, always fewer than the
  // refused one. Null: unknown. The largest request is also null if no memory was asked for.
  Figure slab_locked_bytes, rounding_bytes, mempool_idle_bytes, largest_request_bytes;
  CUWARDEN_FIELDS(incident, device, slab_count, slabs_listed, slab_locked_bytes, rounding_bytes,
                  mempool_idle_bytes, largest_request_bytes)
};

// The slabs of one size class on the device of a refused request, at the refusal, with the live
// allocations (pieces) in them.
struct IncidentSlabClass {
  Id incident = 0;  // row of the table `incidents` about the refused request
  // At the refusal. Size class: the size of a typical piece (small allocation) of a slab, rounded
  // up to a power of two. Number of slabs (the driver's 2 MiB pages) of this class; number of live
  // pieces in them; bytes of these pieces.
  Figure class_bytes, slab_count, live_count, live_bytes;
  CUWARDEN_FIELDS(incident, class_bytes, slab_count, live_count, live_bytes)
};

// A slab of the device of a refused request, at the refusal. A slab is a page of device memory from
// which the driver cuts small requests, its pieces.
struct IncidentSlab {
  Id incident = 0;          // id of the row of `incidents` about the refused request
  std::string address;      // address at which the slab starts, in hexadecimal
  Figure live, live_bytes;  // number of live pieces (small allocations) in the slab; their bytes
  CUWARDEN_FIELDS(incident, address, live, live_bytes)
};

}  // namespace cuwarden::model
