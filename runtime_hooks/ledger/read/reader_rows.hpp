// Functions for the sources of class Reader: access to a ledger's rows and texts.
#pragma once

#include <cstring>
#include <string_view>

#include "runtime_hooks/ledger/format/geometry.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden::ledger {

// Most attempts to read a row of a ledger while the recorded process changes the row. If all fail,
// the reader skips a record, leaves out a device's last reading, or takes a timeline as it is.
inline constexpr int attempts = 64;
// Length of the longest path that Linux accepts, in bytes. A longer path in a ledger is damaged,
// and is read as an empty text.
inline constexpr std::uint64_t longest_path = 4096;

// Returns the text in the array `text` of `capacity` bytes, up to the first zero byte or the
// array's end.
inline std::string_view fixed_text(const char* text, std::size_t capacity) noexcept {
  return {text, strnlen(text, capacity)};
}

// Loads an atomic field of a row with acquire order, and returns its value.
template <class T>
T get(const std::atomic<T>& value) noexcept {
  return value.load(std::memory_order_acquire);
}

template <class Row>
const Row* Reader::row(RegionId id, std::uint64_t index) const noexcept {
  if (index < first_row(id) || index >= rows(id)) return nullptr;
  return reinterpret_cast<const Row*>(bytes_.data() + tables_[index_of(id)].offset) + index;
}

template <class Row>
const Row* Reader::published(RegionId id, std::uint64_t index) const noexcept {
  const Row* const found = row<Row>(id, index);
  return found != nullptr && get(found->state) == 1 ? found : nullptr;
}

}  // namespace cuwarden::ledger
