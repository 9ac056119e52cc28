// The frame of a report: one object of named values and tables, written as it goes. A table is an
// array of flat objects, one a line, so that a report of any size needs the memory of one row.
#pragma once

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>

#include "reporters/output.hpp"
#include "reporters/printable.hpp"

namespace cuwarden {

using Row = nlohmann::ordered_json;

// Numbers in a report stay below 2^53, where every JSON reader is exact. What is above can only
// come from a damaged ledger, and unknown is null.
inline constexpr std::uint64_t largest_number = std::uint64_t{1} << 53;
inline Row number(std::uint64_t value) {
  if (value > largest_number) return nullptr;
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
  // The same row, field by field and without a Row in between, for tables that may have a row for
  // each of 100,000 stacks: building and destroying their trees took most of a large report's time.
  void begin_row() {
    output_.write(first_row_ ? "\n    {" : ",\n    {");
    first_row_ = false;
    first_field_ = true;
  }
  void field(std::string_view name, std::nullptr_t) {
    field_name(name);
    output_.write("null");
  }
  void field(std::string_view name, std::same_as<bool> auto value) {
    field_name(name);
    output_.write(value ? "true" : "false");
  }
  void field(std::string_view name,
             std::unsigned_integral auto value) requires(!std::same_as<decltype(value), bool>) {
    field_name(name);
    digits(value);
  }
  template <class Value>
  void field(std::string_view name, const std::optional<Value>& value) {
    if (value)
      field(name, *value);
    else
      field(name, nullptr);
  }
  void field(std::string_view name, std::string_view text) {
    field_name(name);
    const auto plain = [](char letter) {
      return letter >= ' ' && letter <= '~' && letter != '"' && letter != '\\';
    };
    if (!std::ranges::all_of(text, plain)) return dump(Row(std::string(text)));
    output_.write("\"");
    output_.write(text);
    output_.write("\"");
  }
  template <std::unsigned_integral Value>
  void field(std::string_view name, std::span<const Value> values) {
    field_name(name);
    output_.write("[");
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0) output_.write(",");
      digits(values[i]);
    }
    output_.write("]");
  }
  void end_row() { output_.write("}"); }
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
  void field_name(std::string_view name) {
    output_.write(first_field_ ? "\"" : ",\"");
    first_field_ = false;
    output_.write(name);
    output_.write("\":");
  }
  void digits(std::uint64_t value) {
    if (value > largest_number) return output_.write("null");
    char text[20];
    const auto end = std::to_chars(text, text + sizeof text, value).ptr;
    output_.write({text, static_cast<std::size_t>(end - text)});
  }
  void dump(const Row& row) {
    // Paths and names are bytes, not always UTF-8: a bad byte becomes U+FFFD.
    const std::string text = row.dump(-1, ' ', false, Row::error_handler_t::replace);
    if (!acts_on_a_terminal(text)) return output_.write(text);
    // JSON asks for escapes of the controls of ASCII only.
    std::string escaped = row.dump(-1, ' ', true, Row::error_handler_t::replace);
    for (std::size_t at = 0; (at = escaped.find('\x7f', at)) != escaped.npos;)
      escaped.replace(at, 1, "\\u007f");
    output_.write(escaped);
  }

  Output& output_;
  bool first_key_ = true;
  bool first_row_ = true;
  bool first_field_ = true;
};

}  // namespace cuwarden
