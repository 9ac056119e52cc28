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

class Naming {
 public:
  explicit Naming(SymbolBudget& budget) : budget_(budget) {}

  // Returns the path of the file with a build id, given in hexadecimal; empty if it is not known. A
  // path that it returns is used instead of the path that the file had when it ran.
  using FindFile = std::function<std::string(const std::string& build_id)>;
  void look_in(FindFile find) { find_ = std::move(find); }
  // False: only what look_in() finds is read.
  void use_paths(bool use) { uses_paths_ = use; }
  // For a report that is read later: a file without a build id counts as the one that ran only if
  // it has not changed since this moment, in ns since the epoch. Null: never.
  void trust_only_unchanged_since(std::optional<std::int64_t> time_ns);

  // Names that are missed so far: a file that adds nothing is no loss where nothing is missed.
  enum class Missed : std::uint8_t { nothing, lines, functions };
  // `sorted`: offsets in the file.
  Symbolised name(const std::string& path, const std::string& build_id,
                  std::span<const std::uint64_t> sorted, Missed missed = Missed::functions);

  // Sentences about the files that were not named as far as they could be, since the last call.
  // Libraries of the system are never among them.
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
