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

struct FrameRow {
  std::uint32_t module = 0;  // 0: in no module that is known
  std::uint64_t offset = 0;  // address - load base; the address itself without a module
  const std::string* function = nullptr;  // null: unknown
  const std::string* file = nullptr;
  int line = 0;
  bool inlined = false;
};

struct ModuleRow {
  std::string path;
  std::string build_id;  // hexadecimal; empty: none
};

class CallFrames {
 public:
  explicit CallFrames(const ledger::Reader& reader) : reader_(reader) {}

  void add_stack(StackId);
  // Looks up functions and lines within the budget; null: none are looked up. Adds a reason to
  // `reasons` for each kind of name that is missing.
  void name_all(SymbolBudget* budget, std::vector<std::string>& reasons);

  // Adds the modules that allocations came through which are in none of the stacks.
  void add_other_modules();

  // Returns the stack's id if it was added and can be read.
  model::MaybeId known_stack(StackId id) const {
    return stacks_.contains(id.value) ? std::optional(id.value) : std::nullopt;
  }
  // Null as well without a group, and for a group that is newer than the names of the frames.
  model::MaybeId known_stack_of(const std::optional<ledger::GroupView>& group) const {
    return group ? known_stack(group->stack) : std::nullopt;
  }
  const std::vector<FrameRow>& frames() const { return frames_; }  // id = index + 1
  const std::map<std::uint32_t, ModuleRow>& modules() const { return modules_; }
  void put_stacks(Put<model::Stack>) const;
  void put_frames(Put<model::Frame>) const;
  void put_modules(Put<model::Module>) const;
  // Ids of the frames of a stack, innermost first, inlined ones included.
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
