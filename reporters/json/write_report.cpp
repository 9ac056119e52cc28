#include "reporters/json/write_report.hpp"

#include "reporters/json/json_stream.hpp"

namespace cuwarden {
namespace {

// Writes parts of the report by their names in the model, one after the other.
class ReportWriter {
 public:
  explicit ReportWriter(Output& output) : json_(output) {}

  template <model::FieldName name>
  void part(const model::FieldType<model::Report, name>& value) {
    json_.value(name, value);
  }
  template <model::FieldName name, class PutRows>
  void table(const PutRows& put_rows) {
    using Row = typename model::FieldType<model::Report, name>::value_type;
    json_.begin_table(name);
    const auto write = [this](const Row& row) { json_.row(row); };
    put_rows(Put<Row>(write));
    json_.end_table();
  }
  void finish() { json_.finish(); }

 private:
  JsonStream json_;
};

}  // namespace

void write_report_json(LedgerReport& report, Output& output) {
  ReportWriter writer(output);
  report.give(writer);
  writer.finish();
}

}  // namespace cuwarden
