#include "reporters/model/indexed_report.hpp"

#include "reporters/words/paths.hpp"

namespace cuwarden {
namespace {

template <class Row>
auto positions_of(const std::vector<Row>& rows) {
  std::unordered_map<model::Id, std::size_t> positions;
  positions.reserve(rows.size());
  for (std::size_t row = 0; row < rows.size(); ++row) positions[rows[row].id] = row;
  return positions;
}

template <class Row, class Positions>
const Row* row_of(const std::vector<Row>& rows, const Positions& positions, model::MaybeId id) {
  const auto found = id ? positions.find(*id) : positions.end();
  return found == positions.end() ? nullptr : &rows[found->second];
}

}  // namespace

IndexedReport::IndexedReport(model::Report report)
    : report_(std::move(report)),
      stacks_(positions_of(report_.stacks)),
      frames_(positions_of(report_.frames)),
      modules_(positions_of(report_.modules)) {}

const model::Stack* IndexedReport::stack(model::MaybeId id) const {
  return row_of(report_.stacks, stacks_, id);
}
const model::Frame* IndexedReport::frame(model::MaybeId id) const {
  return row_of(report_.frames, frames_, id);
}
const model::Module* IndexedReport::module(model::MaybeId id) const {
  return row_of(report_.modules, modules_, id);
}

std::string IndexedReport::module_name(model::MaybeId id) const {
  const model::Module* row = module(id);
  return row == nullptr ? std::string() : std::string(file_name(row->path));
}

}  // namespace cuwarden
