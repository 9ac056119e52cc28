// Writes a JSON object piece by piece: named values, and tables, which are arrays of objects, one
// on each line. So writing a report of any size needs only the memory of one row.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "reporters/files/output.hpp"
#include "reporters/json/json_text.hpp"
#include "reporters/model/fields.hpp"
#include "reporters/model/values.hpp"

namespace cuwarden {

// Writes one JSON object to an output, piece by piece, so that its tables need not be in memory.
// The caller calls value(), or begin_table(), row() and end_table(), for each property, and
// finish() at the end. Numbers above 2^53 or below -2^53 are written as null.
class JsonStream {
 public:
  // Begins the object. Keeps a reference to the output. If writing fails, the output notes the
  // failure, and Output::finish() returns it.
  explicit JsonStream(Output& output) : output_(output) { output_.write("{"); }

  // Writes a property of the object. `name` is written as it is, without escapes.
  template <class Value>
  void value(std::string_view name, const Value& value) {
    key(name);
    write(value);
  }
  // Begins a property whose value is an array, to be filled by row() and ended by end_table().
  // `name` is written as it is, without escapes.
  void begin_table(std::string_view name) {
    key(name);
    output_.write("[");
    first_row_ = true;
  }
  // Writes a row of the table that was begun last, as an object of the fields that the struct lists
  // by CUWARDEN_FIELDS.
  template <model::Object Row>
  void row(const Row& row) {
    output_.write(first_row_ ? "\n    " : ",\n    ");
    first_row_ = false;
    write(row);
  }
  // Ends the table that was begun last.
  void end_table() { output_.write(first_row_ ? "]" : "\n  ]"); }
  // Ends the object. Its last bytes may still be in the output's buffer: the caller writes them by
  // Output::finish().
  void finish() { output_.write("\n}\n"); }

 private:
  void key(std::string_view name) {
    output_.write(first_key_ ? "\n  \"" : ",\n  \"");
    first_key_ = false;
    output_.write(name);
    output_.write("\": ");
  }

  void write(bool value) { output_.write(value ? "true" : "false"); }
  template <std::integral Number>
  void write(Number value) {
    if (std::cmp_greater(value, model::largest_number) ||
        std::cmp_less(value, -static_cast<std::int64_t>(model::largest_number)))
      return output_.write("null");
    char text[24];
    const auto end = std::to_chars(text, text + sizeof text, value).ptr;
    output_.write({text, static_cast<std::size_t>(end - text)});
  }
  void write(std::monostate) { output_.write("null"); }
  void write(const char* text) { write(std::string_view(text)); }
  void write(std::string_view text) {
    const auto plain = [](char letter) {
      return letter >= ' ' && letter <= '~' && letter != '"' && letter != '\\';
    };
    if (!std::ranges::all_of(text, plain)) return output_.write(json_text(nlohmann::json(text)));
    output_.write("\"");
    output_.write(text);
    output_.write("\"");
  }
  template <class Value>
  void write(const std::optional<Value>& value) {
    if (value)
      write(*value);
    else
      output_.write("null");
  }
  template <class Value>
  void write(const std::vector<Value>& values) {
    list(values);
  }
  template <class Value, std::size_t size>
  void write(const std::array<Value, size>& values) {
    list(values);
  }
  void write(const model::Proof& proof) {
    const char* before = "{";
    for (const auto& [name, value] : proof) {
      name_in(before, name);
      std::visit([this](const auto& known) { write(known); }, value);
    }
    output_.write(proof.empty() ? "{}" : "}");
  }
  template <model::Object Struct>
  void write(const Struct& object) {
    const char* before = "{";
    model::each_field(object, [&](std::string_view name, const auto& value, auto) {
      name_in(before, name);
      write(value);
    });
    output_.write("}");
  }

  template <class Values>
  void list(const Values& values) {
    const char* before = "[";
    for (const auto& value : values) {
      output_.write(before);
      before = ",";
      write(value);
    }
    output_.write(values.empty() ? "[]" : "]");
  }
  void name_in(const char*& before, std::string_view name) {
    output_.write(before);
    before = ",";
    output_.write("\"");
    output_.write(name);
    output_.write("\":");
  }
  Output& output_;
  bool first_key_ = true;
  bool first_row_ = true;
};

}  // namespace cuwarden
