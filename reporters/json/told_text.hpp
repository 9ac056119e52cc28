// A text that reports how much of it a parser has read.
#pragma once

#include <cstddef>
#include <iterator>
#include <string_view>

#include "runtime_hooks/core/function_ref.hpp"

namespace cuwarden {

// A text for a parser that takes a pair of iterators. Calls read(bytes) whenever the parser has
// read a further MiB; `bytes` counts from the start of the text. The text and the callable must
// outlive the object.
class ToldText {
 public:
  // A position in the text. Each step forward counts as reading a byte.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;

    // Makes the position of the byte to which `at` points.
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
    // Number of bytes that the parser reads from one call of the ToldText's callable to the next.
    static constexpr std::ptrdiff_t step = std::ptrdiff_t{1} << 20;
    // Calls the ToldText's callable with the number of bytes before the iterator's position.
    void tell() {
      text_->read_(static_cast<std::size_t>(at_ - text_->text_.data()));
      next_ = at_ + step;
    }

    const ToldText* text_;  // text in which the iterator moves; not owned
    const char* at_;        // points to the byte of the text at the iterator's position
    const char* next_;      // points to the byte of the text at which tell() is called next
  };

  // Refers to the text and to the callable, which are not copied.
  ToldText(std::string_view text, FunctionRef<void(std::size_t bytes)> read)
      : text_(text), read_(read) {}

  Iterator begin() const { return {*this, text_.data()}; }
  Iterator end() const { return {*this, text_.data() + text_.size()}; }

 private:
  std::string_view text_;                      // text that the parser reads; not owned
  FunctionRef<void(std::size_t bytes)> read_;  // gets the number of bytes that were read so far
};

}  // namespace cuwarden
