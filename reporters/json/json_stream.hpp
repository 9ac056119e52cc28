// Writes an object of named values and tables as it goes: a table is an array of objects, one a
// line, so that a report of any size needs the memory of one row.
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
#include "reporters/model/fields.hpp"
#include "reporters/model/values.hpp"
#include "reporters/words/printable.hpp"

namespace cuwarden {

// Writes a JSON object part by part, so that tables need not be in memory.
class JsonStream {
 public:
  explicit JsonStream(Output& output) : output_(output) { output_.write("{"); }

  template <class Value>
  void value(std::string_view name, const Value& value) {
    key(name);
    write(value);
  }
  void begin_table(std::string_view name) {
    key(name);
    output_.write("[");
    first_row_ = true;
  }
  template <model::Object Row>
  void row(const Row& row) {
    output_.write(first_row_ ? "\n    " : ",\n    ");
    first_row_ = false;
    write(row);
  }
  void end_table() { output_.write(first_row_ ? "]" : "\n  ]"); }
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
    if (std::cmp_greater(value, model::largest_number)) return output_.write("null");
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
    if (!std::ranges::all_of(text, plain)) return escape(std::string(text));
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
  void escape(const nlohmann::json& text) {
    // Paths and names are bytes, not always UTF-8: a bad byte becomes U+FFFD.
    constexpr auto replace = nlohmann::json::error_handler_t::replace;
    const std::string usual = text.dump(-1, ' ', false, replace);
    if (!acts_on_a_terminal(usual)) return output_.write(usual);
    // JSON asks for escapes of the controls of ASCII only.
    std::string escaped = text.dump(-1, ' ', true, replace);
    for (std::size_t at = 0; (at = escaped.find('\x7f', at)) != escaped.npos;)
      escaped.replace(at, 1, "\\u007f");
    output_.write(escaped);
  }

  Output& output_;
  bool first_key_ = true;
  bool first_row_ = true;
};

}  // namespace cuwarden
