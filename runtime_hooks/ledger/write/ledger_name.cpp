#include "runtime_hooks/ledger/write/ledger_name.hpp"

#include <sys/utsname.h>

#include <cstdio>
#include <cstring>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/files/proc_stat.hpp"
#include "runtime_hooks/core/files/small_file.hpp"
#include "runtime_hooks/ledger/write/proc_folder.hpp"

namespace cuwarden::ledger {

LedgerName ledger_name(std::int32_t pid) noexcept {
  const ErrnoGuard guard;
  const ProcFolder folder(pid);
  char text[1024];
  const ProcStat stat = proc_stat_in(read_small_file(folder.file("stat").text, text));
  utsname system{};
  if (uname(&system) != 0 || system.nodename[0] == '\0') std::strcpy(system.nodename, "localhost");
  for (char* c = system.nodename; *c != '\0'; ++c) {
    if (*c == '/' || static_cast<unsigned char>(*c) <= ' ') *c = '_';
  }
  LedgerName name{};
  std::snprintf(
      name.text, sizeof name.text, "cuwarden-ledger-%s-%llu-%d", system.nodename,
      static_cast<unsigned long long>(time_ns_of(CLOCK_REALTIME) - age_ns(stat.start_ticks)),
      folder.pid());
  return name;
}

}  // namespace cuwarden::ledger
