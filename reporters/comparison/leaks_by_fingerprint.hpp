// The leaks of one or several reports, summed up by fingerprint.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reporters/model/indexed_report.hpp"
#include "reporters/text/elements/text_elements.hpp"
#include "runtime_hooks/core/function_ref.hpp"

namespace cuwarden {

// The sum of the leaks that have one fingerprint, in one or several reports or in a baseline (file
// of known leaks). Unknown figures of reports count as 0. The texts are printable.
struct FingerprintedLeak {
  std::string kind;                    // kind of memory, such as "device"
  std::string api{};                   // CUDA function that the program called; empty: unknown
  std::uint64_t count = 0, bytes = 0;  // number of allocations that were not freed; their bytes
  // lost: number and bytes of allocations to which no pointer was found. unknown: those for which
  // the search for pointers has no result. All are 0 in a baseline.
  std::uint64_t lost_count = 0, lost_bytes = 0, unknown_count = 0, unknown_bytes = 0;
  // Function of the program's own code that led to the allocations, and its module, without line
  // and folder: "Cache::insert in libcache.so". Empty: unknown. In a baseline, this is the comment
  // on the leak's line.
  std::string caller{};
  // Line of the program's own code that led to the allocations, without its folder: "cache.cpp:41
  // in Cache::insert". Empty: unknown. In a baseline, this is the same as `caller`.
  std::string where{};
  // Path of the source file with the program's own code that led to the allocations, without "."
  // and ".." as parts, except leading ".." of a relative path. Empty: unknown, as in a baseline.
  std::string file{};
  // Line in `file`; 0: unknown, as in a baseline.
  std::uint64_t line = 0;
  // Pattern of a suppression (a rule that excludes leaks) for this leak. Empty in a baseline, and
  // if the call stack is unknown.
  std::string pattern{};
  // Named steps (such as tests) in which the allocations were made, each with the number and bytes
  // of its allocations, most bytes first. Empty in a baseline, and for tensors.
  std::vector<model::NamedStep> named_steps{};
  // True if `pattern` would suppress all leaks of the program's main thread: it is that of main()
  // or of the program's file.
  bool is_pattern_of_program = false;
  // Call stack of the allocations as lines of text, each with a line feed. If several stacks have
  // the fingerprint, the one that was added first. Empty in a baseline.
  std::string stack{};
};

// Leaks, by the fingerprint of their call stack and kind (model::LeakGroup::fingerprint), which
// stays the same from build to build.
using LeaksByFingerprint = std::map<std::string, FingerprintedLeak>;

// Returns lines for a file of suppressions (rules that exclude leaks) that suppress these leaks.
// Each pattern has a comment with the leaks' size, and a line "leak:PATTERN". If the pattern would
// suppress all leaks of the program, this line is commented out. Tensors, and leaks whose call
// stack is unknown, have no line.
std::string suppression_lines(const LeaksByFingerprint&);

// A leak of a report: a row of its table `leak_groups` or `framework_sites`. The texts belong to
// the report.
struct LeakRow {
  // Fingerprint of the leak, and kind of memory, such as "device".
  std::string_view fingerprint, kind;
  std::string_view api;  // CUDA function that the program called, or framework; empty: unknown
  model::MaybeId stack;  // row of the table `stacks`; null: no stack was recorded
  // Number of allocations that were not freed, and their bytes; null: unknown.
  model::Figure count = 0, bytes = 0;
  // lost: number and bytes of allocations to which no pointer was found. unknown: those for which
  // the search for pointers has no result. Null: unknown.
  model::Figure lost_count = 0, lost_bytes = 0, unknown_count = 0, unknown_bytes = 0;
  // Named steps (such as tests) in which the allocations were made.
  std::span<const model::NamedStep> named_steps{};
};

// Most lines that a comparison shows of one call stack; `cuwarden report FILE` shows more.
inline constexpr std::size_t most_compared_frames = 12;

// Calls `visit` for each leak of the report: groups of allocations that were not freed and are not
// suppressed. Memory that the end of a context released is left out. If the report lists live
// tensors, these are visited in place of the framework's memory in which they lie. `module`: text;
// only leaks of modules whose path contains it are visited, and no tensors. Empty: all leaks are
// visited.
void each_leak(const IndexedReport&, const std::string& module,
               FunctionRef<void(const LeakRow&)> visit);

// Adds the fingerprints of the report's suppressed leaks to `fingerprints`.
void add_suppressed_of(const IndexedReport&, std::set<std::string>& fingerprints);

// Adds the leaks of the report to `leaks`. `module`: text; only leaks of modules whose path
// contains it are added, and no tensors. Empty: all leaks are added (each_leak()). The style is
// that of the text FingerprintedLeak::stack. `told`: is called now and then with the number of
// leaks that were added so far, and the number of all rows of the report that may be leaks.
void add_leaks_of(
    const IndexedReport&, const std::string& module, const Style&, LeaksByFingerprint& leaks,
    FunctionRef<void(std::size_t rows, std::size_t all)> told = [](std::size_t, std::size_t) {});

}  // namespace cuwarden
