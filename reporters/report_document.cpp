#include "reporters/report_document.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "reporters/error_text.hpp"
#include "reporters/file_status.hpp"
#include "reporters/report_shape.hpp"

namespace cuwarden {
namespace {

using nlohmann::json;

// 0 or an errno.
int read_file(const std::string& path, std::size_t most_bytes, std::string& content) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return errno;
  struct stat status {};
  int error = status_of(descriptor, status) == 0 ? 0 : errno;
  if (error == 0 && S_ISDIR(status.st_mode)) error = EISDIR;
  char piece[64 * 1024];
  while (error == 0) {
    const ssize_t count = read(descriptor, piece, sizeof piece);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) error = errno;
    if (count <= 0) break;
    content.append(piece, static_cast<std::size_t>(count));
    if (content.size() > most_bytes) error = EFBIG;
  }
  close(descriptor);
  return error;
}

}  // namespace

std::optional<ReportDocument> ReportDocument::load(const std::string& path, std::string& error,
                                                   std::size_t most_bytes) {
  std::string content;
  if (const int number = read_file(path, most_bytes, content)) {
    error = path + ": " + error_text(number) + "; give the path of a report that cuwarden wrote";
    return std::nullopt;
  }
  ReportDocument document;
  document.root_ = json::parse(content, nullptr, false);
  if (document.root_.is_discarded()) {
    error = path + ": not JSON" + (content.empty() ? " (the file is empty)" : "") +
            "; give the path of a report that cuwarden wrote";
    return std::nullopt;
  }
  const json* schema = nullptr;
  if (document.root_.is_object() && document.root_.contains("schema")) {
    schema = &document.root_["schema"];
  }
  if (schema == nullptr || !schema->is_string() ||
      !schema->get_ref<const std::string&>().starts_with("cuwarden.report/")) {
    error = path + ": not a cuwarden report (it has no \"schema\": \"cuwarden.report/1\")";
    return std::nullopt;
  }
  if (*schema != "cuwarden.report/1") {
    error = path + ": its schema is " + schema->get<std::string>() +
            ", and this cuwarden reads cuwarden.report/1; use the version that wrote it";
    return std::nullopt;
  }
  if (const auto wrong = wrong_shape(document.root_)) {
    error = path + ": a damaged report (" + *wrong + "); have it written again, or use a copy";
    return std::nullopt;
  }
  document.stacks_ = document.index_of("stacks");
  document.frames_ = document.index_of("frames");
  document.modules_ = document.index_of("modules");
  return document;
}

const json& ReportDocument::table(const char* name) const {
  const auto found = root_.find(name);
  return found == root_.end() ? none_ : *found;
}

ReportDocument::Index ReportDocument::index_of(const char* name) const {
  Index index;
  const json& rows = table(name);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    // Not by get(), which converts 1e300 into anything; this throws.
    index[rows.at(row).at("id").get_ref<const std::int64_t&>()] = row;
  }
  return index;
}

const json* ReportDocument::find(const char* name, const Index& index, const json& id) const {
  if (!id.is_number_integer()) return nullptr;
  const auto row = index.find(id.get<std::int64_t>());
  return row == index.end() ? nullptr : &table(name)[row->second];
}

const json* ReportDocument::stack(const json& id) const { return find("stacks", stacks_, id); }
const json* ReportDocument::frame(const json& id) const { return find("frames", frames_, id); }
const json* ReportDocument::module(const json& id) const { return find("modules", modules_, id); }

std::string ReportDocument::module_name(const json& id) const {
  const json* row = module(id);
  if (row == nullptr || !row->at("path").is_string()) return {};
  const std::string path = row->at("path");
  return path.substr(path.rfind('/') + 1);
}

}  // namespace cuwarden
