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
  void* rows = nullptr;                                       // the std::vector of its rows
  void (*begin)(void* rows, std::size_t expected) = nullptr;  // empties it, and makes room
  Complaint (*add)(void* rows, const Json& row) = nullptr;    // adds a row
  std::size_t count = 0;                                      // number of rows that were met
};

template <class Row>
Table table_of(std::vector<Row>& rows) {
  const auto begin = [](void* table, std::size_t expected) {
    auto& known = *static_cast<std::vector<Row>*>(table);
    known.clear();
    known.reserve(expected);
  };
  const auto add = [](void* table, const Json& row) {
    return parse(row, static_cast<std::vector<Row>*>(table)->emplace_back());
  };
  return {&rows, begin, add};
}

// Takes the rows of tables out of the JSON while it is parsed.
class RowTaker {
 public:
  RowTaker(model::Report& report, const RowsOfTables& expected) : expected_(expected) {
    model::each_field(report, [this](std::string_view name, auto& field, auto) {
      properties_.insert(name);
      if constexpr (requires {
                      requires model::Object<typename std::decay_t<decltype(field)>::value_type>;
                      field.reserve(0);
                    })
        tables_.emplace(name, table_of(field));
    });
  }

  // Returns false if the value is to be left out of the JSON.
  bool take(int depth, nlohmann::detail::parse_event_t event, const Json& value) {
    using Event = nlohmann::detail::parse_event_t;
    if (depth == 1 && event == Event::key) {
      key_ = value.get_ref<const std::string&>();
      // Properties of later versions of cuwarden are left out, since this one does not read them.
      // After each object, the library looks at all rows of its table that were kept: in a long
      // table that would take long.
      return properties_.contains(key_);
    }
    if (depth == 1 && event == Event::array_start) begin_table();
    if (depth == 1 && event == Event::array_end) table_ = nullptr;
    const bool is_whole =
        event == Event::value || event == Event::object_end || event == Event::array_end;
    if (table_ == nullptr || depth != 2 || !is_whole) return true;
    if (!wrong_) add_row(value);
    ++table_->count;
    return false;
  }

  Complaint take_complaint() { return std::move(wrong_); }

 private:
  void begin_table() {
    // Room for more rows is made as they come, since a damaged report may claim any number.
    constexpr std::size_t most_expected = std::size_t{1} << 20;
    const auto known = tables_.find(key_);
    table_ = known == tables_.end() ? nullptr : &known->second;
    if (table_ == nullptr) return;
    const auto expected = expected_.find(key_);
    table_->count = 0;
    table_->begin(table_->rows,
                  expected == expected_.end() ? 0 : std::min(expected->second, most_expected));
  }
  void add_row(const Json& row) {
    if (const auto wrong = table_->add(table_->rows, row))
      wrong_ = key_ + "[" + std::to_string(table_->count) + "]" + *wrong;
  }

  const RowsOfTables& expected_;
  std::unordered_set<std::string_view> properties_;     // names of the report's properties
  std::unordered_map<std::string_view, Table> tables_;  // by name
  std::string key_;                                     // the report's property that is parsed
  Table* table_ = nullptr;  // the table whose rows are parsed; null: none
  Complaint wrong_;
};

}  // namespace

ParsedRows parse_rows(std::string_view text, const RowsOfTables& rows,
                      FunctionRef<void(std::size_t bytes)> read) {
  ParsedRows parsed;
  RowTaker taker(parsed.tables, rows);
  const ToldText told(text, read);
  parsed.rest = Json::parse(
      told.begin(), told.end(),
      [&](int depth, nlohmann::detail::parse_event_t event, Json& value) {
        return taker.take(depth, event, value);
      },
      false);
  parsed.wrong = taker.take_complaint();
  return parsed;
}

}  // namespace cuwarden
