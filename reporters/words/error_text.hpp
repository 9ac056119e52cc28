// Texts for the errors that a user can act on. strerror() is not used: it allocates inside libc for
// translated texts, and a report is written while the process is already ending.
#pragma once

namespace cuwarden {

// Returns a text for an errno, such as "no space left on the file system"; "the system refused" for
// an errno without a text. The text is a literal, which is never freed.
const char* error_text(int error) noexcept;

}  // namespace cuwarden
