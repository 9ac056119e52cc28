// The stacks, frames and modules that a report's tables refer to, and no others. First every stack
// is added, then name_all() reads each module once, then the ids are looked up.
// Frame ids count from 1; module ids are rows of the ledger, one for each file however often and
// wherever it was loaded. (The ledger says which modules are one file.)
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "reporters/model/code.hpp"
#include "reporters/model/put.hpp"
#include "reporters/symbols/symbolizer.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// A frame of the report's table of frames.
struct FrameRow {
  std::uint32_t module = 0;  // row of the module; 0: the frame lies in no known module
  // address minus the module's load address; the address itself without a module
  std::uint64_t offset = 0;
  const std::string* function = nullptr;  // null: unknown
  const std::string* file = nullptr;
  int line = 0;  // 0: unknown
  bool inlined = false;
};

// A module of the report's table of modules.
struct ModuleRow {
  std::string path;
  std::string build_id;  // hexadecimal; empty: none
};

// Collects stacks of a ledger, names their frames, and gives the report's tables of stacks, frames
// and modules.
class CallFrames {
 public:
  explicit CallFrames(const ledger::Reader& reader) : reader_(reader) {}

  // Adds a stack to the tables; does nothing if it was added already or cannot be read. To be
  // called before name_all().
  void add_stack(StackId);
  // Looks up functions and lines within the budget; null: none are looked up. Adds a reason to
  // `reasons` for each kind of name that is missing.
  void name_all(SymbolBudget* budget, std::vector<std::string>& reasons);

  // Adds modules of the ledger that occur in none of the added stacks.
  void add_other_modules();

  // Returns the stack's id in the report; null if it was not added, or cannot be read.
  model::MaybeId known_stack(StackId id) const {
    return stacks_.contains(id.value) ? std::optional(id.value) : std::nullopt;
  }
  // Returns the id of the group's stack; null also if there is no group, or if the group was made
  // after name_all().
  model::MaybeId known_stack_of(const std::optional<ledger::GroupView>& group) const {
    return group ? known_stack(group->stack) : std::nullopt;
  }
  const std::vector<FrameRow>& frames() const { return frames_; }  // id = index + 1
  const std::map<std::uint32_t, ModuleRow>& modules() const { return modules_; }
  void put_stacks(Put<model::Stack>) const;
  void put_frames(Put<model::Frame>) const;
  void put_modules(Put<model::Module>) const;
  // Returns the ids of the stack's frames, innermost first, with inlined ones.
  std::vector<std::uint32_t> frame_ids(const ledger::StackView&) const;
  const FrameRow& frame(std::uint32_t id) const { return frames_[id - 1]; }

 private:
  struct Location {
    std::uint32_t module = 0;
    std::uint64_t offset = 0;
    std::uint32_t first_frame = 0, frame_count = 0;
  };
  struct AddressHash {
    std::size_t operator()(const std::pair<std::uint64_t, std::uint64_t>& key) const {
      return std::hash<std::uint64_t>{}(key.first ^ (key.second * 0x9e3779b97f4a7c15u));
    }
  };

  // Offsets in one module, and their names.
  struct ModuleLocations {
    std::uint32_t module = 0;
    std::uint64_t file_bytes = 0;
    std::vector<std::uint64_t> offsets;
    std::vector<std::uint32_t> locations;  // indices of locations_
    Symbolised named;
  };

  std::uint32_t module_of(const ledger::ModuleView&);
  std::vector<ModuleLocations> locations_by_module() const;
  const std::string* intern(std::string);

  const ledger::Reader& reader_;
  std::set<std::uint32_t> stacks_;
  std::uint64_t walked_ = 0;  // frames of all stacks_
  std::unordered_map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t, AddressHash>
      locations_by_address_;  // (address, module epoch) → index of locations_
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> locations_by_offset_;
  std::vector<Location> locations_;
  std::map<std::uint32_t, ModuleRow> modules_;
  std::vector<FrameRow> frames_;
  std::unordered_set<std::string> texts_;
};

}  // namespace cuwarden
