// Rows that look alike to people: stacks whose frames have the same functions and lines differ only
// in the instructions that made the calls. The text shows such rows as one, with their sums.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "reporters/report_document.hpp"

namespace cuwarden {

class MergedRows {
 public:
  explicit MergedRows(const ReportDocument& report) : report_(report) {}

  // Rows with a `stack` of the same visible frames and with equal values in `alike` become one row,
  // with the first one's stack. `count`, `bytes` and other figures of how much are added up;
  // first_ns and last_ns become the span of all; `growth` is judged anew. By bytes, most first.
  std::vector<nlohmann::json> of(const std::vector<const nlohmann::json*>& rows,
                                 std::initializer_list<const char*> alike);

 private:
  // Equal for stacks whose visible frames are equal.
  std::size_t visible_stack(const nlohmann::json& id);
  nlohmann::json merge(const std::vector<const nlohmann::json*>& rows) const;

  const ReportDocument& report_;
  std::map<std::string, std::size_t> lines_;  // numbers of what is shown of a frame
  std::map<nlohmann::json, std::size_t> lines_by_frame_;
  std::map<std::vector<std::size_t>, std::size_t> stacks_;  // numbers of lists of such lines
  std::map<nlohmann::json, std::size_t> stacks_by_id_;
};

// The leaks of a report, by what people see of their stacks: neither those that a context released
// nor suppressed ones.
std::vector<nlohmann::json> merged_leaks(const ReportDocument&);

}  // namespace cuwarden
