// Advice about memory that libraries of the process keep for themselves.
#include "reporters/verdicts/predicates.hpp"
#include "reporters/words/quantities.hpp"

namespace cuwarden::verdicts {
namespace {

// Most reserves that an advice names. Smaller ones are in the report.
constexpr std::size_t most_reserves = 2;
// A reserve is named if it has at least 1/20 of the bytes that were lacking.
constexpr std::uint64_t least_part = 20;

// Returns the bytes that the device lacked for the request. For host memory that is not known, and
// the result is the size of the request. 0: nothing is known to have been lacking.
std::uint64_t lacking(const Shortage& shortage) {
  return shortage.given().device == no_device ? shortage.incident().bytes
                                              : shortage.missing().value_or(0);
}

std::string advice_on(const LibraryReserve& reserve, std::uint64_t bytes) {
  return "; " + std::string(reserve.library) + " has " + human_bytes(bytes) + " (" +
         std::string(reserve.holds) + "): " +
         (reserve.gives_back.empty()
              ? "to limit it, use " + std::string(reserve.limited_by)
              : "to get memory back, call " + std::string(reserve.gives_back));
}

}  // namespace

std::string advice_on_reserves(const Shortage& shortage) {
  std::string text;
  std::size_t named = 0;
  const std::uint64_t bytes_lacking = lacking(shortage);
  if (bytes_lacking == 0) return text;
  for (const auto& [reserve, bytes] : shortage.given().reserves)
    if (bytes >= bytes_lacking / least_part && named++ < most_reserves)
      text += advice_on(*reserve, bytes);
  return text;
}

}  // namespace cuwarden::verdicts
