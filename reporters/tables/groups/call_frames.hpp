// The stacks, frames and modules to which a report's tables refer. The caller first adds every
// stack. Then name_all() reads the file of each module once, and after that ids are looked up.
// Frame ids count from 1. The id of a file of code is the row, in the ledger's table of modules, of
// the first module that was loaded from it. A file has one id, however often and at whatever
// address it was loaded; the ledger says which of its modules are one file.
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

// Returns the value of a setting of cuwarden in the process of the ledger; empty: not set, or not
// known. The text belongs to the ledger. `variable`: name of the setting, such as
// "CUWARDEN_LIBRARIES".
std::string_view setting_of(const ledger::Reader&, std::string_view variable);

// A row of the report's table of modules: a program or a shared library.
struct ModuleRow {
  std::string path;      // path of the program's or library's file
  std::string build_id;  // ELF build id of the file, in hexadecimal; empty: the file has none
};

// Collects call stacks of a ledger, names their frames, and gives the report's tables of stacks,
// frames and modules.
class CallFrames {
 public:
  // Keeps a reference to the reader of the ledger, which the caller keeps alive.
  explicit CallFrames(const ledger::Reader& reader) : reader_(reader) {}

  // Adds a stack of the ledger to the table of stacks. Does nothing if the id is 0, if the stack
  // was added already, or if it cannot be read. To be called before name_all().
  void add_stack(StackId);
  // Looks up functions and source lines for the frames of all added stacks. Python functions are
  // named from the ledger. If `naming` is null, no other function is named, and `told` is not
  // called. Otherwise adds the sentences of Naming::take_reasons() about missing names to
  // `reasons`. `told`: is called before each module, with the number of modules that are done and
  // the number of all. To be called once, after all calls of add_stack().
  void name_all(
      Naming* naming, std::vector<std::string>& reasons,
      FunctionRef<void(std::size_t done, std::size_t all)> told = [](std::size_t, std::size_t) {});
  // Returns the number of rows of the tables of stacks and frames. Frames are in their table once
  // name_all() has run.
  std::size_t rows() const { return stacks_.size() + frames_.size(); }

  // Adds the modules of the ledger that occur in none of the added stacks to the table of modules.
  void add_other_modules();

  // Returns the report's id of a stack of the ledger; null if the stack was not added, or cannot be
  // read.
  model::MaybeId known_stack(StackId id) const {
    return stacks_.contains(id.value) ? std::optional(id.value) : std::nullopt;
  }
  // Returns the report's id of the group's call stack. Null if `group` is null, or if its stack was
  // not added or cannot be read. Groups that the process made after name_all() have such stacks.
  model::MaybeId known_stack_of(const std::optional<ledger::GroupView>& group) const {
    return group ? known_stack(group->stack) : std::nullopt;
  }
  // Walks the stack from its innermost frame outwards. Returns the id of the first module for which
  // `accepts` returns true; 0 if there is none. `path`: path of a frame's module. Frames without a
  // known module are skipped. The stack must have been added. May be called before name_all().
  std::uint32_t innermost_module(const ledger::StackView&,
                                 FunctionRef<bool(std::string_view path)> accepts) const;
  // Returns the table of modules by id. The id is the row in the ledger of the first module that
  // was loaded from the file; other modules of the file have no entry.
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
  // Returns the ids of the stack's frames, innermost first; inlined functions have frames of their
  // own. Code addresses that occur in no added stack are left out. To be called after name_all().
  std::vector<std::uint32_t> frame_ids(const ledger::StackView&) const;
  // Returns the frames of the stack with their names and libraries, innermost first; none if `id`
  // is null. The texts belong to this object. To be called after name_all().
  std::vector<NamedFrame> named_frames(model::MaybeId id) const;
  // Returns the fingerprint of a group of allocations, by which builds of the program can be
  // compared (Fingerprints::of()). `kind`: kind of memory. `api`: CUDA function that the program
  // called. `frames`: the group's call stack, from named_frames().
  std::string fingerprint(std::string_view kind, std::string_view api,
                          std::span<const NamedFrame> frames) const {
    return fingerprints_.of(kind, api, frames);
  }

 private:
  // A code address in a stack that was added. The address has one frame in frames_. If functions
  // are inlined at the address, it has several, which follow each other, innermost first.
  struct Location {
    std::uint32_t module = 0;  // id of the code's file in modules_; 0: code in no known module
    // Address of the code minus the module's load address. If `module` is 0: the address itself, or
    // the value that stands for an instruction of a Python function.
    std::uint64_t offset = 0;
    // first_frame: id, from 1, of the address's innermost frame; its index in frames_ is one less.
    // frame_count: number of the address's frames, whose ids follow each other. Both are 0 before
    // name_all().
    std::uint32_t first_frame = 0, frame_count = 0;
  };
  // Hashes pairs of a code address and a module epoch: the number of modules that had been unloaded
  // when the address was recorded. Within an epoch, an address belongs to one module only.
  struct AddressHash {
    // Returns the hash of (code address, module epoch).
    std::size_t operator()(const std::pair<std::uint64_t, std::uint64_t>& key) const {
      return std::hash<std::uint64_t>{}(key.first ^ (key.second * 0x9e3779b97f4a7c15u));
    }
  };

  // The code addresses in one module whose functions and lines are looked up together, and the
  // result of the look-up.
  struct ModuleLocations {
    std::uint32_t module = 0;      // id of the file in modules_; 0: the code is in no known module
    std::uint64_t file_bytes = 0;  // bytes of the module's file; 0: unknown
    // Offsets of code from the module's load address, ascending.
    std::vector<std::uint64_t> offsets;
    std::vector<std::uint32_t> locations;  // for each of `offsets`, its index in locations_
    Symbolised named;  // functions and lines that were found for `offsets`; none before the look-up
  };

  // Adds the module's file to the table of modules if it is not there. Returns the file's id.
  std::uint32_t module_of(const ledger::ModuleView&);
  // Returns the row of the table of frames for an instruction of a Python function. `frame`: the
  // value that stands for the instruction in the ledger's stacks.
  NamedFrame python_row(std::uint64_t frame);
  // Returns the code addresses of all added stacks, by module, without names.
  std::vector<ModuleLocations> locations_by_module() const;
  // Sets the field `library` of all rows of frames_.
  void name_libraries();
  // Keeps a text in texts_, and returns a view of the kept text; an empty text is not kept.
  std::string_view intern(std::string);

  const ledger::Reader& reader_;    // reads the ledger; not owned
  std::set<std::uint32_t> stacks_;  // ids of the added stacks
  // Number of all code addresses in stacks_; limits the work in a damaged ledger.
  std::uint64_t walked_ = 0;
  // Bytes of all tables of Python source lines that were searched so far; limits the work in a
  // damaged ledger.
  std::uint64_t table_bytes_ = 0;
  // (code address, number of modules that had been unloaded) → index in locations_.
  std::unordered_map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t, AddressHash>
      locations_by_address_;
  // (id of the file in modules_, offset in the module) → index in locations_.
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> locations_by_offset_;
  std::vector<Location> locations_;  // code addresses of all added stacks, each once
  // Table of modules, by id: the row in the ledger of the first module that was loaded from the
  // file.
  std::map<std::uint32_t, ModuleRow> modules_;
  // Table of frames, which name_all() fills; a frame's id is its index + 1. The texts in its rows
  // belong to modules_, texts_ and libraries_.
  std::vector<NamedFrame> frames_;
  // Libraries whose code is not the program's own; null before name_all().
  std::optional<KnownLibraries> libraries_;
  // Names of functions and files to which rows of frames_ point.
  std::unordered_set<std::string> texts_;
  // Makes fingerprints, and keeps the parts of them that occur again.
  mutable Fingerprints fingerprints_;
};

}  // namespace cuwarden
