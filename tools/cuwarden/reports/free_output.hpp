// Keeps the output of a command from overwriting a file that the command reads.
#pragma once

#include <string>
#include <vector>

namespace cuwarden {

// Returns false after an error line if writing to the path `output` would replace one of the
// inputs. An input is a file, or a folder, which stands for the reports and ledgers in it and in
// the folders below it. `output` and each input: empty or "-" is no file.
bool is_output_free(const std::string& output, const std::vector<std::string>& inputs);

}  // namespace cuwarden
