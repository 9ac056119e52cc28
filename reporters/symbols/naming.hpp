// Names offsets in files. Makes sure that a file is the one that ran, reads it once, and keeps a
// sentence about each file that could not be named.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reporters/symbols/symbol_budget.hpp"
#include "reporters/symbols/symbolizer.hpp"

namespace cuwarden {

// Looks up functions and lines of modules, and collects the reasons why some were not found.
class Naming {
 public:
  explicit Naming(SymbolBudget& budget) : budget_(budget) {}

  // A function that returns the path of the file with a build id, which is given in hexadecimal;
  // empty if it knows none. That file is read instead of the file from which the module was loaded.
  using FindFile = std::function<std::string(const std::string& build_id)>;
  void look_in(FindFile find) { find_ = std::move(find); }
  // Says if modules are read from the paths that they were loaded from. If false, only files that
  // look_in()'s function finds are read.
  void use_paths(bool use) { uses_paths_ = use; }
  // Says which files without a build id are trusted to be the ones that ran: those that have not
  // changed since `time_ns` (nanoseconds since 1970). Null: none of them. For reports that are
  // completed later.
  void trust_only_unchanged_since(std::optional<std::int64_t> time_ns);

  // Names of a module that the caller still lacks.
  enum class Missed : std::uint8_t { nothing, lines, functions };
  // Returns functions and lines for offsets in a module. `path`, `build_id`: of the module; the
  // build id in hexadecimal, or empty. `sorted`: offsets from the module's load address, ascending.
  // `missed`: names that the caller still lacks; only if these are not found is a reason kept for
  // take_reasons().
  Symbolised name(const std::string& path, const std::string& build_id,
                  std::span<const std::uint64_t> sorted, Missed missed = Missed::functions);

  // Returns a sentence for each module whose names could not all be found since the last call.
  // Libraries of the system are left out.
  std::vector<std::string> take_reasons();

 private:
  std::string find_file(const std::string& path, const std::string& build_id, FileState&) const;

  SymbolBudget& budget_;
  FindFile find_;
  bool uses_paths_ = true, trusts_paths_ = true;
  std::optional<std::int64_t> unchanged_since_ns_;
  std::map<std::string, ReadFile> files_;  // by path
  std::vector<std::string> reasons_, without_lines_, without_names_;
};

}  // namespace cuwarden
