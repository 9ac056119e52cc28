// Writes a JSON object piece by piece: named values, and tables, which are arrays of objects, one
// on each line. So writing a report of any size needs only the memory of one row.
#pragma once

#include <cstdint>
#include <string_view>

#include "reporters/files/output.hpp"
#include "reporters/model/types.hpp"

namespace cuwarden {

// Writes one JSON object to an output, piece by piece, so that its tables (arrays of objects) need
// not be in memory. For each property the caller calls value(), or begin_table(), row() for each
// row, and end_table(). At the end it calls finish(). Numbers above 2^53 or below -2^53 are written
// as null.
class JsonStream {
 public:
  // Begins the JSON object. Keeps a reference to the output. If writing fails, the output notes the
  // failure, and Output::finish() returns it.
  explicit JsonStream(Output& output) : output_(output) { output_.write("{"); }

  // Writes a property of the JSON object. `name` is written as it is, without escapes.
  void value(std::string_view name, model::AnyValue value) {
    key(name);
    write(value);
  }
  // Writes a property of the JSON object. A list of structs becomes a table: a JSON array with a
  // struct on each line. All other values are written as value() does.
  void part(std::string_view name, model::AnyValue value);
  // Begins a property of the JSON object whose value is an array, to be filled by row() and ended
  // by end_table(). `name` is written as it is, without escapes.
  void begin_table(std::string_view name) {
    key(name);
    output_.write("[");
    first_row_ = true;
  }
  // Writes a row of the table (array) that was begun last. `row`: an object.
  void row(model::AnyValue row) {
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

  // Writes the value in one line.
  void write(model::AnyValue value);
  // Writes a text or a number that proves a verdict; null if it is unknown.
  void write(const model::ProofValue& value);
  // Writes a number; null if it is above 2^53 or below -2^53. `is_signed`: `number` is a negative
  // one as two's complement if its highest bit is set.
  void write(std::uint64_t number, bool is_signed);

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
