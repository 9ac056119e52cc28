// Tables of the report about frameworks, such as PyTorch, that take memory from CUDA in large
// segments and hand it out themselves, in blocks. report.schema.json describes each field.
#pragma once

#include <string>

#include "reporters/model/fields.hpp"
#include "reporters/model/values.hpp"

namespace cuwarden::model {

// Memory of one device, or of the host, that a framework has taken from CUDA, and what it does with
// it.
struct Framework {
  std::string framework;  // name of the framework, such as "PyTorch"
  // Name of the framework's pool that has the memory; null: its main pool on the device.
  Text pool;
  MaybeId device;  // CUDA ordinal of the device; null for host memory
  // Row of the table `incidents` at whose refusal the figures were given; null: the latest figures.
  MaybeId incident;
  // "framework": the figures are the framework's own; PyTorch's holes and largest free block are
  // cuwarden's, from recorded blocks. "call_stacks": the framework gave none;
  // reserved_bytes are the live allocations for which its library asked, by their call stacks.
  std::string source;
  Figure time_ns;         // time of the figures, in ns since the process's start; null: the end
  Figure reserved_bytes;  // bytes that the framework has taken from CUDA
  // Bytes of blocks that the framework has handed out, and most such bytes so far. Null: unknown.
  Figure allocated_bytes, peak_allocated_bytes;
  // Number and bytes of holes: free blocks in segments of which another part is in use. Null:
  // unknown.
  Figure hole_count, hole_bytes;
  Figure largest_free_bytes;  // bytes of the largest free block; null: unknown
  CUWARDEN_FIELDS(framework, pool, device, incident, source, time_ns, reserved_bytes,
                  allocated_bytes, peak_allocated_bytes, hole_count, hole_bytes, largest_free_bytes)
};

// Blocks of one call stack that a framework has handed out and not got back, such as the memory of
// live tensors.
struct FrameworkSite {
  std::string framework;  // name of the framework, such as "PyTorch"
  MaybeId device;         // CUDA ordinal of the device; null for host memory
  // Name that is the same in two builds, as in LeakGroup, with kind "framework_block" and the
  // framework's name for the function. Null: the report is older than this field.
  Text fingerprint;
  Text where;           // line of the program's own code, as in LeakGroup; null: unknown
  MaybeId stack;        // row of the table `stacks`; null: no stack was recorded
  Figure count, bytes;  // number of the blocks; their bytes
  // Null, as all that follows, if the framework itself has given the figures of the stack.
  Figure allocations;  // number of blocks that this stack ever got, given back or not
  // Times at which the oldest and the newest of the blocks were handed out, in ns since the
  // process's start.
  Figure first_ns, last_ns;
  // Growth of the blocks, as in LeakGroup.
  Text growth;
  Figure first_step, growth_bytes_per_step, growth_bytes_per_minute;
  CUWARDEN_FIELDS(framework, device, fingerprint, where, stack, count, bytes, allocations, first_ns,
                  last_ns, growth, first_step, growth_bytes_per_step, growth_bytes_per_minute)
  CUWARDEN_MAY_LACK(fingerprint)
};

}  // namespace cuwarden::model
