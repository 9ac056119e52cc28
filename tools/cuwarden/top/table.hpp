// A table of text that leaves out columns where the terminal is narrow.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace cuwarden {

// A column of a Table.
struct TableColumn {
  std::string title;  // heading of the column
  // Least width of the column in letters, so that later columns do not move each time that a figure
  // changes.
  std::size_t least = 0;
  bool right = false;  // true: texts stand at the right side of the column
  // Order in which columns are left out of a table that is too wide: larger numbers first. A column
  // with 0 is always shown.
  unsigned dispensable = 0;
};

// A table of text. Each column is as wide as its widest text, so that no two columns touch. A last
// column takes the rest of each line.
class Table {
 public:
  // Makes a table with headings and no rows. `rest`: heading of the last column. `gap`: number of
  // spaces between columns.
  Table(std::vector<TableColumn> columns, std::string rest, std::size_t gap = 2);
  // Adds a row. `texts`: a text for each column but the last. `rest`: text of the last column.
  void add(std::vector<std::string> texts, std::string rest);
  // Returns the lines of the table without line feeds, the headings first. `columns`: most letters
  // of a line; 0: any number. Columns are left out until the others leave `least_rest` letters for
  // the last one. Lines that are too long nevertheless are not cut.
  std::vector<std::string> lines(std::size_t columns = 0, std::size_t least_rest = 0) const;

 private:
  // Returns the indexes in columns_ of the columns that are shown. The parameters are those of
  // lines().
  std::vector<std::size_t> shown(std::size_t columns, std::size_t least_rest) const;

  // A row of the table, or its headings.
  struct Row {
    std::vector<std::string> texts;  // a text for each column but the last
    std::string rest;                // text of the last column
  };
  // All columns but the last. TableColumn::least is raised to the widest text of the column.
  std::vector<TableColumn> columns_;
  std::vector<Row> rows_;  // the headings as the first row, then the rows that were added
  std::size_t gap_;        // number of spaces between columns
};

}  // namespace cuwarden
