// The one thread-local word of the hooked path.
#include "runtime_hooks/families/hooked_call.hpp"

namespace cuwarden::families {

constinit thread_local CallState call_state;

}  // namespace cuwarden::families
