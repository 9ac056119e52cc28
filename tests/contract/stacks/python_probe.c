/* Preloaded into Python: getppid() compares its caller's stack in all ways to walk it. At its end
   the process prints the counts, and fails if two stacks differed. */
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/contract/stacks/probe.hpp"

__attribute__((visibility("default"))) pid_t getppid(void) {
  compare_stacks();
  return (pid_t)syscall(SYS_getppid);
}

__attribute__((destructor)) static void say(void) {
  const struct StacksSeen seen = stacks_seen();
  if (seen.compared == 0) return;
  printf("%lu compared, %lu different, %lu recognised, %lu frames at most, %lu not expressible\n",
         (unsigned long)seen.compared, (unsigned long)seen.different,
         (unsigned long)seen.recognised, (unsigned long)seen.deepest,
         (unsigned long)seen.not_expressible);
  fflush(stdout);
  if (seen.different == 0) return;
  fputs(last_difference(), stdout);
  fflush(stdout);
  _exit(1);
}
