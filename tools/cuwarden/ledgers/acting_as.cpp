#include "tools/cuwarden/ledgers/acting_as.hpp"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <thread>

namespace cuwarden {
namespace {

using std::chrono::steady_clock;

// Takes the rights of the user for this process: the user's id and groups. A file's group does not
// matter, since its owner need not be a member of it: a folder with the set-group-ID bit gives
// files its own group.
bool become(uid_t uid) {
  constexpr gid_t nobodys_group = 65534;
  const passwd* const user = getpwuid(uid);
  const gid_t group = user != nullptr ? user->pw_gid : nobodys_group;
  const bool in_groups =
      user != nullptr ? initgroups(user->pw_name, group) == 0 : setgroups(0, nullptr) == 0;
  return in_groups && setresgid(group, group, group) == 0 && setresuid(uid, uid, uid) == 0;
}

// Limits the memory and the time of this process, in case a user's file makes root's command work
// without end. The largest report takes far less.
void limit_this_process() {
  const auto limit = [](auto what, rlim_t most) {
    rlimit present{};
    if (getrlimit(what, &present) != 0) return;
    present.rlim_cur = std::min(present.rlim_cur, most);
    present.rlim_max = std::min(present.rlim_max, most);
    setrlimit(what, &present);
  };
  constexpr rlim_t gib = rlim_t{1} << 30;
  limit(RLIMIT_CPU, 600);
  limit(RLIMIT_FSIZE, 8 * gib);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  // A mapped ledger may take 16 GiB, and the files of its modules are mapped in addition.
  limit(RLIMIT_AS, 48 * gib);
  limit(RLIMIT_DATA, 8 * gib);
#endif
}

void send(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(descriptor, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

[[noreturn]] void work_as(uid_t uid, pid_t parent, int answer,
                          const std::function<std::string()>& work) {
  limit_this_process();
  // PDEATHSIG kills this child when the command ends, so that a child stopped by its user does not
  // outlive the command. The kernel resets it when the rights change, so it is set afterwards.
  if (become(uid) && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent) {
    try {
      send(answer, work());
    } catch (...) {
      // There was not enough memory. The parent sees a missing answer.
    }
  }
  _exit(0);
}

// Reads until the end of the pipe. Returns false if the end did not come in time, or if the text is
// longer than `most_bytes`.
bool read_whole(int descriptor, steady_clock::time_point end, std::size_t most_bytes,
                std::string& text) {
  char piece[64 * 1024];
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - steady_clock::now()).count();
    if (left <= 0 || text.size() > most_bytes) return false;
    pollfd input{descriptor, POLLIN, 0};
    constexpr std::int64_t longest = 60'000;
    const int ready = poll(&input, 1, static_cast<int>(std::min<std::int64_t>(left, longest)));
    if (ready <= 0) continue;  // a signal came, or the clock is to be looked at
    const ssize_t count = read(descriptor, piece, sizeof piece);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) return true;
    text.append(piece, static_cast<std::size_t>(count));
  }
}

// Waits a moment for a killed child. A child that hangs in a file system of its user's is left
// behind.
void wait_for_the_killed(pid_t child) {
  constexpr int attempts = 100;
  for (int i = 0; i < attempts && waitpid(child, nullptr, WNOHANG) == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

}  // namespace

ChildsAnswer ask_as_user(uid_t user, TimeForUsers& time, std::size_t most_bytes,
                         const std::function<std::string()>& work) {
  const auto begin = steady_clock::now();
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {ChildsAnswer::Failure::no_child, {}};
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) work_as(user, parent, ends[1], work);
  close(ends[1]);
  ChildsAnswer answer;
  if (child < 0) {
    answer.failure = ChildsAnswer::Failure::no_child;
  } else if (!read_whole(ends[0], begin + time.left(user), most_bytes, answer.text)) {
    answer = {ChildsAnswer::Failure::late, {}};
  }
  close(ends[0]);
  if (child > 0) {
    // The child has answered or is late; in both cases it has nothing more to do.
    kill(child, SIGKILL);
    wait_for_the_killed(child);
  }
  time.spend(user, steady_clock::now() - begin);
  return answer;
}

}  // namespace cuwarden
