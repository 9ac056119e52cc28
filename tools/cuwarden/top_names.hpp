// Where a group's allocations are made, for people: its API and the innermost frame of the program.
// Reading debug information can take seconds, so it is done beside the view, which shows modules
// and offsets until the names are there.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tools/cuwarden/ledger_file.hpp"

namespace cuwarden {

struct PlaceName {
  std::string api, where;
};

class PlaceNames {
 public:
  explicit PlaceNames(std::shared_ptr<const LedgerFile>);
  PlaceNames(const PlaceNames&) = delete;
  PlaceNames& operator=(const PlaceNames&) = delete;
  ~PlaceNames();  // does not wait for names that are being looked up

  PlaceName get(std::uint32_t group) const;
  // Makes sure that get() knows these, and has their functions looked up.
  void want(const std::vector<std::uint32_t>& groups);
  bool are_known() const;  // all that were wanted
  void wait() const;       // until they are

 private:
  struct Shared;
  static void look_up(std::shared_ptr<Shared>);
  std::shared_ptr<Shared> shared_;
};

}  // namespace cuwarden
