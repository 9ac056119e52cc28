#include "reporters/text/shown_holders.hpp"

#include <algorithm>

#include "reporters/words/quantities.hpp"

namespace cuwarden {

std::size_t shown_holders(std::size_t count, std::size_t top) {
  constexpr std::size_t most_holders = 3;
  return top == 0 ? count : std::min({count, top, most_holders});
}

void add_left_out_holders(std::size_t count, std::uint64_t bytes, const Style& style,
                          std::string& text) {
  if (count == 0) return;
  text += style.dim("    … " + human_count(count) +
                    (count == 1 ? " more holder, " : " more holders, ") + human_bytes(bytes) +
                    " (--top 0 shows all)") +
          "\n";
}

}  // namespace cuwarden
