// Chooses the frame of a call stack that a person would name for an allocation.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "reporters/owners/named_frame.hpp"

namespace cuwarden {

// Returns the index of the frame that a person would name for the call. It is the innermost frame
// of the program's own code (NamedFrame::library is empty) of which more than the address is known.
// If there is no such frame, returns that of an operation in a backward pass of PyTorch; failing
// that, the innermost frame outside CUDA's libraries. Null: all frames are CUDA's, or there is no
// frame. `frames`: a call stack, innermost first.
std::optional<std::size_t> users_frame(std::span<const NamedFrame> frames);

// Returns location_text() of the frame that users_frame() chooses; null if it chooses none.
std::optional<std::string> users_location(std::span<const NamedFrame> frames);

// Returns words for the location of the frame: "/home/u/train.py:41 in step". If the source file is
// unknown: "step in libtrain.so", or "step" without a module. If the function is unknown, too:
// "libtrain.so+0x1f20", or "code at 0x7f1240001f20" without a module.
std::string location_text(const NamedFrame&);
// Returns location_text() without the folder of the source file: "train.py:41 in step".
std::string short_location_text(NamedFrame);

}  // namespace cuwarden
