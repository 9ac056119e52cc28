// Runs a piece of a test in a child process, whose limits and mounts it may change.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace cuwarden::ledger {

// Exit status of a test or child that cannot run on this machine.
inline constexpr int skipped_status = 77;

// Ends the child process with status 1, and a line on stderr, if the condition is false.
#define CHILD_EXPECT(condition)                                                          \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      std::fprintf(stderr, "%s:%d: in the child: %s\n", __FILE__, __LINE__, #condition); \
      _exit(1);                                                                          \
    }                                                                                    \
  } while (false)

// Runs `body` in a forked child, and waits for its end. Fails the test if the child ends by a
// signal or with a status other than 0; skips the test if the status is skipped_status.
template <class Body>
void expect_child_succeeds(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_FALSE(WIFSIGNALED(status)) << "the child was killed by signal " << WTERMSIG(status);
  if (WEXITSTATUS(status) == skipped_status) GTEST_SKIP() << "not permitted to mount here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// Mounts a tmpfs over the folder, visible to this process only; to be called in a child. `options`:
// those of mount(8), such as "size=1M". `flags`: those of mount(2), such as MS_RDONLY. Ends the
// process with skipped_status if it may not mount.
inline void mount_tmpfs(const char* folder, const char* options, unsigned long flags = 0) {
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("ledger-test", folder, "tmpfs", flags, options) != 0) {
    _exit(skipped_status);
  }
}

}  // namespace cuwarden::ledger
