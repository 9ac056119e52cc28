#include "tools/cuwarden/top/table.hpp"

#include <algorithm>
#include <utility>

#include "reporters/words/printable.hpp"

namespace cuwarden {
namespace {

std::size_t columns_of(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, starts_letter));
}

}  // namespace

Table::Table(std::vector<TableColumn> columns, std::string rest, std::size_t gap)
    : columns_(std::move(columns)), gap_(gap) {
  std::vector<std::string> titles;
  for (const TableColumn& column : columns_) titles.push_back(column.title);
  add(std::move(titles), std::move(rest));
}

void Table::add(std::vector<std::string> texts, std::string rest) {
  for (std::size_t i = 0; i < columns_.size(); ++i)
    columns_[i].least = std::max(columns_[i].least, columns_of(texts[i]));
  rows_.push_back({std::move(texts), std::move(rest)});
}

std::vector<std::size_t> Table::shown(std::size_t columns, std::size_t least_rest) const {
  std::vector<std::size_t> numbers;
  std::size_t width = least_rest;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    numbers.push_back(i);
    width += columns_[i].least + gap_;
  }
  while (columns != 0 && width > columns && !numbers.empty()) {
    const auto least_needed = std::ranges::max_element(
        numbers, {}, [&](std::size_t number) { return columns_[number].dispensable; });
    if (columns_[*least_needed].dispensable == 0) break;
    width -= columns_[*least_needed].least + gap_;
    numbers.erase(least_needed);
  }
  return numbers;
}

std::vector<std::string> Table::lines(std::size_t columns, std::size_t least_rest) const {
  const std::vector<std::size_t> numbers = shown(columns, least_rest);
  std::vector<std::string> lines;
  for (const Row& row : rows_) {
    std::string line;
    for (const std::size_t number : numbers) {
      line += padded(row.texts[number], columns_[number].least, columns_[number].right);
      line.append(gap_, ' ');
    }
    lines.push_back(line + row.rest);
  }
  return lines;
}

}  // namespace cuwarden
