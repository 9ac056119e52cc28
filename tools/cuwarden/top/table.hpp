// A table of text that leaves out columns where the terminal is narrow.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace cuwarden {

// A column of a Table.
struct TableColumn {
  std::string title;  // text of the table's first line
  // Least width in letters. With it, the table does not move each time that a figure changes.
  std::size_t least = 0;
  bool right = false;  // true: texts stand at the column's right side
  // 0: the column is always shown. Of the others, those with larger numbers are left out first.
  unsigned dispensable = 0;
};

// A table of text. Each column is as wide as its widest text, so that no two columns touch. A last
// column takes the rest of each line.
class Table {
 public:
  // `rest`: title of the last column. `gap`: spaces between columns.
  Table(std::vector<TableColumn> columns, std::string rest, std::size_t gap = 2);
  // Adds a row: a text for each column, and one for the last column.
  void add(std::vector<std::string> texts, std::string rest);
  // Returns the lines of the table, that of the titles first. `columns`: letters for which the
  // lines have room; 0: any number. Columns are left out until `least_rest` letters are left for
  // the last one; the caller cuts lines that are too long nevertheless.
  std::vector<std::string> lines(std::size_t columns = 0, std::size_t least_rest = 0) const;

 private:
  // Returns the numbers of the columns that are shown; parameters as for lines().
  std::vector<std::size_t> shown(std::size_t columns, std::size_t least_rest) const;

  struct Row {
    std::vector<std::string> texts;
    std::string rest;
  };
  std::vector<TableColumn> columns_;  // `least` grows with the texts that are added
  std::vector<Row> rows_;             // the first row has the titles
  std::size_t gap_;                   // spaces between columns
};

}  // namespace cuwarden
