// A text that tells how far it was read.
#pragma once

#include <cstddef>
#include <iterator>
#include <string_view>

#include "runtime_hooks/core/function_ref.hpp"

namespace cuwarden {

// A text for a parser that takes a pair of iterators. It calls read(bytes) each time that a further
// MiB was read. The text and the callable must outlive the object.
class ToldText {
 public:
  // An offset in the text.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;

    Iterator(const ToldText& text, const char* at) : text_(&text), at_(at), next_(at + step) {}

    reference operator*() const { return *at_; }
    Iterator& operator++() {
      if (++at_ == next_) tell();
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    static constexpr std::ptrdiff_t step = std::ptrdiff_t{1} << 20;
    void tell() {
      text_->read_(static_cast<std::size_t>(at_ - text_->text_.data()));
      next_ = at_ + step;
    }

    const ToldText* text_;
    const char* at_;    // the next byte of the text
    const char* next_;  // the byte at which read() is called next
  };

  ToldText(std::string_view text, FunctionRef<void(std::size_t bytes)> read)
      : text_(text), read_(read) {}

  Iterator begin() const { return {*this, text_.data()}; }
  Iterator end() const { return {*this, text_.data() + text_.size()}; }

 private:
  std::string_view text_;
  FunctionRef<void(std::size_t bytes)> read_;
};

}  // namespace cuwarden
