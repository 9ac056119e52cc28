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

// Largest number in a report, 2^53: every JSON reader is exact up to it. A larger number is written
// as null: it comes from a damaged ledger, or is the size of a request after an overflow.
inline constexpr std::uint64_t largest_number = std::uint64_t{1} << 53;

// A number of the report that is not negative; null: unknown, unless the field says otherwise. A
// field whose name ends in `bytes` is in bytes. One that ends in `_ns` is in nanoseconds: a length,
// or a time since the process's start. Others are counts, unless the field says otherwise.
using Figure = std::optional<std::uint64_t>;
// A number of the report that may be negative; null: unknown, unless the field says otherwise.
using SignedFigure = std::optional<std::int64_t>;
// A text of the report; null: unknown, or there is none.
using Text = std::optional<std::string>;
// The number of a row of a table, from 1, by which other tables of the report refer to the row; or
// the CUDA ordinal of a device, from 0.
using Id = std::uint32_t;
// The number of a row of another table, or the CUDA ordinal of a device; null: none, or unknown.
using MaybeId = std::optional<Id>;
// A number or text that proves the cause of a refused request; monostate: unknown, null in JSON.
using ProofValue = std::variant<std::monostate, std::uint64_t, std::string>;
// The numbers and texts that prove the cause of a refused request: pairs of name and value, in the
// order in which they are written.
using Proof = std::vector<std::pair<std::string, ProofValue>>;

// Returns the text; null if it is empty.
inline Text text_or_null(std::string_view text) {
  return text.empty() ? Text() : Text(std::in_place, text);
}

}  // namespace cuwarden::model
