// Writes a JSON object piece by piece: named values, and tables, which are arrays of objects, one
// on each line. So writing a report of any size needs only the memory of one row.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "reporters/files/output.hpp"
#include "reporters/json/json_values.hpp"
#include "reporters/model/fields.hpp"
#include "reporters/model/values.hpp"

namespace cuwarden {

// Writes one JSON object to an output, piece by piece, so that its tables (arrays of objects) need
// not be in memory. For each property the caller calls value(), or begin_table(), row() for each
// row, and end_table(). At the end it calls finish(). Numbers above 2^53 or below -2^53 are written
// as null.
class JsonStream {
 public:
  // Begins the object. Keeps a reference to the output. If writing fails, the output notes the
  // failure, and Output::finish() returns it.
  explicit JsonStream(Output& output) : output_(output) { output_.write("{"); }

  // Writes a property of the JSON object. `name` is written as it is, without escapes. `value`: a
  // number, a text, a list, or a struct that lists its fields by CUWARDEN_FIELDS; null values are
  // written as null.
  template <class Value>
  void value(std::string_view name, const Value& value) {
    key(name);
    write(value);
  }
  // Writes a property of the JSON object. A list of structs becomes a table: a JSON array with a
  // struct on each line. All other values are written as value() does.
  template <class Value>
  void part(std::string_view name, const Value& value) {
    if constexpr (requires {
                    requires model::Object<typename Value::value_type>;
                    value.size();
                  }) {
      begin_table(name);
      for (const auto& each : value) row(each);
      end_table();
    } else {
      this->value(name, value);
    }
  }
  // Begins a property of the JSON object whose value is an array, to be filled by row() and ended
  // by end_table(). `name` is written as it is, without escapes.
  void begin_table(std::string_view name) {
    key(name);
    output_.write("[");
    first_row_ = true;
  }
  // Writes a row of the table (array) that was begun last, as a JSON object of the fields that the
  // struct lists by CUWARDEN_FIELDS.
  template <model::Object Row>
  void row(const Row& row) {
    output_.write(first_row_ ? "\n    " : ",\n    ");
    first_row_ = false;
    write(row);
  }
  // Ends the table (array) that begin_table() began last.
  void end_table() { output_.write(first_row_ ? "]" : "\n  ]"); }
  // Ends the JSON object. Its last bytes may still be in the output's buffer: the caller writes
  // them by Output::finish().
  void finish() { output_.write("\n}\n"); }

 private:
  // Writes the name of the next property of the JSON object and a colon, on a new line. Writes a
  // comma before every name but the first one.
  void key(std::string_view name) {
    output_.write(first_key_ ? "\n  \"" : ",\n  \"");
    first_key_ = false;
    output_.write(name);
    output_.write("\": ");
  }

  // Writes true or false.
  void write(bool value) { output_.write(value ? "true" : "false"); }
  // Writes a whole number; null if it is above 2^53 or below -2^53.
  template <std::integral Number>
  void write(Number value) {
    if (std::cmp_greater(value, model::largest_number) ||
        std::cmp_less(value, -static_cast<std::int64_t>(model::largest_number)))
      return output_.write("null");
    write_json_number(output_, value);
  }
  // Writes null, for a value of a Proof that is unknown.
  void write(std::monostate) { output_.write("null"); }
  // Writes a text that ends with a null byte, in quotes.
  void write(const char* text) { write(std::string_view(text)); }
  // Writes a text in quotes, with the escapes that JSON asks for.
  void write(std::string_view text) { write_json_text(output_, text); }
  // Writes the value; null if there is none.
  template <class Value>
  void write(const std::optional<Value>& value) {
    if (value)
      write(*value);
    else
      output_.write("null");
  }
  // Writes the values as a JSON array in one line.
  template <class Value>
  void write(const std::vector<Value>& values) {
    list(values);
  }
  // Writes the values as a JSON array in one line.
  template <class Value, std::size_t size>
  void write(const std::array<Value, size>& values) {
    list(values);
  }
  // Writes the numbers and texts that prove the cause of a refused request, as a JSON object in one
  // line.
  void write(const model::Proof& proof) {
    const char* before = "{";
    for (const auto& [name, value] : proof) {
      name_in(before, name);
      std::visit([this](const auto& known) { write(known); }, value);
    }
    output_.write(proof.empty() ? "{}" : "}");
  }
  // Writes a struct as a JSON object, in one line, of the fields that it lists by CUWARDEN_FIELDS.
  template <model::Object Struct>
  void write(const Struct& object) {
    const char* before = "{";
    model::each_field(object, [&](std::string_view name, const auto& value, auto) {
      name_in(before, name);
      write(value);
    });
    output_.write("}");
  }

  // Writes the elements of a container as a JSON array in one line.
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
  // Writes `before`, the name in quotes and a colon, for a property of an object within one line.
  // Sets `before` to a comma, for the next property.
  void name_in(const char*& before, std::string_view name) {
    output_.write(before);
    before = ",";
    output_.write("\"");
    output_.write(name);
    output_.write("\":");
  }
  Output& output_;         // output that gets the JSON text; not owned
  bool first_key_ = true;  // true if no property of the JSON object was begun yet
  bool first_row_ = true;  // true if the table that was begun last has no row yet
};

}  // namespace cuwarden
