#include "tools/cuwarden/reports/given_baseline.hpp"

#include "reporters/comparison/baseline.hpp"
#include "reporters/files/plain_file.hpp"
#include "tools/cuwarden/output/command_output.hpp"

namespace cuwarden {
namespace {

constexpr std::size_t largest_baseline = std::size_t{64} << 20;

}  // namespace

std::optional<LeaksByFingerprint> read_baseline(const std::string& path) {
  std::string content, error = read_plain_file(path, largest_baseline, content);
  std::optional<LeaksByFingerprint> known;
  if (error.empty())
    known = parse_baseline(content, path, error);
  else
    error = path + ": " + error + " (--baseline)";
  if (!known) print_error(error);
  return known;
}

}  // namespace cuwarden
