// The frame of a report: one object of named values and tables, written as it goes. A table is an
// array of flat objects, one a line, so that a report of any size needs the memory of one row.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "reporters/output.hpp"

namespace cuwarden {

using Row = nlohmann::ordered_json;

// Numbers in a report stay below 2^53, where every JSON reader is exact. What is above can only
// come from a damaged ledger, and unknown is null.
inline Row number(std::uint64_t value) {
  if (value > (std::uint64_t{1} << 53)) return nullptr;
  return value;
}
inline Row text_or_null(std::string_view text) {
  if (text.empty()) return nullptr;
  return std::string(text);
}

class JsonStream {
 public:
  explicit JsonStream(Output& output) : output_(output) { output_.write("{"); }

  void value(std::string_view name, const Row& row) {
    key(name);
    dump(row);
  }
  void begin_table(std::string_view name) {
    key(name);
    output_.write("[");
    first_row_ = true;
  }
  void row(const Row& row) {
    output_.write(first_row_ ? "\n    " : ",\n    ");
    first_row_ = false;
    dump(row);
  }
  void end_table() { output_.write(first_row_ ? "]" : "\n  ]"); }
  void empty_table(std::string_view name) {
    begin_table(name);
    end_table();
  }
  void finish() { output_.write("\n}\n"); }

 private:
  void key(std::string_view name) {
    output_.write(first_key_ ? "\n  \"" : ",\n  \"");
    first_key_ = false;
    output_.write(name);
    output_.write("\": ");
  }
  void dump(const Row& row) {
    // Paths and names are bytes, not always UTF-8: a bad byte becomes U+FFFD.
    output_.write(row.dump(-1, ' ', false, Row::error_handler_t::replace));
  }

  Output& output_;
  bool first_key_ = true;
  bool first_row_ = true;
};

}  // namespace cuwarden
