#include "reporters/text/text_frameworks.hpp"

#include <algorithm>
#include <cstdint>

#include "reporters/words/printable.hpp"
#include "reporters/words/quantities.hpp"

namespace cuwarden {

void add_frameworks(const IndexedReport& report, const Style& style, std::string& text) {
  bool is_first = true;
  for (const model::Framework& row : report->frameworks) {
    const std::uint64_t reserved = row.reserved_bytes.value_or(0);
    if (row.incident || (reserved == 0 && row.allocated_bytes.value_or(0) == 0)) continue;
    if (is_first) text += "\n" + style.bold("MEMORY OF FRAMEWORKS") + "\n";
    is_first = false;
    const std::string name = printable(row.framework);
    text += "  " + name + (row.pool ? ", pool " + printable(*row.pool) : std::string()) +
            (row.device ? " (GPU " + std::to_string(*row.device) + ")" : std::string(" (host)")) +
            ": holds " + human_bytes(reserved);
    if (row.allocated_bytes) {
      const std::uint64_t used = std::min(*row.allocated_bytes, reserved);
      text += ", " + human_bytes(used) + " of it in use";
      if (used < reserved) text += ", " + human_bytes(reserved - used) + " free";
      if (row.hole_bytes && row.hole_count && *row.hole_count != 0)
        text += ", of that " + human_bytes(*row.hole_bytes) + " in " +
                human_count(*row.hole_count) + (*row.hole_count == 1 ? " hole" : " holes");
      if (const std::uint64_t largest = row.largest_free_bytes.value_or(0))
        text += ", largest free block " + human_bytes(largest);
    } else {
      const bool was_asked = std::ranges::any_of(report->settings, [](const auto& setting) {
        return setting.name == "CUWARDEN_FRAMEWORKS" && setting.value == "on";
      });
      const bool can_be_asked = !was_asked && (row.framework == "CuPy" || row.framework == "JAX");
      text += style.dim(can_be_asked ? "; in use: unknown, `cuwarden run` asks " + name
                                     : "; only " + name + " knows how much of it is in use");
    }
    text += "\n";
  }
}

}  // namespace cuwarden
