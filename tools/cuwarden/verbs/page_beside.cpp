#include "tools/cuwarden/verbs/page_beside.hpp"

#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <string_view>

#include "reporters/words/error_text.hpp"
#include "runtime_hooks/core/files/open_file.hpp"
#include "tools/cuwarden/output/command_output.hpp"
#include "tools/cuwarden/output/progress.hpp"
#include "tools/cuwarden/output/whole_file.hpp"

namespace cuwarden {

bool is_page_there() {
  if (exports::html() != nullptr) return true;
  print_error(
      "this cuwarden was built without the page of --format html; install nodejs and npm, run "
      "meson "
      "setup --reconfigure where there is a network, and build again");
  return false;
}

namespace {

// Returns why the page must not replace the file at the path: a part of an error message. Empty if
// there is no file, or if an earlier page of cuwarden is there.
std::string reason_to_keep(const std::string& path) {
  const Descriptor file = open_to_read(path.c_str());
  if (!file && errno == ENOENT) return {};
  // The mark stands in the head of the page.
  char head[1024];
  const ssize_t count = file ? file.read_some(head) : -1;
  if (count < 0) return std::string("it may be no page of cuwarden (") + error_text(errno) + ")";
  const bool is_page =
      std::string_view(head, static_cast<std::size_t>(count)).find("<title>cuwarden report") !=
      std::string_view::npos;
  return is_page ? "" : "it is no page of cuwarden";
}

}  // namespace

void add_showing_progress(CommonFile& file, const IndexedReport& report, const std::string& path) {
  file.add(report, path, ToldProgress("converting " + path));
}

void write_showing_progress(CommonFile& file, Output& output) {
  file.write(output, ToldProgress("compressing", Progress::Unit::bytes));
}

void write_page_beside(const std::string& report_path, const IndexedReport& report) {
  constexpr std::string_view ending = ".json";
  std::string path = report_path;
  if (path.ends_with(ending)) path.resize(path.size() - ending.size());
  path += ".html";
  if (const std::string reason = reason_to_keep(path); !reason.empty()) {
    print_error(path + ": " + reason +
                ", so it stays as it is; `cuwarden export --format html` writes the page to "
                "another file");
    return;
  }
  constexpr mode_t for_its_owner = 0600;
  WholeFile file(path, for_its_owner);
  int error = file.error();
  if (error == 0) {
    const std::unique_ptr<CommonFile> page = exports::html();
    add_showing_progress(*page, report, report_path);
    write_showing_progress(*page, file.output());
    error = file.finish();
  }
  if (error != 0)
    print_error("cannot write " + path + ": " + error_text(error) +
                "; `cuwarden export --format html` writes the page to a path that you give it");
  else
    print_line(STDERR_FILENO, "page: " + path);
}

}  // namespace cuwarden
