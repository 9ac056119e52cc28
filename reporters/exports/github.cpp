// Annotations of GitHub's workflows: a command in each line of a job's output, which GitHub shows
// beside the line of source.
#include <filesystem>

#include "reporters/exports/exports.hpp"
#include "reporters/words/quantities.hpp"
#include "reporters/words/replace_all.hpp"

namespace cuwarden {
namespace {

// Returns the text as the message of a command.
std::string message(std::string text) {
  replace_all(text, "%", "%25");
  replace_all(text, "\r", "%0D");
  replace_all(text, "\n", "%0A");
  return text;
}

// Returns the text as the value of a command's property.
std::string property(std::string text) {
  text = message(std::move(text));
  replace_all(text, ":", "%3A");
  replace_all(text, ",", "%2C");
  return text;
}

// Returns the path of the file from the folder of the repository; `file` if the folder does not
// have it or is empty. Looks at the texts only.
std::string path_in(const std::string& repository, const std::string& file) {
  namespace fs = std::filesystem;
  const fs::path found = fs::path(file).lexically_relative(fs::path(repository).lexically_normal());
  return repository.empty() || found.empty() || *found.begin() == ".." ? file : found.string();
}

}  // namespace

std::string exports::github(const ExportedLeaks& given) {
  std::string text;
  for (const auto& [fingerprint, leak] : given.leaks) {
    const std::string known = words_about_known(given, fingerprint, leak);
    text += known.empty() ? "::error " : "::notice ";
    if (!leak.file.empty()) text += "file=" + property(path_in(given.repository, leak.file)) + ",";
    if (!leak.file.empty() && leak.line != 0) text += "line=" + std::to_string(leak.line) + ",";
    text += "title=" + property("GPU memory leak " + fingerprint) + "::" +
            message((known.empty() ? "" : known + ": ") + human_bytes(leak.bytes) + " in " +
                    counted(leak.count, leak.kind) + " never freed" +
                    (leak.api.empty() ? "" : " (" + leak.api + ")") +
                    (leak.where.empty() ? "" : ": " + leak.where)) +
            "\n";
  }
  return text;
}

}  // namespace cuwarden
