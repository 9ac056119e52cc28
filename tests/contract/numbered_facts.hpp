// Programs that check facts and whose exit status is the number of the fact that does not hold.
#pragma once

#include <unistd.h>

// Ends the process with the exit status `fact` if `holds` is false. `fact`: the number of the fact
// that must hold, from 1.
inline void require(bool holds, int fact) {
  if (!holds) _exit(fact);
}
