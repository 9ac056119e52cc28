// The program that `cuwarden run` starts, and the signals and stops that the two have in common.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace cuwarden {

// Starts `program` (a path) with the arguments `command`, of which the first is its name, and the
// environment `variables` ("NAME=value"). Waits for its end. The child is killed if this process
// dies before. A file without `#!` in an unknown format is given to /bin/sh, as shells do it.
//
// Until the end, this process has the signals and stops of the child:
// - a signal that is sent to this process is passed on, unless it was ignored at the start;
// - a signal from the terminal reaches the child directly;
// - if the child stops while this process's group has the terminal, this process stops, too.
//
// Returns 0, and sets the child's pid and wait status (as waitpid() gives it). Returns an errno if
// the child cannot be started or waited for. Sets SIGCHLD to its default action, which the child
// inherits. After the child's end, the terminal's signals act on this process by default again.
int run_child(const std::string& program, const std::vector<std::string>& command,
              std::vector<std::string> variables, pid_t& child, int& wait_status);

// Returns the exit status with which `cuwarden run` ends, as shells do it: that of the program, or
// 128 and the number of the signal that killed it. `wait_status`: wait status of the ended program.
int exit_status_of(int wait_status) noexcept;

}  // namespace cuwarden
