// Text of the JSON that the page reads. Tables are objects with an array for each column, because
// numbers of one kind beside each other are compressed best.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>

#include "reporters/json/json_values.hpp"
#include "reporters/model/values.hpp"
#include "reporters/words/printable.hpp"

namespace cuwarden {

// Returns the JSON of a text, without characters that could change the order of reading.
inline std::string page_text(std::string_view text) {
  return quoted_json(printable(std::string(text)));
}
// Returns the JSON of a number.
template <std::integral Number>
std::string page_value(Number number) {
  return std::to_string(number);
}
inline std::string page_value(bool value) { return value ? "1" : "0"; }
// Returns the JSON of a text; null if it is unknown.
inline std::string page_value(const model::Text& text) { return text ? page_text(*text) : "null"; }
inline std::string page_value(const std::string& text) { return page_text(text); }
// Returns the JSON of a number; null if it is unknown.
template <std::integral Number>
std::string page_value(const std::optional<Number>& number) {
  return number ? std::to_string(*number) : "null";
}

// A list or an object of JSON that is put together of its parts.
class PageJson {
 public:
  // `brackets`: the characters that begin and end the value, "[]" or "{}".
  explicit PageJson(std::string_view brackets) : text_(1, brackets[0]), end_(brackets[1]) {}
  // Adds an element to a list. `json`: its JSON.
  PageJson& add(std::string_view json) {
    if (text_.size() > 1) text_ += ',';
    text_ += json;
    return *this;
  }
  // Adds a member to an object. `name`: a word. `json`: the JSON of its value.
  PageJson& add(std::string_view name, std::string_view json) {
    if (text_.size() > 1) text_ += ',';
    ((text_ += '"') += name) += "\":";
    text_ += json;
    return *this;
  }
  // Adds a member with a number or text to an object.
  template <class Value>
  PageJson& set(std::string_view name, const Value& value) {
    return add(name, page_value(value));
  }
  // Returns the JSON of all parts.
  std::string text() const { return text_ + end_; }

 private:
  std::string text_;  // JSON of the parts so far, without the bracket at the end
  char end_;          // bracket at the end
};

// Returns a column: the JSON of a list with value(row) for each row.
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
