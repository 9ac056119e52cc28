// The leaks of one or several reports, by fingerprint.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reporters/model/indexed_report.hpp"
#include "reporters/text/text_elements.hpp"
#include "runtime_hooks/core/function_ref.hpp"

namespace cuwarden {

// The sum of the leaks that have one fingerprint, in one or several reports or in a baseline.
// Unknown figures of reports count as 0. The texts are printable.
struct FingerprintedLeak {
  std::string kind;                    // kind of memory, such as "device"
  std::string api{};                   // CUDA function that the program called; empty: unknown
  std::uint64_t count = 0, bytes = 0;  // number of allocations that were not freed; their bytes
  // Number and bytes of allocations to which no pointer was found, and of those for which the
  // search for pointers has no result. 0 in a baseline.
  std::uint64_t lost_count = 0, lost_bytes = 0, unknown_count = 0, unknown_bytes = 0;
  // Function of the program's own code that led to the allocations, and its module, without line
  // and folder: "Cache::insert in libcache.so". In a baseline, the comment on the line. Empty:
  // unknown.
  std::string caller{};
  // Line of the program's own code that led to the allocations, without its folder: "cache.cpp:41
  // in Cache::insert". Empty: unknown. In a baseline, the same as `caller`.
  std::string where{};
  // Path of the source file, and line in it, of the program's own code that led to the allocations;
  // empty and 0: unknown, as in a baseline.
  std::string file{};
  std::uint64_t line = 0;
  // Pattern of a suppression for the leak; empty in a baseline, and if the stack is unknown.
  std::string pattern{};
  // Named steps (such as tests) in which the allocations were made, most bytes first. Empty in a
  // baseline, and for tensors.
  std::vector<model::NamedStep> named_steps{};
  // True if `pattern` matches all call stacks of the program's main thread.
  bool is_pattern_of_program = false;
  // Call stack of the allocations as lines of text, each with a line feed; that of the group that
  // was added first. Empty in a baseline.
  std::string stack{};
};

// Leaks by fingerprint (model::LeakGroup::fingerprint).
using LeaksByFingerprint = std::map<std::string, FingerprintedLeak>;

// Returns lines that suppress these leaks, to be pasted into a file of suppressions: for each leak
// a comment with its size, and "leak:PATTERN". A pattern occurs once. Tensors have no line, and the
// line for main() is a comment.
std::string suppression_lines(const LeaksByFingerprint&);

// A leak of a report: a row of its table `leak_groups` or `framework_sites`. The texts belong to
// the report.
struct LeakRow {
  std::string_view fingerprint, kind;
  std::string_view api;  // CUDA function that the program called, or framework; empty: unknown
  model::MaybeId stack;  // row of the table `stacks`; null: no stack was recorded
  model::Figure count = 0, bytes = 0;  // number of allocations that were not freed; their bytes
  // As in FingerprintedLeak.
  model::Figure lost_count = 0, lost_bytes = 0, unknown_count = 0, unknown_bytes = 0;
  std::span<const model::NamedStep> named_steps{};
};

// Most lines for the frames of one stack in a comparison; `cuwarden report FILE` shows more.
inline constexpr std::size_t most_compared_frames = 12;

// Calls `visit` with each leak of the report: memory that was not freed, suppressed and released
// memory left out, and live tensors, where they were recorded, in place of the memory of their
// framework in which they lie. `module`: if not empty, only leaks of modules whose path contains
// this text are visited, and no tensors.
void each_leak(const IndexedReport&, const std::string& module,
               FunctionRef<void(const LeakRow&)> visit);

// Adds the fingerprints of the report's suppressed leaks.
void add_suppressed_of(const IndexedReport&, std::set<std::string>& fingerprints);

// Adds the leaks that each_leak() visits. The style is that of FingerprintedLeak::stack.
void add_leaks_of(const IndexedReport&, const std::string& module, const Style&,
                  LeaksByFingerprint&);

}  // namespace cuwarden
