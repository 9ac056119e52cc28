// Writes the JSON that the page reads. A table is an object with an array for each column, because
// equal kinds of numbers beside each other are compressed best.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>

#include "reporters/json/json_values.hpp"
#include "reporters/model/values.hpp"
#include "reporters/words/printable.hpp"

namespace cuwarden {

// Returns the text as a JSON string. Bytes that could control a terminal, and characters that
// change the direction of reading, are replaced (printable()).
inline std::string page_text(std::string_view text) {
  return quoted_json(printable(std::string(text)));
}
// Returns the JSON of a number.
template <std::integral Number>
std::string page_value(Number number) {
  return std::to_string(number);
}
// Returns the JSON of a truth value as the page reads it: 1 for true, 0 for false.
inline std::string page_value(bool value) { return value ? "1" : "0"; }
// Returns the text as a JSON string; "null" if it is unknown.
inline std::string page_value(const model::Text& text) { return text ? page_text(*text) : "null"; }
// Returns the text as a JSON string.
inline std::string page_value(const std::string& text) { return page_text(text); }
// Returns the JSON of a number; "null" if it is unknown.
template <std::integral Number>
std::string page_value(const std::optional<Number>& number) {
  return number ? std::to_string(*number) : "null";
}

// A list or an object of JSON, to which elements or members are added.
class PageJson {
 public:
  // `brackets`: "[]" for a list, "{}" for an object.
  explicit PageJson(std::string_view brackets) : text_(1, brackets[0]), end_(brackets[1]) {}
  // Adds an element to a list. `json`: the element as JSON.
  PageJson& add(std::string_view json) {
    if (text_.size() > 1) text_ += ',';
    text_ += json;
    return *this;
  }
  // Adds a member to an object. `name`: a word that needs no escapes. `json`: the member's value as
  // JSON.
  PageJson& add(std::string_view name, std::string_view json) {
    if (text_.size() > 1) text_ += ',';
    ((text_ += '"') += name) += "\":";
    text_ += json;
    return *this;
  }
  // Adds a member to an object. `value`: a number or a text, which may be unknown.
  template <class Value>
  PageJson& set(std::string_view name, const Value& value) {
    return add(name, page_value(value));
  }
  // Returns the JSON of the whole list or object.
  std::string text() const { return text_ + end_; }

 private:
  std::string text_;  // JSON of the list or object so far, without its closing bracket
  char end_;          // closing bracket of the list or object
};

// Returns a column of a table: a JSON list with value(row), a number or a text, for each row.
template <class Rows, class Value>
std::string page_column(const Rows& rows, const Value& value) {
  PageJson list("[]");
  for (const auto& row : rows) list.add(page_value(value(row)));
  return list.text();
}

// A table of the page: an object of JSON with a column for each property of its rows.
template <class Rows>
class PageTable {
 public:
  // `rows`: the rows, in the order of the columns' values; not owned.
  explicit PageTable(const Rows& rows) : rows_(rows) {}
  // Adds a column of this name with value(row) for each row.
  template <class Value>
  void add(std::string_view name, const Value& value) {
    json_.add(name, page_column(rows_, value));
  }
  // Returns the JSON of the table.
  std::string text() const { return json_.text(); }

 private:
  const Rows& rows_;
  PageJson json_{"{}"};
};

}  // namespace cuwarden
