#include "tools/cuwarden/reports/binary_output.hpp"

#include <unistd.h>

#include <string>

#include "tools/cuwarden/output/command_output.hpp"

namespace cuwarden {

bool may_be_printed(const CommonFile& file, const ExportFormat& format) {
  if (!file.is_binary() || isatty(STDOUT_FILENO) != 1) return true;
  print_error("--format " + std::string(format.name) +
              " is binary, and standard output is a terminal; name a file with -o FILE");
  return false;
}

}  // namespace cuwarden
