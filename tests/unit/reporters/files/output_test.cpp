// Output to descriptors under the system's limits.
#include "reporters/files/output.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

namespace cuwarden {
namespace {

// No file may be larger than 1,000 bytes while the object exists.
class FileSizeLimit {
 public:
  FileSizeLimit() {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{.rlim_cur = 1000, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }
  FileSizeLimit(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
};

TEST(Output, the_limit_of_file_sizes_holds_for_files_and_not_for_pipes) {
  const std::string text(2000, 'x');
  int pipe_ends[2] = {-1, -1};
  ASSERT_EQ(pipe2(pipe_ends, O_CLOEXEC), 0);
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  Output to_pipe(pipe_ends[1]), to_file(fileno(file));
  {
    const FileSizeLimit limit;
    to_pipe.write(text);
    EXPECT_EQ(to_pipe.finish(), 0);
    to_file.write(text);
    EXPECT_EQ(to_file.finish(), EFBIG);
  }
  std::fclose(file);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

}  // namespace
}  // namespace cuwarden
