// Names the code in which a group's allocations are made: the API, and the innermost frame of the
// program. Reading debug information can take seconds, so another thread does it. Until then the
// view shows modules and offsets.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tools/cuwarden/ledgers/ledger_file.hpp"

namespace cuwarden {

// The name of a call site for people: the function called, and the calling function with file and
// line.
struct CallSiteName {
  std::string api, where;
};

class CallSiteNames {
 public:
  explicit CallSiteNames(std::shared_ptr<const LedgerFile>);
  CallSiteNames(const CallSiteNames&) = delete;
  CallSiteNames& operator=(const CallSiteNames&) = delete;
  ~CallSiteNames();  // does not wait for names that are being looked up

  CallSiteName get(std::uint32_t group) const;
  // Makes get() know these groups, and starts to look up their functions in another thread.
  void want(const std::vector<std::uint32_t>& groups);
  // Returns true once all wanted functions were looked up.
  bool are_known() const;
  // Waits until are_known().
  void wait() const;

 private:
  struct Shared;
  static void look_up(std::shared_ptr<Shared>);
  std::shared_ptr<Shared> shared_;
};

}  // namespace cuwarden
