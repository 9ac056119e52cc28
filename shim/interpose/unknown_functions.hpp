// Entries for functions of the driver that cuwarden does not know (unknown_calls.hpp). A look-up
// gives the program such an entry instead of the function. The entry needs no signature: it notes
// the call, and jumps to the function with all arguments in their registers.
#pragma once

namespace cuwarden::shim {

// Returns what a look-up gives to the program for the function `found` of libcuda, which has no
// hook: an entry if cuwarden does not know the function, and `found` itself otherwise. `name`: name
// by which the program has asked. Names that are no CUDA functions ("cudbgApiInit") get no entry.
// Equal functions get equal entries. Once all entries are used, counts the look-up as a call, and
// returns `found`.
void* entry_if_unknown(void* found, const char* name);

// Notes a call, as an entry would, if libcuda has a function of this name that cuwarden does not
// know. For look-ups whose answer cannot be replaced.
void note_if_unknown(const char* name);

// True if a loaded object is linked with a function of libcuda that cuwarden does not know, so that
// its calls pass no entry. Notes the call.
bool is_linked_with_unknown();

}  // namespace cuwarden::shim
