// Tables of the report about memory that is held but cannot be used: at the end, at the worst
// moment of the run, and at incidents. report.schema.json describes each field.
#pragma once

#include <string>

#include "reporters/model/fields.hpp"
#include "reporters/model/values.hpp"

namespace cuwarden::model {

// Memory of a device that is free inside the process but lost to other requests.
struct Fragmentation {
  Id device = 0;
  Text at;  // null: the device was never read
  Figure slab_count, slab_locked_bytes, rounding_bytes, mempool_idle_bytes, largest_request_bytes;
  Figure page_bytes, step_bytes;
  Figure largest_piece_bytes;  // null: no two allocations shared a page
  Figure excess_bytes;  // by which the rows of the account exceed used_bytes; null: no reading
  CUWARDEN_FIELDS(device, at, slab_count, slab_locked_bytes, rounding_bytes, mempool_idle_bytes,
                  largest_request_bytes, page_bytes, step_bytes, largest_piece_bytes, excess_bytes)
  CUWARDEN_MAY_LACK(at, mempool_idle_bytes, page_bytes, step_bytes, largest_piece_bytes,
                    excess_bytes)
};

// Slabs of a device by the size of their pieces, at the end or at the worst moment.
struct SlabClass {
  Id device = 0;
  Figure class_bytes, slab_count, live_count, live_bytes;
  CUWARDEN_FIELDS(device, class_bytes, slab_count, live_count, live_bytes)
};

// A slab of a device at the end.
struct Slab {
  Id device = 0;
  std::string address;
  Figure class_bytes;
  Figure slots, live;  // pieces of class_bytes that fit into the slab; pieces that are live
  CUWARDEN_FIELDS(device, address, class_bytes, slots, live)
};

// A call stack whose pieces lock slabs at the end.
struct SlabHolder {
  Id device = 0;
  MaybeId stack;
  Figure count, bytes;
  Figure locked_bytes;  // each slab's locked bytes are divided equally among its pieces
  CUWARDEN_FIELDS(device, stack, count, bytes, locked_bytes)
};

// The moment of the run at which most freed memory of a device was locked in slabs.
struct WorstFragmentation {
  Id device = 0;
  Figure time_ns, slab_count, slab_locked_bytes, rounding_bytes, pieces_seen;
  Figure mempool_idle_bytes, largest_request_bytes, read_ns;  // null: there was no reading
  CUWARDEN_FIELDS(device, time_ns, slab_count, slab_locked_bytes, rounding_bytes, pieces_seen,
                  mempool_idle_bytes, largest_request_bytes, read_ns)
  CUWARDEN_MAY_LACK(rounding_bytes, pieces_seen, mempool_idle_bytes, largest_request_bytes, read_ns)
};

// A slab of a device at the moment of its worst fragmentation.
struct WorstSlab {
  Id device = 0;
  std::string address;
  Figure live, live_bytes;
  CUWARDEN_FIELDS(device, address, live, live_bytes)
};

// A call stack that locked most in slabs of a device at `time_ns`, a little before the moment of
// its worst fragmentation.
struct WorstSlabHolder {
  Id device = 0;
  MaybeId stack;
  Figure count, bytes, locked_bytes;
  Figure time_ns, of_locked_bytes;
  CUWARDEN_FIELDS(device, stack, count, bytes, locked_bytes, time_ns, of_locked_bytes)
  CUWARDEN_MAY_LACK(time_ns, of_locked_bytes)
};

// Fragmentation of a device at an incident.
struct IncidentFragmentation {
  Id incident = 0;
  Id device = 0;
  Figure slab_count;
  Figure slabs_listed;  // rows of incident_slab_map
  Figure slab_locked_bytes, rounding_bytes, mempool_idle_bytes, largest_request_bytes;
  CUWARDEN_FIELDS(incident, device, slab_count, slabs_listed, slab_locked_bytes, rounding_bytes,
                  mempool_idle_bytes, largest_request_bytes)
};

// Slabs at an incident by the size of their pieces.
struct IncidentSlabClass {
  Id incident = 0;
  Figure class_bytes, slab_count, live_count, live_bytes;
  CUWARDEN_FIELDS(incident, class_bytes, slab_count, live_count, live_bytes)
};

// A slab at an incident.
struct IncidentSlab {
  Id incident = 0;
  std::string address;
  Figure live, live_bytes;
  CUWARDEN_FIELDS(incident, address, live, live_bytes)
};

}  // namespace cuwarden::model
