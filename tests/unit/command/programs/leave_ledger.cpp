// A process that records two leaks in a real ledger, enters it into the list of reports, and ends
// without a report. With `sleep` it first prints "ready" and sleeps for half a minute.
// usage: leave_ledger FOLDER REPORT kill|exit|sleep
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "runtime_hooks/ledger/write/allocation_records/allocations.hpp"
#include "runtime_hooks/ledger/write/allocation_records/group_table.hpp"
#include "runtime_hooks/ledger/write/stacks/stack_table.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"

int main(int count, char** arguments) {
  if (count != 4) return 2;
  using namespace cuwarden;
  using namespace cuwarden::ledger;
  const std::array<const char*, 1> folders = {arguments[1]};
  const std::array<std::string_view, 1> hooks = {"cudaMalloc"};
  Creation creation;
  creation.folders = folders;
  creation.hook_names = hooks;
  creation.report_path = arguments[2];
  Writer* writer = Writer::create(creation);
  if (writer == nullptr || writer->file.path().empty()) return 3;
  const std::array<Frame, 1> frames = {reinterpret_cast<std::uint64_t>(&main) + 4};
  const GroupId group =
      writer->groups.get({writer->stacks.intern(frames, false), {0}, Kind::device, {0}});
  for (std::uint64_t i = 0; i < 2; ++i) {
    NewRecord record;
    record.space = Space::pointer;
    record.address = {0x7f0000000000 + i * 4096};
    record.bytes = {1000};
    record.group = group;
    writer->allocations.add(record);
  }

  const char* list = std::getenv("CUWARDEN_REPORT_LIST");
  if (list == nullptr) return 4;
  const std::string line = std::string(writer->file.path()) + '\0';
  const int descriptor = open(list, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (write(descriptor, line.data(), line.size()) < 0) return 5;
  close(descriptor);

  const std::string_view how = arguments[3];
  if (how == "kill") raise(SIGKILL);
  if (how == "sleep") {
    if (write(STDOUT_FILENO, "ready\n", 6) != 6) return 6;
    sleep(30);
  }
  _exit(7);
}
