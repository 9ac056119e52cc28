// Gives the command enough stack, even if the process was started with a small limit (ulimit -s).
#pragma once

namespace cuwarden {

// Calls work(count, arguments) and returns its result. `count` and `arguments`: those of main(). If
// the process's stack limit (ulimit -s) is below 1 MiB, calls work() on a new stack of 8 MiB, if
// there is memory for one. Threads that are made later then get stacks of 8 MiB, too. The limit
// itself stays as it is, because programs that the command starts inherit it.
int with_enough_stack(int (*work)(int, char**), int count, char** arguments);

}  // namespace cuwarden
