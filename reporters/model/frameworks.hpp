// Tables of the report about frameworks, such as PyTorch, that take memory from CUDA in large
// segments and hand it out themselves, in blocks. report.schema.json describes each field.
#pragma once

#include <string>

#include "reporters/model/fields.hpp"
#include "reporters/model/values.hpp"

namespace cuwarden::model {

// Memory of one device, or of the host, that a pool of a framework has taken from CUDA, and the use
// that the framework makes of it.
struct Framework {
  std::string framework;  // name of the framework, such as "PyTorch"
  // Name of the framework's pool that has the memory; null: its main pool on the device.
  Text pool;
  MaybeId device;  // CUDA ordinal of the device; null for host memory
  // Id in the table `incidents` of the refused request at which the figures were taken. Null: they
  // are the latest figures.
  MaybeId incident;
  // Source of the figures. "framework": the framework gave them; but PyTorch's holes and largest
  // free block are computed from blocks that cuwarden recorded. "call_stacks": the framework gave
  // none; reserved_bytes is the sum of the live allocations whose call stacks show the framework.
  std::string source;
  // Time at which the figures were taken, in ns since the process's start; null: the process's end.
  Figure time_ns;
  Figure reserved_bytes;  // bytes that the framework has taken from CUDA; null: unknown
  // Bytes of blocks that the framework has handed out and not got back; most such bytes at one time
  // so far. Null: unknown.
  Figure allocated_bytes, peak_allocated_bytes;
  // Number and bytes of holes: free blocks in partly used segments. A segment is a piece of memory
  // that the framework took from CUDA. Null: unknown.
  Figure hole_count, hole_bytes;
  Figure largest_free_bytes;  // bytes of the framework's largest free block; null: unknown
  CUWARDEN_FIELDS(framework, pool, device, incident, source, time_ns, reserved_bytes,
                  allocated_bytes, peak_allocated_bytes, hole_count, hole_bytes, largest_free_bytes)
};

// Blocks of one call stack that a framework has handed out and not got back, such as the memory of
// live tensors.
struct FrameworkSite {
  std::string framework;  // name of the framework, such as "PyTorch"
  MaybeId device;         // CUDA ordinal of the device; null for host memory
  // Name of this row that is the same in two builds, in two runs and on two machines: 16
  // hexadecimal digits, a hash of the framework's name, and of the functions and modules of the
  // stack's frames. Null: the report is older than this field.
  Text fingerprint;
  // Line of the program's own code that asked for the blocks, such as
  // "/home/u/train.py:41 in step". Null: unknown.
  Text where;
  MaybeId stack;        // id of the call stack in the table `stacks`; null: no stack was recorded
  Figure count, bytes;  // number of the stack's blocks not given back; their bytes; null: unknown
  // Number of blocks that the framework ever handed out to this stack, given back or not. Null if
  // the framework, not cuwarden, gave the stack's figures.
  Figure allocations;
  // Times at which the oldest and the newest of the stack's blocks that were not given back were
  // handed out, in ns since the process's start. Null if the framework, not cuwarden, gave the
  // stack's figures.
  Figure first_ns, last_ns;
  // Growth of the stack's blocks that were not given back. "growing": old ones were handed out in
  // many parts of the run, until near its end. "burst": many old ones were handed out, in a part of
  // the run. "steady": most blocks are given back sooner or later. "one_time": others. Null: the
  // times at which the blocks were handed out are unknown.
  Text growth;
  // survivors: number of old blocks (survivors, as in LeakGroup::growth), by which `growth` is
  // judged; a few late ones of a burst do not count. last_survivor_ns: time at which the newest
  // that counts was handed out, in ns since the process's start. Null: unknown, or the report is
  // older than these fields. last_survivor_ns is also null if no block counts, or if `growth` was
  // judged by steps.
  Figure survivors, last_survivor_ns;
  // first_step: number of the program's step in which the oldest block was handed out; 0: before
  // the first step; null: `growth` was judged by times. growth_bytes_per_step: growth of the
  // blocks' bytes; null: `growth` is not "growing", or was judged by times.
  // growth_bytes_per_minute: growth of the blocks' bytes; null: `growth` is not "growing", or only
  // the program's steps show growth.
  Figure first_step, growth_bytes_per_step, growth_bytes_per_minute;
  CUWARDEN_FIELDS(framework, device, fingerprint, where, stack, count, bytes, allocations, first_ns,
                  last_ns, growth, survivors, last_survivor_ns, first_step, growth_bytes_per_step,
                  growth_bytes_per_minute)
  CUWARDEN_MAY_LACK(fingerprint, survivors, last_survivor_ns)
};

}  // namespace cuwarden::model
