// Finding out if the process of an unlocked ledger lives: by its pid, start time, boot and pid
// namespace, and by its mapped files.
#include "tools/cuwarden/ledgers/running_processes.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "tests/unit/ledger/ledger_fixture.hpp"

namespace cuwarden {
namespace {

class RunningProcesses : public testing::Test {
 protected:
  RunningProcesses() {
    struct stat status {};
    stat(std::string(writer->file.path()).c_str(), &status);
    inode = status.st_ino;
  }
  Life life() const { return life_of(process, inode); }

  TemporaryFolder folder;
  ledger::Writer* writer = ledger::make_writer(folder.path());
  ledger::ProcessView process = ledger::read(*writer).process();
  ino_t inode = 0;
  std::array<std::uint8_t, 16> boot{};
};

TEST_F(RunningProcesses, a_process_that_has_its_ledger_mapped_lives) {
  EXPECT_EQ(life(), Life::running);
  process.pid_namespace = 0;  // unknown, as in ledgers of older writers
  EXPECT_EQ(life(), Life::running);
}

TEST_F(RunningProcesses, a_pid_that_was_used_again_is_another_process) {
  process.start_ticks += 1;
  EXPECT_EQ(life(), Life::ended);
}

TEST_F(RunningProcesses, a_pid_that_no_process_has_is_no_process) {
  process.pid = 0x7fffffff;
  EXPECT_EQ(life(), Life::ended);
}

TEST_F(RunningProcesses, a_process_that_became_another_program_has_left_its_ledger) {
  // The child maps no ledger, as after an exec: a ledger's mappings are not inherited by a fork.
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  process.pid = static_cast<std::uint32_t>(child);
  process.start_ticks = process_stat(child).value().start_ticks;
  EXPECT_EQ(life(), Life::ended);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_F(RunningProcesses, a_process_with_a_ledger_is_not_ended_by_a_copy_of_it) {
  inode += 1;
  EXPECT_EQ(life(), Life::running);
}

TEST_F(RunningProcesses, no_process_outlives_its_boot) {
  boot.fill(0xab);
  process.boot_id = boot;
  EXPECT_EQ(life(), Life::ended);
  boot.fill(0);  // unknown
  EXPECT_EQ(life(), Life::running);
}

TEST_F(RunningProcesses, a_pid_of_another_namespace_is_looked_for_among_all_processes) {
  process.pid_namespace += 1;
  EXPECT_EQ(life(), Life::running)
      << "one has this pid in its own namespace, and the ledger mapped";
  process.pid = 0x7fffffff;
  constexpr std::uint32_t initial =
      0xEFFFFFFC;  // the outermost namespace, which sees all processes
  EXPECT_EQ(life(), pid_namespace_of(getpid()) == initial ? Life::ended : Life::unknown);
}

TEST_F(RunningProcesses, the_ledger_and_nothing_else_is_found_among_the_mappings) {
  const Mappings mappings = mappings_of(getpid());
  EXPECT_EQ(mappings.error, 0);
  EXPECT_FALSE(mappings.has_shim);
  // Ledgers of the other tests are mapped as well, since a writer never unmaps its ledger.
  const auto own = [&](const Mappings& all) {
    std::vector<MappedLedger> found;
    for (const MappedLedger& ledger : all.ledgers) {
      EXPECT_NE(ledger.path.find("/cuwarden-ledger-"), ledger.path.npos);
      if (ledger.inode == inode && !ledger.deleted) found.push_back(ledger);
    }
    return found;
  };
  ASSERT_EQ(own(mappings).size(), 1u);
  EXPECT_EQ(own(mappings)[0].path, writer->file.path());
  writer->file.remove();
  EXPECT_EQ(own(mappings_of(getpid())).size(), 0u);
}

}  // namespace
}  // namespace cuwarden
