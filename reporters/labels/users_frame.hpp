// Chooses the line of a call stack that a person would name for an allocation.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "reporters/owners/named_frame.hpp"

namespace cuwarden {

// Returns the index of the innermost frame of the program's own code (NamedFrame::library is
// empty), without frames of which only the address is known. If there is none, that of an operation
// of a backward pass of PyTorch; failing that, of the innermost frame outside CUDA's libraries.
// Null: there is none either. `frames`: a call stack, innermost first.
std::optional<std::size_t> users_frame(std::span<const NamedFrame> frames);

// Returns the frame that users_frame() chooses in one line (location_text()); null if there is
// none.
std::optional<std::string> users_location(std::span<const NamedFrame> frames);

// Returns the frame in one line: "/home/u/train.py:41 in step"; without a known source file "step
// in libtrain.so", or "libtrain.so+0x1f20".
std::string location_text(const NamedFrame&);
// Returns location_text() without the folder of the source file: "train.py:41 in step".
std::string short_location_text(NamedFrame);

}  // namespace cuwarden
