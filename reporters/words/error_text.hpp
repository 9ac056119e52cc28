// Names for the errors that a user can act on. strerror() is left alone: it allocates inside libc
// for translated texts, and a report is written while the process is already ending.
#pragma once

namespace cuwarden {

// Returns libc's text for an errno, such as "No space left on device".
const char* error_text(int error) noexcept;

}  // namespace cuwarden
