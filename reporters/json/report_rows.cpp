#include "reporters/json/report_rows.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "reporters/json/told_text.hpp"

namespace cuwarden {
namespace {

// A table of the report that is being filled.
struct Table {
  const model::Type* type = nullptr;  // description of the list of its rows
  void* rows = nullptr;               // the list of its rows
  std::size_t count = 0;              // number of rows that were met
};

// Makes JSON of the parser's events. Adds the rows of tables to the report instead, and leaves out
// properties of later versions of cuwarden, which this one does not read. The library's own parser
// can leave out values, too, but looks at all of an array's values after each object in it.
class RowTaker {
 public:
  RowTaker(model::Report& report, const RowsOfTables& expected) : expected_(expected) {
    const model::Type& type = model::type_of<model::Report>();
    std::array<void*, model::most_fields> parts;
    type.find_fields(&report, parts.data());
    for (std::size_t i = 0; i < type.fields.size(); ++i) {
      const auto& [name, part, may_lack] = type.fields[i];
      properties_.insert(name);
      if (part->add != nullptr && part->element->kind == model::TypeKind::object)
        tables_.emplace(name, Table{part, parts[i]});
    }
  }

  // Returns the JSON without the rows.
  Json take_rest() { return std::move(rest_); }
  Complaint take_complaint() { return std::move(wrong_); }

  // The parser's events. Each returns true if the parser is to go on.
  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(Json::number_integer_t value) { return add(value); }
  bool number_unsigned(Json::number_unsigned_t value) { return add(value); }
  bool number_float(Json::number_float_t value, const std::string&) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(Json::binary_t& value) { return add(std::move(value)); }
  bool start_object(std::size_t) { return begin(Json::object()); }
  bool end_object() { return end(); }
  bool start_array(std::size_t) {
    if (open_.size() == 1 && !is_left_out_) begin_table();
    return begin(Json::array());
  }
  bool end_array() { return end(); }
  bool key(std::string& key) {
    if (open_left_out_ != 0) return true;
    is_left_out_ = open_.size() == 1 && !properties_.contains(key);
    key_ = std::move(key);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) {
    return false;
  }

 private:
  // Puts the value into the object or array that is open, and returns its position there.
  Json& put(Json value) {
    if (open_.empty()) return rest_ = std::move(value);
    Json& into = *open_.back();
    if (into.is_object()) return into[key_] = std::move(value);
    into.push_back(std::move(value));
    return into.back();
  }
  // Puts a value that is whole.
  bool add(Json value) {
    if (open_left_out_ == 0 && !is_left_out_) {
      put(std::move(value));
      take_row();
    }
    is_left_out_ = is_left_out_ && open_left_out_ != 0;
    return true;
  }
  // Puts an object or array, and opens it.
  bool begin(Json empty) {
    if (is_left_out_)
      ++open_left_out_;
    else
      open_.push_back(&put(std::move(empty)));
    return true;
  }
  // Closes the object or array that was opened last.
  bool end() {
    if (is_left_out_) {
      is_left_out_ = --open_left_out_ != 0;
      return true;
    }
    open_.pop_back();
    if (open_.size() == 1) table_ = nullptr;
    take_row();
    return true;
  }
  // Moves the value that was put last from the JSON into the table, if it is a row of one.
  void take_row() {
    if (table_ == nullptr || open_.size() != 2) return;
    Json& rows = *open_.back();
    if (!wrong_) add_row(rows.back());
    ++table_->count;
    rows.erase(rows.size() - 1);
  }
  void begin_table() {
    // Room for more rows is made as they come, since a damaged report may claim any number.
    constexpr std::size_t most_expected = std::size_t{1} << 20;
    table_name_ = key_;
    const auto known = tables_.find(table_name_);
    table_ = known == tables_.end() ? nullptr : &known->second;
    if (table_ == nullptr) return;
    const auto expected = expected_.find(table_name_);
    table_->count = 0;
    table_->type->renew(table_->rows, 0);
    if (expected != expected_.end())
      table_->type->reserve(table_->rows, std::min(expected->second, most_expected));
  }
  void add_row(const Json& row) {
    const model::Type& type = *table_->type;
    if (const auto wrong = parse(row, *type.element, type.add(table_->rows)))
      wrong_ = table_name_ + "[" + std::to_string(table_->count) + "]" + *wrong;
  }

  const RowsOfTables& expected_;
  std::unordered_set<std::string_view> properties_;     // names of the report's properties
  std::unordered_map<std::string_view, Table> tables_;  // by name
  Json rest_ = Json(Json::value_t::discarded);          // the JSON without the rows
  std::vector<Json*> open_;                             // objects and arrays that are open
  std::string key_;                                     // key of the next value of an object
  // True if the next value, or the one that is read, is left out; number of objects and arrays in
  // it that are open, itself among them.
  bool is_left_out_ = false;
  std::size_t open_left_out_ = 0;
  Table* table_ = nullptr;  // the table whose rows are parsed; null: none
  std::string table_name_;  // name of the table whose rows were parsed last
  Complaint wrong_;
};

}  // namespace

ParsedRows parse_rows(std::string_view text, const RowsOfTables& rows,
                      FunctionRef<void(std::size_t bytes)> read) {
  ParsedRows parsed;
  RowTaker taker(parsed.tables, rows);
  const ToldText told(text, read);
  if (Json::sax_parse(told.begin(), told.end(), &taker))
    parsed.rest = taker.take_rest();
  else
    parsed.rest = Json(Json::value_t::discarded);
  parsed.wrong = taker.take_complaint();
  return parsed;
}

}  // namespace cuwarden
