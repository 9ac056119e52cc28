#include "tools/cuwarden/program/installation.hpp"

#include <sys/auxv.h>

#include <filesystem>
#include <initializer_list>
#include <string_view>

namespace cuwarden {
namespace {

namespace fs = std::filesystem;

// The folder that holds this command. Without /proc it is found by the path that the command was
// started by. Empty: it cannot be told.
fs::path own_folder() {
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error);
  if (!error) return own.parent_path();
  const auto* const started = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  return started == nullptr ? fs::path() : fs::canonical(started, error).parent_path();
}

std::optional<std::string> find(std::initializer_list<std::string_view> candidates,
                                std::string_view file) {
  const fs::path own = own_folder();
  if (own.empty()) return std::nullopt;
  std::error_code error;
  for (const std::string_view candidate : candidates) {
    const fs::path path = (own / candidate).lexically_normal();
    if (fs::is_regular_file(path / file, error)) return path.string();
  }
  return std::nullopt;
}

std::string joined(std::string folder, std::string_view file) {
  if (!folder.ends_with('/')) folder += '/';
  return folder.append(file);
}

}  // namespace

std::optional<std::string> find_shim() {
  const auto folder = find({"", "../lib", "../lib/cuwarden", "../lib/x86_64-linux-gnu",
                            "../lib/x86_64-linux-gnu/cuwarden", "../lib64", "../lib64/cuwarden"},
                           "libcuwarden.so");
  if (!folder) return std::nullopt;
  return joined(*folder, "libcuwarden.so");
}

std::optional<std::string> find_simulated_gpu() {
  auto folder =
      find({"tools/simulated_gpu", "simulated_gpu", "../lib/cuwarden/simulated_gpu",
            "../lib/x86_64-linux-gnu/cuwarden/simulated_gpu", "../lib64/cuwarden/simulated_gpu"},
           "libcuda.so.1");
  while (folder && folder->size() > 1 && folder->ends_with('/')) folder->pop_back();
  return folder;
}

}  // namespace cuwarden
