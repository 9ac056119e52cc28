#include "reporters/text/text_reserves.hpp"

#include <cstddef>

#include "reporters/words/printable.hpp"
#include "reporters/words/quantities.hpp"

namespace cuwarden {

void add_library_reserves(const IndexedReport& report, const Style& style, std::string& text) {
  constexpr std::size_t most_rows = 5;
  const auto& reserves = report->library_reserves;
  if (reserves.empty()) return;
  text += "\n" + style.bold("MEMORY THAT LIBRARIES KEEP") + "\n";
  for (std::size_t i = 0; i < reserves.size() && i < most_rows; ++i) {
    const model::LibraryReserve& row = reserves[i];
    text += "  " + padded(printable(row.library), 12) + " " +
            padded(human_bytes(row.bytes.value_or(0)), 11, true) + " in " +
            allocations(row.count.value_or(0)) +
            (row.device ? " (GPU " + std::to_string(*row.device) + ")" : std::string(" (host)")) +
            " · " + printable(row.holds) + "\n";
    if (row.gives_back)
      text += style.dim("    to get memory back: " + text_or(row.gives_back, "")) + "\n";
    if (row.limited_by) text += style.dim("    to limit it: " + text_or(row.limited_by, "")) + "\n";
  }
  if (reserves.size() > most_rows)
    text += style.dim("  … and " + human_count(reserves.size() - most_rows) +
                      " more; they are in the report") +
            "\n";
}

}  // namespace cuwarden
