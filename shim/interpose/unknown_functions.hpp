// Entries for functions of the driver that cuwarden does not know (unknown_calls.hpp). A look-up
// gives the program such an entry instead of the function. The entry needs no signature: it notes
// the call, and jumps to the function with all arguments in their registers.
#pragma once

namespace cuwarden::shim {

// Returns the address that a look-up must give to the program for `found`, a function of libcuda
// that has no hook. If cuwarden knows the function, that is `found` itself. Otherwise it is an
// entry: code of the shim that notes each call and then jumps to `found`. `name`: name by which the
// program has looked the function up. Names that are no CUDA functions' ("cudbgApiInit") get no
// entry. Each function gets one entry, however often it is looked up. If all entries are used,
// notes a call at once, and returns `found`.
void* entry_if_unknown(void* found, const char* name);

// If libcuda exports a function `name` that cuwarden does not know, notes a call of such a function
// (driver::note_unknown_call()); the note does not tell the name. Does nothing while no libcuda is
// loaded. For look-ups that give the program the function itself, so that its calls cannot be
// noticed.
void note_if_unknown(const char* name);

// True if a loaded object is linked with a function of libcuda that cuwarden does not know. Its
// calls of the function cannot be noticed, so a call is noted at once
// (driver::note_unknown_call()).
bool is_linked_with_unknown();

}  // namespace cuwarden::shim
