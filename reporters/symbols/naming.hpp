// Finds functions and source lines for offsets in files of code (programs and libraries). Makes
// sure that a file is the one that ran, reads each file once, and keeps a sentence about each file
// whose names were not found.
#pragma once

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

// Looks up functions and source lines of modules (programs and libraries), and collects the reasons
// why some were not found.
class Naming {
 public:
  // Keeps a reference to the budget of time and memory, which all lookups share; the caller keeps
  // it alive.
  explicit Naming(SymbolBudget& budget) : budget_(budget) {}

  // A function that returns the path of an ELF file with the given build id (in hexadecimal); empty
  // if there is none.
  using FindFile = std::function<std::string(const std::string& build_id)>;
  // Sets the function that finds files by build id. name() calls it for each module with a build
  // id, and reads the file that it finds, unchecked, instead of the file from which the module was
  // loaded.
  void look_in(FindFile find) { find_ = std::move(find); }
  // Permits (true) or forbids (false) to read modules from the paths from which they were loaded.
  // If false, only files that the function of look_in() finds are read. A new object permits it.
  void use_paths(bool use) { uses_paths_ = use; }
  // Restricts the reading of the files from which modules were loaded, for a report about an
  // earlier process. Only files with an absolute path are read. If the module has no build id, its
  // file is read only if it was last changed before `time_ns` (nanoseconds since 1970). Null: no
  // file of a module without a build id is read.
  void trust_only_unchanged_since(std::optional<std::int64_t> time_ns);

  // Names of a module that the caller of name() lacks: none, source lines only, or functions and
  // source lines.
  enum class Missed : std::uint8_t { nothing, lines, functions };
  // Returns functions and lines for offsets in a module. `path`: path from which the module was
  // loaded. `build_id`: the module's, in hexadecimal; empty: none. `sorted`: offsets from the
  // module's load address, ascending. `missed`: names that the caller lacks. If these are not all
  // found, for lack of time or memory, a reason is kept for take_reasons(). For `functions`, one is
  // kept also if the file cannot be read or has changed. No reason is kept for a library of the
  // system, nor for an unreadable file with a relative path unless trust_only_unchanged_since() was
  // called. Unknown names are empty in the result, which has a list of frames for each offset: an
  // empty list if the file was not read.
  Symbolised name(const std::string& path, const std::string& build_id,
                  std::span<const std::uint64_t> sorted, Missed missed = Missed::functions);

  // Returns sentences about the modules whose names could not all be found since the last call, and
  // forgets them: one sentence for each unreadable or changed file, one for all files without lines
  // and one for all files without names for which time or memory did not suffice. Libraries of the
  // system are left out.
  std::vector<std::string> take_reasons();

 private:
  // Returns the path of the file to read for a module (`path`: where it was loaded from;
  // `build_id`: in hexadecimal, empty: none), and sets the last parameter to the state of this
  // file. Only a `readable` file may be read.
  std::string find_file(const std::string& path, const std::string& build_id, FileState&) const;

  SymbolBudget& budget_;  // limits of time and memory for all look-ups; not owned
  FindFile find_;         // function that finds files by build id; empty before look_in()
  // uses_paths_: true if modules may be read from the paths from which they were loaded; false:
  // only files that find_ finds are read. trusts_paths_: true if a file without a build id at a
  // module's path counts as the file that ran, unless this process has mapped another one of this
  // name. False: such a file counts only if it is unchanged since unchanged_since_ns_.
  bool uses_paths_ = true, trusts_paths_ = true;
  // Time in nanoseconds since 1970; meaningless if trusts_paths_ is true. A file whose module has
  // no build id counts as the file that ran if it was last changed before this time. Null: no such
  // file counts.
  std::optional<std::int64_t> unchanged_since_ns_;
  std::map<std::string, ReadFile> files_;  // files that libbacktrace has read, by path
  std::vector<std::string> reasons_;       // sentences that take_reasons() returns
  // Paths of modules of which source lines were not found, because time or memory did not suffice.
  std::vector<std::string> without_lines_;
  // Paths of modules of which function names were not found, because time or memory did not
  // suffice.
  std::vector<std::string> without_names_;
};

}  // namespace cuwarden
