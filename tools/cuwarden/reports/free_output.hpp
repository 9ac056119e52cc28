// Keeps the output of a command from overwriting a file that the command reads.
#pragma once

#include <string>
#include <vector>

namespace cuwarden {

// True if writing to the path `output` replaces no file that the command reads; otherwise prints an
// error line and returns false. `inputs`: paths of files that are read, or of folders. In folders,
// and in the folders below them, reports and ledgers are read. A path that is empty or "-" is no
// file.
bool is_output_free(const std::string& output, const std::vector<std::string>& inputs);

}  // namespace cuwarden
