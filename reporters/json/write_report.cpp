#include "reporters/json/write_report.hpp"

#include <algorithm>

#include "reporters/json/json_stream.hpp"

namespace cuwarden {
namespace {

// Writes parts of the report by their names in the model, one after the other.
class ReportWriter {
 public:
  ReportWriter(Output& output, std::size_t all,
               FunctionRef<void(std::size_t rows, std::size_t all)> told)
      : json_(output), all_(all), told_(told) {}

  template <model::FieldName name>
  void part(const model::FieldType<model::Report, name>& value) {
    json_.value(name, model::AnyValue(type_of_part<name>(), &value));
  }
  template <model::FieldName name, class PutRows>
  void table(const PutRows& put_rows) {
    using Row = typename model::FieldType<model::Report, name>::value_type;
    json_.begin_table(name);
    const auto write = [this](const Row& row) {
      constexpr std::size_t pause = 1024;
      if (++rows_ % pause == 0) told_(std::min(rows_, all_), all_);
      json_.row(model::AnyValue(*type_of_part<name>().element, &row));
    };
    put_rows(Put<Row>(write));
    json_.end_table();
  }
  void finish() { json_.finish(); }

 private:
  // Returns the description of the report's field of this name.
  template <model::FieldName name>
  static const model::Type& type_of_part() {
    constexpr std::size_t position = model::field_position<model::Report>(name);
    return *model::type_of<model::Report>().fields[position].type;
  }

  JsonStream json_;
  std::size_t rows_ = 0;   // rows that were written
  const std::size_t all_;  // about the number of all rows
  FunctionRef<void(std::size_t rows, std::size_t all)> told_;
};

}  // namespace

void write_report_json(LedgerReport& report, Output& output,
                       FunctionRef<void(std::size_t rows, std::size_t all)> told) {
  ReportWriter writer(output, report.expected_rows(), told);
  report.give(writer);
  writer.finish();
}

}  // namespace cuwarden
