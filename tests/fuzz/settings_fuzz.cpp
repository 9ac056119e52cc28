// Fuzzes the settings. The environment is the user's: any text in it must give a value for each
// setting, and at most one line of warning for each. The input is the environment, in which a zero
// byte ends each variable.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "shim/files/report_pattern.hpp"
#include "shim/support/settings.hpp"

namespace {

std::size_t lines = 0;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(input), size);
  std::vector<std::string> names;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\0', at), text.size());
    names.push_back("CUWARDEN_" + text.substr(at, end - at));
    at = end + 1;
  }
  std::vector<char*> entries;
  for (std::string& name : names) entries.push_back(name.data());
  entries.push_back(nullptr);

  char** const before = environ;
  environ = entries.data();
  cuwarden::Settings settings;
  lines = 0;
  cuwarden::shim::read_settings(settings, [](std::string_view) { ++lines; });
  const std::string path = cuwarden::shim::expand_report_path(settings.report, "", 4711);
  environ = before;
  if (lines > names.size() || settings.stack_depth > 1024 || path.empty()) std::abort();
  return 0;
}
