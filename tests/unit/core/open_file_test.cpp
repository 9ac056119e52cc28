// Files are opened without waiting, and without a number below 3. A test of the numbers 0 to 2 runs
// in a child of its own, whose standard streams are closed.
#include "runtime_hooks/core/files/open_file.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace cuwarden {
namespace {

class OpenFile : public testing::Test {
 protected:
  OpenFile() {
    char text[] = "/tmp/open_file_test-XXXXXX";
    folder_ = mkdtemp(text);
    file_ = folder_ + "/file";
    const int made = ::open(file_.c_str(), O_WRONLY | O_CREAT, 0600);
    if (write(made, "text", 4) == 4) close(made);
  }
  ~OpenFile() override { std::filesystem::remove_all(folder_); }

  std::string folder_, file_;
};

bool is_closed(int number) { return fcntl(number, F_GETFD) < 0 && errno == EBADF; }

// 0: `body` returned true in the child, with descriptors 0 to 2 closed.
int without_streams(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    for (int number = 0; number < 3; ++number) close(number);
    _exit(body() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

TEST_F(OpenFile, a_regular_file_is_read_through_a_link_unless_links_are_refused) {
  const std::string link = folder_ + "/link";
  ASSERT_EQ(symlink(file_.c_str(), link.c_str()), 0);
  EXPECT_TRUE(open_to_read(link.c_str()));
  EXPECT_FALSE(open_to_read(link.c_str(), Links::refused));
  EXPECT_EQ(errno, ELOOP);
  EXPECT_TRUE(open_to_read("/proc/self/maps"));
}

TEST_F(OpenFile, nothing_is_written_through_a_link) {
  const std::string link = folder_ + "/link";
  ASSERT_EQ(symlink(file_.c_str(), link.c_str()), 0);
  EXPECT_FALSE(open_to_append(link.c_str(), true));
  EXPECT_EQ(errno, ELOOP);
  EXPECT_FALSE(open_to_change(link.c_str()));
  EXPECT_FALSE(make_file(AT_FDCWD, link.c_str(), O_WRONLY));
}

TEST_F(OpenFile, a_path_of_no_file_is_refused_at_once) {
  const std::string fifo = folder_ + "/fifo", socket_path = folder_ + "/socket";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{AF_UNIX, {}};
  socket_path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(listening, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  for (const char* path : {fifo.c_str(), socket_path.c_str(), "/dev/zero"}) {
    errno = 0;
    EXPECT_FALSE(open_to_read(path)) << path;
    EXPECT_EQ(errno, ENXIO) << path;
    errno = 0;
    EXPECT_FALSE(open_to_append(path, true)) << path;
    EXPECT_EQ(errno, ENXIO) << path;
    EXPECT_FALSE(open_to_change(path)) << path;
  }
  EXPECT_FALSE(open_to_read(folder_.c_str()));
  EXPECT_EQ(errno, EISDIR);
  EXPECT_FALSE(open_to_append(folder_.c_str(), true));
  EXPECT_EQ(errno, EISDIR);
  close(listening);
}

TEST_F(OpenFile, the_null_device_takes_what_is_written) {
  EXPECT_TRUE(open_to_append("/dev/null", false));
}

TEST_F(OpenFile, a_missing_file_is_made_for_its_owner_alone_where_that_is_allowed) {
  const std::string path = folder_ + "/new";
  EXPECT_FALSE(open_to_append(path.c_str(), false));
  EXPECT_TRUE(open_to_append(path.c_str(), true));
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0600u);
}

TEST_F(OpenFile, no_descriptor_takes_the_number_of_a_closed_stream) {
  EXPECT_EQ(without_streams([&] {
              const Descriptor first = open_to_read(file_.c_str());
              const Descriptor second = open_folder(AT_FDCWD, folder_.c_str());
              return first.number() >= 3 && second.number() >= 3 && is_closed(0) && is_closed(1) &&
                     is_closed(2);
            }),
            0);
}

TEST_F(OpenFile, only_the_closed_ones_of_three_streams_are_held) {
  EXPECT_EQ(without_streams([&] {
              if (::open("/dev/null", O_RDWR) != 0 || dup2(0, 2) != 2) return false;
              const Descriptor file = open_to_read(file_.c_str());
              return file.number() == 3 && !is_closed(0) && is_closed(1) && !is_closed(2) &&
                     write(2, "x", 1) == 1;
            }),
            0);
}

TEST_F(OpenFile, a_held_stream_answers_as_a_closed_one) {
  EXPECT_EQ(without_streams([&] {
              const StandardNumbersHeld held;
              char byte = 0;
              errno = 0;
              if (read(0, &byte, 1) >= 0 || errno != EBADF) return false;
              errno = 0;
              return write(1, &byte, 1) < 0 && errno == EBADF;
            }),
            0);
}

TEST_F(OpenFile, a_stream_that_the_program_opens_meanwhile_stays_its_own) {
  EXPECT_EQ(without_streams([&] {
              {
                const StandardNumbersHeld held;
                const int own = ::open("/dev/null", O_RDWR);
                if (own < 3 || dup2(own, 1) != 1) return false;
              }
              return is_closed(0) && write(1, "x", 1) == 1 && is_closed(2);
            }),
            0);
}

TEST_F(OpenFile, many_threads_open_at_once_and_none_gets_the_number_of_a_stream) {
  EXPECT_EQ(without_streams([&] {
              std::atomic<bool> good{true};
              std::vector<std::thread> threads;
              for (int i = 0; i < 8; ++i) {
                threads.emplace_back([&] {
                  for (int turn = 0; turn < 500; ++turn)
                    if (open_to_read(file_.c_str()).number() < 3) good = false;
                });
              }
              for (std::thread& thread : threads) thread.join();
              return good && is_closed(0) && is_closed(1) && is_closed(2);
            }),
            0);
}

TEST_F(OpenFile, a_child_forked_while_a_thread_holds_the_streams_can_open_and_gives_them_back) {
  EXPECT_EQ(without_streams([&] {
              const StandardNumbersHeld held;
              const pid_t child = fork();
              if (child == 0) {
                const bool high = open_to_read(file_.c_str()).number() >= 3;
                _exit(high && is_closed(0) && is_closed(1) && is_closed(2) ? 0 : 1);
              }
              int status = -1;
              waitpid(child, &status, 0);
              return status == 0;
            }),
            0);
}

TEST_F(OpenFile, where_only_numbers_of_streams_are_allowed_nothing_is_opened_and_nothing_stays) {
  for (rlim_t most = 0; most <= 3; ++most) {
    EXPECT_EQ(without_streams([&] {
                const rlimit limit{most, most};
                setrlimit(RLIMIT_NOFILE, &limit);
                const bool refused = !open_to_read(file_.c_str()) && errno == EMFILE;
                return refused && is_closed(0) && is_closed(1) && is_closed(2);
              }),
              0)
        << most;
  }
}

TEST(DescriptorNamed, streams_have_names_and_files_have_none) {
  EXPECT_EQ(descriptor_named("/dev/stdin"), 0);
  EXPECT_EQ(descriptor_named("/dev/stdout"), 1);
  EXPECT_EQ(descriptor_named("/dev/stderr"), 2);
  EXPECT_EQ(descriptor_named("/dev/fd/17"), 17);
  EXPECT_EQ(descriptor_named("/proc/self/fd/3"), 3);
  for (const char* path : {"", "/dev/fd/", "/dev/fd/x", "/dev/fd/1x", "/dev/fd/-1", "/dev/null",
                           "/dev/fd/99999999999999999999", "stdout"})
    EXPECT_EQ(descriptor_named(path), std::nullopt) << path;
}

}  // namespace
}  // namespace cuwarden
