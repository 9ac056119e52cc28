// Finds functions and source lines for offsets in files of code (programs and libraries). Makes
// sure that a file is the one that ran, and reads each file once. Keeps a sentence about each file
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
  // Keeps a reference to the budget: the limits of time and memory for all lookups together. The
  // caller keeps it alive.
  explicit Naming(SymbolBudget& budget) : budget_(budget) {}

  // A function that returns the path of an ELF file with the given build id (in hexadecimal); empty
  // if there is none.
  using FindFile = std::function<std::string(const std::string& build_id)>;
  // Sets a function that finds files by build id, such as files with debug information. name()
  // calls it for each module with a build id. A file that it finds is read in place of the one from
  // which the module was loaded; its build id is not checked.
  void look_in(FindFile find) { find_ = std::move(find); }
  // Permits (true) or forbids (false) to read modules from the paths from which they were loaded.
  // If forbidden, only files that the function of look_in() finds are read. A new object permits
  // it.
  void use_paths(bool use) { uses_paths_ = use; }
  // For reports about earlier processes: restricts which files are read at the paths from which
  // modules were loaded, since they may have changed. Only files with an absolute path are read.
  // The file of a module without a build id is read only if it was last changed before `time_ns`
  // (nanoseconds since 1970). Null: no such file is read.
  void trust_only_unchanged_since(std::optional<std::int64_t> time_ns);

  // The names of a module that the caller of name() lacks: none, source lines only, or functions
  // and source lines. With `nothing`, name() keeps no reason. With `lines`, it keeps one only if
  // time or memory did not suffice.
  enum class Missed : std::uint8_t { nothing, lines, functions };
  // Returns functions and lines for offsets in a module. `path`: path from which the module was
  // loaded. `build_id`: the module's build id in hexadecimal; empty: none. `sorted`: offsets from
  // the module's load address, ascending. The result has a list of frames for each offset; an empty
  // list if the file was not read. Names that are unknown are empty.
  // `missed`: names that the caller lacks. Unless it is `nothing`, a reason is kept for
  // take_reasons() if time or memory did not suffice. If functions are lacking, a reason is also
  // kept if the file could not be read or has changed. No reason is kept for a library of the
  // system. For an unreadable file with a relative path, a reason is kept only after
  // trust_only_unchanged_since().
  Symbolised name(const std::string& path, const std::string& build_id,
                  std::span<const std::uint64_t> sorted, Missed missed = Missed::functions);

  // Returns sentences about modules whose names were not all found since the last call, and forgets
  // them. Each unreadable or changed file has a sentence. If time or memory did not suffice, one
  // sentence names all files without lines, and one all files without names. Libraries of the
  // system are left out.
  std::vector<std::string> take_reasons();

 private:
  // Returns the path of the file to read for a module, and sets the last parameter to the state of
  // this file: only a `readable` one may be read. `path`: path from which the module was loaded.
  // `build_id`: in hexadecimal; empty: none.
  std::string find_file(const std::string& path, const std::string& build_id, FileState&) const;

  SymbolBudget& budget_;  // limits of time and memory for all lookups; not owned
  FindFile find_;         // function that finds files by build id; empty before look_in()
  // uses_paths_: true if modules may be read from the paths from which they were loaded; false:
  // only files that find_ finds are read. trusts_paths_: true if a file without a build id at such
  // a path counts as the file that ran, unless this process has mapped another file of this path.
  // False: it counts only if it is unchanged since unchanged_since_ns_.
  bool uses_paths_ = true, trusts_paths_ = true;
  // If trusts_paths_ is false: a file without a build id counts as the file that ran if it was last
  // changed before this time, in nanoseconds since 1970. Null: no such file counts.
  std::optional<std::int64_t> unchanged_since_ns_;
  std::map<std::string, ReadFile> files_;  // files that libbacktrace has read, by path
  std::vector<std::string> reasons_;       // sentences about unreadable or changed files
  // Paths of modules of which source lines were not found, because time or memory did not suffice.
  std::vector<std::string> without_lines_;
  // Paths of modules of which function names were not found, because time or memory did not
  // suffice.
  std::vector<std::string> without_names_;
};

}  // namespace cuwarden
