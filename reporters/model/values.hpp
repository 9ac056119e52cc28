// Types of single values in the report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace cuwarden::model {

// Numbers of a report stay below 2^53, where every JSON reader is exact. Larger ones can only come
// from a damaged ledger, and are written as null.
inline constexpr std::uint64_t largest_number = std::uint64_t{1} << 53;

// A count, or by the field's name bytes (`_bytes`) or nanoseconds since the process's start
// (`_ns`). Null if it is unknown.
using Figure = std::optional<std::uint64_t>;
// A number that may be negative; null: unknown.
using SignedFigure = std::optional<std::int64_t>;
using Text = std::optional<std::string>;
// The id of a row that other tables refer to, or the ordinal of a device.
using Id = std::uint32_t;
using MaybeId = std::optional<Id>;
// A verdict's figures and texts, in the order of writing; monostate is null.
using ProofValue = std::variant<std::monostate, std::uint64_t, std::string>;
using Proof = std::vector<std::pair<std::string, ProofValue>>;

inline Text text_or_null(std::string_view text) {
  return text.empty() ? Text() : Text(std::in_place, text);
}

}  // namespace cuwarden::model
