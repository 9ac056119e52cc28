// Facts about other processes: read from made-up folders, whose answer is known, and on this
// machine.
#include "shim/probes/other_process.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "tests/comes_about.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace cuwarden::shim {
namespace {

namespace fs = std::filesystem;
using ledger::RunState;
using Pids = std::set<std::uint32_t>;

class OtherProcessTest : public testing::Test {
 protected:
  OtherProcessTest() {
    put("passwd", "root:x:0:0::/root:/bin/sh\nbob:x:1001:1::/:\nalice:x:100:1::/:\n");
  }

  void put(const std::string& name, const std::string& text) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
  }
  void link(const std::string& name, const std::string& to) {
    fs::create_directories((folder_ / name).parent_path());
    fs::create_symlink(to, folder_ / name);
  }
  void put_process(const std::string& pid, const std::string& name, char state,
                   const std::string& uid = "100", int threads = 1,
                   const std::string& parent = "7") {
    put(pid + "/stat", pid + " (" + name + ") " + state + " " + parent +
                           " 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 " + std::to_string(threads) +
                           " 0 5000 1 1\n");
    put(pid + "/status", "Name:\tx\nUid:\t" + uid + "\t1\t1\t1\nGid:\t1\t1\t1\t1\n");
    put(pid + "/cgroup", "0::/system.slice/slurmstepd.scope/job_9/step_0\n");
  }
  // `pending`, `shared`: signals sent to the thread and to its process, as /proc writes them.
  void put_thread(const std::string& pid, const std::string& thread, char state,
                  const std::string& pending, const std::string& shared = "0000000000000000") {
    const std::string folder = pid + "/task/" + thread;
    put(folder + "/stat",
        thread + " (x) " + state + " 7 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 2 0 5 1\n");
    put(folder + "/status", "Name:\tx\nSigPnd:\t" + pending + "\nShdPnd:\t" + shared + "\n");
  }
  OtherProcesses processes() {
    proc_ = folder_.string();
    passwd_ = (folder_ / "passwd").string();
    return OtherProcesses(proc_.c_str(), passwd_.c_str());
  }
  ProcessFacts facts(std::uint32_t pid) { return processes().facts_of(pid); }
  Pids with_device_file(std::uint32_t gpu) {
    Pids found;
    processes().each_with_device_file(gpu, [&](std::uint32_t pid) {
      found.insert(pid);
      return true;
    });
    return found;
  }

  const TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();

 private:
  std::string proc_, passwd_;
};

TEST_F(OtherProcessTest, the_facts_are_those_of_the_processs_files) {
  put_process("42", "python3", 'S');
  put_process("7", "bash", 'S');
  link("42/exe", "/opt/my python/python3");
  const ProcessFacts read = facts(42);
  EXPECT_EQ(read.run_state, RunState::alive);
  EXPECT_EQ(read.parent, 7u);
  EXPECT_EQ(read.program, "/opt/my python/python3");
  EXPECT_EQ(read.parent_program, "bash");
  EXPECT_EQ(read.user, "alice");
  EXPECT_EQ(read.job, "9");
  EXPECT_EQ(read.unit, "");
}

TEST_F(OtherProcessTest, a_name_may_have_brackets_and_blanks_in_it) {
  put_process("42", "a) R 99 (b", 'S');
  EXPECT_EQ(facts(42).program, "a) R 99 (b");
  EXPECT_EQ(facts(42).parent, 7u);
}

TEST_F(OtherProcessTest, a_user_without_a_name_is_the_uid) {
  put_process("42", "x", 'S', "1");
  EXPECT_EQ(facts(42).user, "1");
  put_process("43", "x", 'S', "65534");  // the user is of another user namespace
  EXPECT_EQ(facts(43).user, "");
  fs::remove(folder_ / "passwd");
  put_process("44", "x", 'S');
  EXPECT_EQ(facts(44).user, "100");
}

TEST_F(OtherProcessTest, a_program_that_was_replaced_keeps_its_path) {
  put_process("42", "x", 'S');
  link("42/exe", "/bin/train (deleted)");
  EXPECT_EQ(facts(42).program, "/bin/train");
}

TEST_F(OtherProcessTest, the_user_is_another_one_if_the_uid_is_known_and_differs) {
  put_process("42", "x", 'S', std::to_string(getuid()));
  EXPECT_FALSE(facts(42).is_of_another_user);
  put_process("42", "x", 'S', std::to_string(getuid() + 1));
  EXPECT_TRUE(facts(42).is_of_another_user);
  fs::remove(folder_ / "42/status");
  EXPECT_FALSE(facts(42).is_of_another_user);
}

TEST_F(OtherProcessTest, names_are_printable_texts) {
  put_process("42", "fourteen bytes\xc3", 'S');  // the kernel cuts names, as within "ä" here
  put_process("7", "a\nb", 'S');
  EXPECT_EQ(facts(42).program, "fourteen bytes?");
  EXPECT_EQ(facts(42).parent_program, "a?b");
  link("42/exe", "/opt/caf\xe9/r\xc3\xa4t");
  EXPECT_EQ(facts(42).program, "/opt/caf?/r\xc3\xa4t");
  put("passwd", "jos\xe9:x:100:1::/:\n");
  EXPECT_EQ(facts(42).user, "jos?");
}

TEST_F(OtherProcessTest, the_state_is_told_by_its_letter) {
  put_process("42", "x", 'Z');
  EXPECT_EQ(facts(42).run_state, RunState::zombie);
  put_process("42", "x", 'Z', "100", 3);
  EXPECT_EQ(facts(42).run_state, RunState::alive) << "only its first thread has ended";
  put_process("42", "x", 'T');
  EXPECT_EQ(facts(42).run_state, RunState::alive);
}

constexpr const char *none_pending = "0000000000000000", *kill_pending = "0000000000000100",
                     *others_pending = "fffffffffffffeff";

TEST_F(OtherProcessTest, a_process_in_the_kernel_is_stuck_only_if_it_was_killed) {
  put_process("42", "x", 'D');
  EXPECT_EQ(facts(42).run_state, RunState::alive);
  put_thread("42", "42", 'D', none_pending);
  EXPECT_EQ(facts(42).run_state, RunState::alive) << "the process may wait for a disk";
  put_thread("42", "42", 'D', others_pending);
  EXPECT_EQ(facts(42).run_state, RunState::alive) << "only other signals are pending";
  put_thread("42", "42", 'D', kill_pending);
  EXPECT_EQ(facts(42).run_state, RunState::stuck);
  put_thread("42", "42", 'D', none_pending, kill_pending);
  EXPECT_EQ(facts(42).run_state, RunState::stuck);
  put_thread("42", "42", 'R', kill_pending);
  EXPECT_EQ(facts(42).run_state, RunState::alive) << "the process is about to end";
}

TEST_F(OtherProcessTest, a_killed_process_is_stuck_if_one_of_its_threads_is) {
  put_process("42", "x", 'Z', "100", 2);
  put_thread("42", "42", 'Z', none_pending);
  put_thread("42", "43", 'D', none_pending);
  EXPECT_EQ(facts(42).run_state, RunState::alive);
  put_thread("42", "43", 'D', kill_pending);
  EXPECT_EQ(facts(42).run_state, RunState::stuck);
}

TEST_F(OtherProcessTest, a_few_killed_processes_in_the_kernel_are_looked_at_again) {
  put_process("42", "x", 'D');
  put_thread("42", "42", 'D', kill_pending);
  OtherProcesses asked = processes();
  for (int i = 0; i < 8; ++i) EXPECT_EQ(asked.facts_of(42).run_state, RunState::stuck);
  EXPECT_EQ(asked.facts_of(42).run_state, RunState::unknown);
}

TEST_F(OtherProcessTest, facts_that_cannot_be_read_are_unknown) {
  const ProcessFacts none = facts(42);
  EXPECT_EQ(none.run_state, RunState::unknown);
  EXPECT_EQ(none.start_realtime_ns, 0);
  EXPECT_EQ(none.program + none.user + none.job + none.unit, "");
  put("43/stat", "43 (half");
  EXPECT_EQ(facts(43).run_state, RunState::unknown);
  put("44/stat", "44 (x) S 7 1");
  EXPECT_EQ(facts(44).parent, 7u);
  EXPECT_EQ(facts(44).start_realtime_ns, 0);
}

TEST_F(OtherProcessTest, processes_with_a_gpus_file_open_are_found) {
  put_process("42", "x", 'S');
  link("42/fd/0", "/dev/null");
  link("42/fd/5", "/dev/nvidia0");
  put_process("43", "x", 'S');
  link("43/fd/5", "/dev/nvidia12");
  put_process("44", "x", 'S');
  link("44/fd/5", "/dev/nvidiactl");
  link("44/fd/6", "/tmp/dev/nvidia0");
  link("44/fd/7", "/dev/nvidia");
  put_process("45", "nvidia-persiste", 'S');
  link("45/fd/5", "/dev/nvidia0");
  put_process(std::to_string(getpid()), "x", 'S');
  link(std::to_string(getpid()) + "/fd/5", "/dev/nvidia0");
  EXPECT_EQ(with_device_file(0), Pids({42}));
  EXPECT_EQ(with_device_file(12), Pids({43}));
  EXPECT_EQ(with_device_file(1), Pids());
}

TEST_F(OtherProcessTest, the_callers_descendants_are_not_found) {
  const std::string own = std::to_string(getpid());
  put_process("42", "x", 'S', "100", 1, own);
  put_process("43", "x", 'S', "100", 1, "42");
  put_process("44", "x", 'S', "100", 1, "99");  // a process that is gone
  for (const char* pid : {"42", "43", "44"}) link(std::string(pid) + "/fd/5", "/dev/nvidia0");
  EXPECT_EQ(with_device_file(0), Pids({44}));
}

TEST_F(OtherProcessTest, the_search_for_open_files_ends_when_it_is_told_to) {
  for (const char* pid : {"42", "43", "44"}) {
    put_process(pid, "x", 'S');
    link(std::string(pid) + "/fd/5", "/dev/nvidia0");
  }
  int visits = 0;
  processes().each_with_device_file(0, [&](std::uint32_t) { return ++visits < 2; });
  EXPECT_EQ(visits, 2);
}

TEST(OtherProcessHere, a_childs_start_user_and_end_are_seen) {
  timespec before{};
  clock_gettime(CLOCK_REALTIME, &before);
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  OtherProcesses processes;
  const auto state = [&] {
    return processes.facts_of(static_cast<std::uint32_t>(child)).run_state;
  };
  EXPECT_EQ(state(), RunState::alive);
  const ProcessFacts facts = processes.facts_of(static_cast<std::uint32_t>(child));
  // The kernel counts a process's start in ticks of 10 ms.
  const double late_s =
      static_cast<double>(facts.start_realtime_ns) / 1e9 - static_cast<double>(before.tv_sec);
  EXPECT_GT(late_s, -0.1);
  EXPECT_LT(late_s, 60);
  EXPECT_EQ(facts.parent, static_cast<std::uint32_t>(getpid()));
  EXPECT_EQ(facts.program, fs::read_symlink("/proc/self/exe").string());
  EXPECT_EQ(facts.parent_program, facts.program);
  EXPECT_FALSE(facts.user.empty());
  kill(child, SIGKILL);
  EXPECT_TRUE(comes_about([&] { return state() == RunState::zombie; }));
  waitpid(child, nullptr, 0);
  EXPECT_EQ(state(), RunState::unknown);
}

TEST(OtherProcessHere, a_process_that_waits_in_the_kernel_is_alive_until_it_is_killed) {
  const pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);
    // A parent waits for such a child in state D.
    if (syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0) == 0)
      for (;;) pause();
    _exit(0);
  }
  OtherProcesses processes;
  const auto state = [&] {
    return processes.facts_of(static_cast<std::uint32_t>(child)).run_state;
  };
  const auto letter = [&] {
    std::string line;
    std::getline(std::ifstream("/proc/" + std::to_string(child) + "/stat"), line);
    return line.at(line.rfind(')') + 2);
  };
  EXPECT_TRUE(comes_about([&] { return letter() == 'D'; }));
  EXPECT_EQ(state(), RunState::alive);
  kill(-child, SIGKILL);
  EXPECT_TRUE(comes_about([&] { return state() == RunState::zombie; }));
  waitpid(child, nullptr, 0);
}

TEST(OtherProcessHere, errno_stays_as_it_was) {
  OtherProcesses processes;
  errno = 4711;
  processes.facts_of(static_cast<std::uint32_t>(getppid()));
  processes.facts_of(0x7ffffffe);
  processes.each_with_device_file(0, [](std::uint32_t) { return true; });
  EXPECT_EQ(errno, 4711);
}

}  // namespace
}  // namespace cuwarden::shim
