// A stack of known size, however small the one is that the process was given (ulimit -s).
#pragma once

namespace cuwarden {

// Calls `work` and returns its result. Where the process may have less than a megabyte of stack,
// the work is done on one of eight megabytes. The limit itself stays, for the programs that are
// started.
int with_enough_stack(int (*work)(int, char**), int count, char** arguments);

}  // namespace cuwarden
