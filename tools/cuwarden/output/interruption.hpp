// Lets a signal such as that of Ctrl-C end the command without a trace of unfinished work.
#pragma once

namespace cuwarden {

// Makes SIGINT, SIGTERM, SIGHUP and SIGQUIT remove unfinished files (unfinished_files.hpp) and the
// line of progress before they end the command. The command still ends by the signal, so that its
// parent sees the signal in the wait status. A signal that is ignored or has another handler stays
// as it is. Programs that the command starts do not inherit this.
void clean_up_when_interrupted();

}  // namespace cuwarden
