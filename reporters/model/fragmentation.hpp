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
  Id device = 0;  // CUDA ordinal
  // Moment of the device's last reading, from which mempool_idle_bytes, largest_request_bytes and
  // excess_bytes come: "exit" (at the end of the process) or "last_call" (during the run). Null:
  // the device was never read.
  Text at;
  // Number of slabs; freed bytes that are locked in partly live slabs; bytes that rounding adds to
  // requests; unused bytes of memory pools (CUmemoryPool) and graphs; largest request that the
  // driver could serve with whole pages. mempool_idle_bytes and largest_request_bytes are null if
  // the device was never read.
  Figure slab_count, slab_locked_bytes, rounding_bytes, mempool_idle_bytes, largest_request_bytes;
  // Bytes of a page (the unit that the driver takes from the device), and bytes of the step by
  // whose multiples the driver cuts pieces from a page. Both are taken from the allocations'
  // addresses.
  Figure page_bytes, step_bytes;
  // Bytes of the largest allocation that shares its page with another; null: no two share a page.
  Figure largest_piece_bytes;
  // Bytes by which the device's rows of table `accounts`, but for `unexplained`, exceed its used
  // bytes at the last reading; 0: they do not. Null: the device was never read.
  Figure excess_bytes;
  CUWARDEN_FIELDS(device, at, slab_count, slab_locked_bytes, rounding_bytes, mempool_idle_bytes,
                  largest_request_bytes, page_bytes, step_bytes, largest_piece_bytes, excess_bytes)
  CUWARDEN_MAY_LACK(at, mempool_idle_bytes, page_bytes, step_bytes, largest_piece_bytes,
                    excess_bytes)
};

// The slabs of one size class on a device. Rows are of the end of the process (table
// `slab_classes`) or of the moment at which most memory was locked (table `worst_slab_classes`).
struct SlabClass {
  Id device = 0;  // CUDA ordinal
  // Size class: the size of a slab's typical piece, rounded up to a power of two; number of slabs;
  // number of live pieces in them; bytes of these pieces.
  Figure class_bytes, slab_count, live_count, live_bytes;
  CUWARDEN_FIELDS(device, class_bytes, slab_count, live_count, live_bytes)
};

// A slab of a device at the end of the process.
struct Slab {
  Id device = 0;        // CUDA ordinal
  std::string address;  // start of the slab, in hexadecimal
  Figure class_bytes;   // power of two: rounded-up size of the pieces with most live bytes
  Figure slots, live;   // pieces of class_bytes that fit into the slab; live pieces in it
  CUWARDEN_FIELDS(device, address, class_bytes, slots, live)
};

// A call stack whose live pieces keep slabs partly live at the end of the process.
struct SlabHolder {
  Id device = 0;        // CUDA ordinal
  MaybeId stack;        // row of `stacks`; null: no stack was recorded
  Figure count, bytes;  // live pieces in slabs that were allocated by this stack; their bytes
  // Freed bytes of slabs that the live pieces of this stack lock. A slab's locked bytes are divided
  // equally among its live pieces.
  Figure locked_bytes;
  CUWARDEN_FIELDS(device, stack, count, bytes, locked_bytes)
};

// The moment of the run at which most freed memory of a device was locked in slabs.
struct WorstFragmentation {
  Id device = 0;  // CUDA ordinal
  // time_ns: time at which most freed memory of the device was locked in slabs. At that time:
  // number of slabs, freed bytes locked in them, bytes that rounding added to requests.
  // pieces_seen: pieces whose addresses showed, when last looked at, that they share pages; 0: none
  // was seen, so the assumed layout of slabs is not confirmed.
  Figure time_ns, slab_count, slab_locked_bytes, rounding_bytes, pieces_seen;
  // Unused bytes of memory pools and graphs, and the largest request that could have been served,
  // by the device's last reading before time_ns; time of that reading. Null: there was no reading.
  Figure mempool_idle_bytes, largest_request_bytes, read_ns;
  CUWARDEN_FIELDS(device, time_ns, slab_count, slab_locked_bytes, rounding_bytes, pieces_seen,
                  mempool_idle_bytes, largest_request_bytes, read_ns)
  CUWARDEN_MAY_LACK(rounding_bytes, pieces_seen, mempool_idle_bytes, largest_request_bytes, read_ns)
};

// A slab at the moment of the run at which most freed memory of its device was locked in slabs.
struct WorstSlab {
  Id device = 0;            // CUDA ordinal
  std::string address;      // start of the slab, in hexadecimal
  Figure live, live_bytes;  // live pieces in the slab; their bytes
  CUWARDEN_FIELDS(device, address, live, live_bytes)
};

// A call stack whose live pieces locked much freed memory in slabs of a device. It was looked for
// at `time_ns`: at or a little before the moment at which most of the device's memory was locked.
struct WorstSlabHolder {
  Id device = 0;  // CUDA ordinal
  MaybeId stack;  // row of `stacks`; null: no stack was recorded
  // At time_ns: live pieces of this stack in slabs; their bytes; freed bytes that they locked.
  Figure count, bytes, locked_bytes;
  // Time at which the pieces were counted; freed bytes that all stacks locked at that time.
  Figure time_ns, of_locked_bytes;
  CUWARDEN_FIELDS(device, stack, count, bytes, locked_bytes, time_ns, of_locked_bytes)
  CUWARDEN_MAY_LACK(time_ns, of_locked_bytes)
};

// Memory of a device that no allocation had but that other requests could not use, at the moment of
// a refused request.
struct IncidentFragmentation {
  Id incident = 0;      // row of `incidents` about the refused request
  Id device = 0;        // CUDA ordinal
  Figure slab_count;    // number of slabs at the refusal
  Figure slabs_listed;  // rows that `incident_slab_map` has of these slabs; may be fewer
  // At the refusal: freed bytes locked in partly live slabs; bytes that rounding added to requests;
  // unused bytes of memory pools and graphs; bytes of the largest request that could have been
  // served. Null: unknown.
  Figure slab_locked_bytes, rounding_bytes, mempool_idle_bytes, largest_request_bytes;
  CUWARDEN_FIELDS(incident, device, slab_count, slabs_listed, slab_locked_bytes, rounding_bytes,
                  mempool_idle_bytes, largest_request_bytes)
};

// The slabs of one size class, at the moment of a refused request.
struct IncidentSlabClass {
  Id incident = 0;  // row of `incidents` about the refused request
  // Size class: the size of a slab's typical piece, rounded up to a power of two; number of slabs;
  // number of live pieces in them; bytes of these pieces.
  Figure class_bytes, slab_count, live_count, live_bytes;
  CUWARDEN_FIELDS(incident, class_bytes, slab_count, live_count, live_bytes)
};

// A slab at the moment of a refused request.
struct IncidentSlab {
  Id incident = 0;          // row of `incidents` about the refused request
  std::string address;      // start of the slab, in hexadecimal
  Figure live, live_bytes;  // live pieces in the slab; their bytes
  CUWARDEN_FIELDS(incident, address, live, live_bytes)
};

}  // namespace cuwarden::model
