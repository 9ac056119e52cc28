// The stacks, frames and modules that a report's tables refer to. First the caller adds every
// stack, then name_all() reads each module's file once, then the ids are looked up. Frame ids count
// from 1. Module ids are rows of the ledger's table of modules. A file has one id, however often
// and at whatever address it was loaded; the ledger says which modules are one file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "reporters/labels/fingerprint.hpp"
#include "reporters/model/code.hpp"
#include "reporters/model/put.hpp"
#include "reporters/owners/known_libraries.hpp"
#include "reporters/owners/named_frame.hpp"
#include "reporters/symbols/symbolizer.hpp"
#include "runtime_hooks/core/function_ref.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

class Naming;

// Returns the value of the setting in the process of the ledger; empty: not set, or not known. The
// text belongs to the ledger. `variable`: name of the setting, such as "CUWARDEN_LIBRARIES".
std::string_view setting_of(const ledger::Reader&, std::string_view variable);

// A module of the report's table of modules.
struct ModuleRow {
  std::string path;      // path of the program or shared library
  std::string build_id;  // ELF build id of the file, in hexadecimal; empty: the file has none
};

// Collects stacks of a ledger, names their frames, and gives the report's tables of stacks, frames
// and modules.
class CallFrames {
 public:
  // Keeps a reference to the reader of the ledger, which the caller keeps alive.
  explicit CallFrames(const ledger::Reader& reader) : reader_(reader) {}

  // Adds a stack of the ledger to the tables. Does nothing if the id is 0, or if the stack was
  // added already or cannot be read. To be called before name_all().
  void add_stack(StackId);
  // Looks up functions and lines of all added stacks. If `naming` is null, none are looked up;
  // otherwise adds the sentences of Naming::take_reasons() about missing names to `reasons`.
  // `told`: is called with the number of modules that were read and that of all. To be called once,
  // after all calls of add_stack().
  void name_all(
      Naming* naming, std::vector<std::string>& reasons,
      FunctionRef<void(std::size_t done, std::size_t all)> told = [](std::size_t, std::size_t) {});
  // Returns the number of stacks that were added, plus their frames once name_all() has run.
  std::size_t rows() const { return stacks_.size() + frames_.size(); }

  // Adds the modules of the ledger that occur in none of the added stacks to the table of modules.
  void add_other_modules();

  // Returns the stack's id in the report; null if it was not added, or cannot be read.
  model::MaybeId known_stack(StackId id) const {
    return stacks_.contains(id.value) ? std::optional(id.value) : std::nullopt;
  }
  // Returns the report's id of the group's call stack. Null if `group` is null, or if its stack was
  // not added or cannot be read, as that of a group made after name_all().
  model::MaybeId known_stack_of(const std::optional<ledger::GroupView>& group) const {
    return group ? known_stack(group->stack) : std::nullopt;
  }
  // Returns the module of the stack's innermost frame whose module's path the predicate accepts: an
  // id of modules(). 0: there is none. Does not need name_all().
  std::uint32_t innermost_module(const ledger::StackView&,
                                 FunctionRef<bool(std::string_view path)> accepts) const;
  // Returns the table of modules, by id, which is the module's row in the ledger.
  const std::map<std::uint32_t, ModuleRow>& modules() const { return modules_; }
  // Calls the parameter, with a row of the report, for each stack that was added. To be called
  // after name_all().
  void put_stacks(Put<model::Stack>) const;
  // Calls the parameter, with a row of the report, for each frame of the stacks that were added. To
  // be called after name_all().
  void put_frames(Put<model::Frame>) const;
  // Calls the parameter, with a row of the report, for each module of the table of modules. To be
  // called after name_all().
  void put_modules(Put<model::Module>) const;
  // Returns the ids of the stack's frames, innermost first, those of inlined functions included.
  // Code addresses that occur in no added stack are left out.
  std::vector<std::uint32_t> frame_ids(const ledger::StackView&) const;
  // Returns the frames of the stack with their names and libraries, innermost first; none if `id`
  // is null. The texts belong to this object. To be called after name_all().
  std::vector<NamedFrame> named_frames(model::MaybeId id) const;
  // Returns the fingerprint (Fingerprints::of()) of a group of allocations. `frames`: its call
  // stack, from named_frames().
  std::string fingerprint(std::string_view kind, std::string_view api,
                          std::span<const NamedFrame> frames) const {
    return fingerprints_.of(kind, api, frames);
  }

 private:
  // A code address in a stack that was added. The address has one frame in frames_, or, if
  // functions are inlined at it, several that follow each other, innermost first.
  struct Location {
    std::uint32_t module = 0;  // row of the code's module in the ledger; 0: code in no known module
    // Code's address minus the module's load address; if `module` is 0, the address itself.
    std::uint64_t offset = 0;
    // first_frame: id, from 1, of the address's innermost frame; its index in frames_ is one less.
    // frame_count: number of the address's frames, whose ids follow each other. Both are 0 before
    // name_all().
    std::uint32_t first_frame = 0, frame_count = 0;
  };
  // Hash of a code address and its module epoch, the number of modules that had been unloaded so
  // far. Within an epoch, an address belongs to one module only.
  struct AddressHash {
    // Returns the hash of (code address, module epoch).
    std::size_t operator()(const std::pair<std::uint64_t, std::uint64_t>& key) const {
      return std::hash<std::uint64_t>{}(key.first ^ (key.second * 0x9e3779b97f4a7c15u));
    }
  };

  // Offsets of code in one module. Names are looked up for all of them together.
  struct ModuleLocations {
    std::uint32_t module = 0;      // module's row in the ledger; 0: code in no known module
    std::uint64_t file_bytes = 0;  // size of the module's file in bytes; 0: unknown
    // Offsets of code from the module's load address, ascending.
    std::vector<std::uint64_t> offsets;
    std::vector<std::uint32_t> locations;  // index in locations_ of each of `offsets`
    Symbolised named;  // functions and lines that were found for `offsets`; none before the look-up
  };

  // Adds the module's file to the table of modules, unless it is there. Returns the file's id.
  std::uint32_t module_of(const ledger::ModuleView&);
  // Returns the row of the table of frames for an instruction of a Python function. `frame`: as in
  // the ledger's stacks.
  NamedFrame python_row(std::uint64_t frame);
  // Returns the code addresses of all added stacks, by module, without names.
  std::vector<ModuleLocations> locations_by_module() const;
  // Sets the libraries of the rows of frames_.
  void name_libraries();
  // Keeps a text in texts_, and returns it; empty if the text is.
  std::string_view intern(std::string);

  const ledger::Reader& reader_;    // reads the ledger; not owned
  std::set<std::uint32_t> stacks_;  // ids of the added stacks
  // Number of all code addresses in stacks_, to bound the work in a damaged ledger.
  std::uint64_t walked_ = 0;
  // Bytes of the tables of lines of Python functions that were gone through.
  std::uint64_t table_bytes_ = 0;
  std::unordered_map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t, AddressHash>
      // (address, module epoch: number of modules unloaded so far) → index of locations_.
      locations_by_address_;
  // (module's row in the ledger, offset in the module) → index of locations_.
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> locations_by_offset_;
  std::vector<Location> locations_;  // code addresses of all added stacks, each once
  // Table of modules, by id: the module's row in the ledger.
  std::map<std::uint32_t, ModuleRow> modules_;
  // Table of frames, which name_all() fills; a frame's id is its index + 1. The texts are those of
  // modules_, texts_ and libraries_.
  std::vector<NamedFrame> frames_;
  // The libraries that are not the program's own. name_all() makes it.
  std::optional<KnownLibraries> libraries_;
  // Names of functions and files to which rows of frames_ point.
  std::unordered_set<std::string> texts_;
  mutable Fingerprints fingerprints_;  // keeps what was made up of the names of frames_
};

}  // namespace cuwarden
