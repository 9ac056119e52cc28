#include "runtime_hooks/pool/packing/stretch_nodes.hpp"

namespace cuwarden::pool {

void StretchNodes::reserve(std::uint64_t count) {
  while (unused_count_ < count) {
    chunks_.reserve(chunks_.size() + 1);
    chunks_.push_back(std::make_unique<Stretch[]>(chunk));
    const auto first = static_cast<StretchIndex>((chunks_.size() - 1) * chunk);
    // Number 0 means no stretch.
    for (std::uint64_t i = chunk; i-- > (first == 0 ? 1 : 0);)
      drop(first + static_cast<StretchIndex>(i));
  }
}

StretchIndex StretchNodes::add() noexcept {
  const StretchIndex made = unused_;
  unused_ = (*this)[made].after;
  --unused_count_;
  (*this)[made] = {};
  return made;
}

void StretchNodes::drop(StretchIndex dropped) noexcept {
  (*this)[dropped] = {};
  (*this)[dropped].after = unused_;
  unused_ = dropped;
  ++unused_count_;
}

}  // namespace cuwarden::pool
