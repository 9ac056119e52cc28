#include "reporters/reports/report_copy.hpp"

#include <stdio.h>  // renameat
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "reporters/files/file_name_limits.hpp"
#include "reporters/files/file_status.hpp"
#include "reporters/files/output.hpp"
#include "reporters/files/unfinished_files.hpp"
#include "reporters/json/json_text.hpp"
#include "reporters/json/read_report.hpp"
#include "reporters/json/update.hpp"
#include "reporters/words/error_text.hpp"
#include "reporters/words/paths.hpp"
#include "runtime_hooks/core/files/open_file.hpp"

namespace cuwarden {
namespace {

constexpr int most_attempts = 16;
constexpr unsigned most_copies = 100'000;

std::string failure(const std::string& path, int error) {
  return "cannot write " + path + ": " + error_text(error) +
         "; give a path that can be written (--output), or make room";
}

// The rows are passed over twice: they are brought up to date, and then written.
constexpr std::size_t passes_of_writing = 2;

// Returns the number of rows in all tables of the report.
std::size_t rows_of(const Json& root) {
  std::size_t rows = 0;
  for (const Json& value : root)
    if (value.is_array()) rows += value.size();
  return rows;
}

// Writes the report in the layout of all reports: a line for each property, and a line for each row
// of a table.
template <class Write>
void write_json(const Json& root, const Write& write, RowDone done) {
  bool first = true;
  for (const auto& [name, value] : root.items()) {
    write(first ? "{\n  " : ",\n  ");
    first = false;
    write(json_text(Json(name)) + ": ");
    if (!value.is_array()) {
      write(json_text(value));
      continue;
    }
    write("[");
    bool first_row = true;
    for (const Json& row : value) {
      write(first_row ? "\n    " : ",\n    ");
      first_row = false;
      write(json_text(row));
      done();
    }
    write(first_row ? "]" : "\n  ]");
  }
  write(first ? "{}\n" : "\n}\n");
}

// A file beside the path that it gets in the end. It is removed with the object unless it was
// renamed.
class Unfinished {
 public:
  explicit Unfinished(const std::string& folder) : folder_(open_folder(AT_FDCWD, folder.c_str())) {
    if (!folder_) {
      error_ = errno;
      return;
    }
    const NoInterruption held;
    for (int attempt = 0; attempt < most_attempts && !file_; ++attempt) {
      name_ = ".cuwarden-copy-" + std::to_string(getpid()) + "-" + std::to_string(attempt) + ".tmp";
      file_ = make_file(folder_.number(), name_.c_str(), O_WRONLY);
      if (!file_ && errno != EEXIST) break;
    }
    if (file_)
      listed_.emplace(folder + name_);
    else
      error_ = errno;
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  ~Unfinished() {
    if (file_ && !name_.empty()) unlinkat(folder_.number(), name_.c_str(), 0);
  }

  int folder() const { return folder_.number(); }
  int error() const { return error_; }

  // Writes the contents. Returns 0 or an errno, as the next functions do.
  int fill(const Json& root, RowDone done) {
    if (error_ != 0) return error_;
    undo_umask(file_.number());
    const auto output = std::make_unique<Output>(file_.number());
    write_json(
        root, [&](std::string_view part) { output->write(part); }, done);
    return output->finish();
  }
  int replace(const std::string& name) {
    if (renameat(folder_.number(), name_.c_str(), folder_.number(), name.c_str()) != 0)
      return errno;
    name_.clear();
    return 0;
  }
  // Gives the file its name, if the name is free. EEXIST: it is taken.
  int become(const std::string& name) {
    if (linkat(folder_.number(), name_.c_str(), folder_.number(), name.c_str(), 0) == 0) return 0;
    if (errno != EPERM && errno != EOPNOTSUPP && errno != EMLINK && errno != ENOSYS) return errno;
    // The file system has no links. An empty file takes the name, and is then replaced.
    const NoInterruption held;
    if (!make_file(folder_.number(), name.c_str(), O_WRONLY)) return errno;
    const int error = replace(name);
    if (error != 0) unlinkat(folder_.number(), name.c_str(), 0);
    return error;
  }

 private:
  Descriptor folder_, file_;
  std::string name_;
  std::optional<UnfinishedFile> listed_;
  int error_ = 0;
};

}  // namespace

std::optional<ReportCopy> ReportCopy::load(const std::string& path, std::string& error,
                                           ReadBytes read) {
  ReportCopy copy;
  copy.path_ = path;
  struct stat status {};
  if (path != "-" && status_at(AT_FDCWD, path.c_str(), status, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISREG(status.st_mode)) {
    copy.device_ = status.st_dev;
    copy.inode_ = status.st_ino;
    copy.owner_ = status.st_uid;
  }
  const auto content = load_content(path, error);
  if (!content) return std::nullopt;
  auto report = parse_report(*content, name_of_input(path), error, &copy.root_, read);
  if (!report) return std::nullopt;
  copy.report_ = std::move(*report);
  return copy;
}

void ReportCopy::bring_up_to_date(RowDone done) {
  update(root_, report_, report_.redacted ? Unlisted::dropped : Unlisted::kept, done);
}

std::string ReportCopy::text(Told told) {
  RowProgress done(rows_of(root_), passes_of_writing, told);
  bring_up_to_date(done);
  std::string all;
  write_json(
      root_, [&](std::string_view part) { all += part; }, done);
  return all;
}

std::string ReportCopy::replace() {
  const auto ignore = [] {};
  bring_up_to_date(ignore);
  if (inode_ == 0 || owner_ != geteuid()) return path_ + " is not a file of this user's";
  Unfinished copy(std::string(folder_of(path_)));
  if (const int error = copy.fill(root_, ignore)) return failure(path_, error);
  const std::string name(file_name(path_));
  struct stat status {};
  if (status_at(copy.folder(), name.c_str(), status, AT_SYMLINK_NOFOLLOW) != 0 ||
      status.st_dev != device_ || status.st_ino != inode_)
    return path_ + " has been replaced meanwhile";
  const int error = copy.replace(name);
  return error == 0 ? std::string() : failure(path_, error);
}

std::string ReportCopy::write(std::string& path, Told told) {
  RowProgress done(rows_of(root_), passes_of_writing, told);
  bring_up_to_date(done);
  Unfinished copy(std::string(folder_of(path)));
  if (const int error = copy.fill(root_, done)) return failure(path, error);
  const std::string name(file_name(path));
  const std::string folder = path.substr(0, path.size() - name.size());
  int error = EEXIST;
  for (unsigned number = 0; number < most_copies && error == EEXIST; ++number) {
    path = folder + numbered_name(name, number);
    error = copy.become(std::string(file_name(path)));
  }
  return error == 0 ? std::string() : failure(path, error);
}

}  // namespace cuwarden
