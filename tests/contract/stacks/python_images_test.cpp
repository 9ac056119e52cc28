// The reading of Python frames in images of interpreters' memory, one of each version of CPython:
// also of versions that are not installed here, and with each byte damaged. image_writer.hpp
// describes the images, record_image.py makes them.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/personality.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "runtime_hooks/stacks/python/interpreter.hpp"
#include "runtime_hooks/stacks/python/object_fields.hpp"
#include "tests/contract/stacks/frames_text.hpp"

namespace cuwarden::stacks::python {
namespace {

std::uint64_t state_of_image = 0;
void* thread_state() { return reinterpret_cast<void*>(state_of_image); }
int is_initialized() { return 1; }

// An image whose memory is mapped at its own addresses.
class Image {
 public:
  explicit Image(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    while (std::getline(file, line)) {
      std::istringstream words(line);
      std::string word;
      words >> word;
      if (word == "frame") {
        frames_ += line.substr(word.size() + 1) + '\n';
        continue;
      }
      std::uint64_t value = 0;
      words >> std::hex >> value;
      if (word == "memory") {
        std::string digits;
        words >> digits;
        memory_[value] = digits;
      } else {
        numbers_[word] = value;
      }
    }
    is_mapped_ = std::ranges::all_of(
        memory_, [&](const auto& part) { return map(part.first, part.second.size() / 2); });
    if (is_mapped_) restore();
    state_of_image = numbers_["state"];
  }
  ~Image() {
    for (const std::uint64_t page : pages_) munmap(reinterpret_cast<void*>(page), page_bytes);
  }
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  // False if something else of this process lies at the image's addresses.
  bool is_mapped() const { return is_mapped_; }
  // Writes the memory as it was recorded, but for the thread's id, which becomes this thread's.
  void restore() {
    for (const auto& [address, digits] : memory_)
      for (std::size_t i = 0; i < digits.size() / 2; ++i)
        at_byte(address + i) =
            static_cast<std::uint8_t>(std::stoi(digits.substr(2 * i, 2), nullptr, 16));
    const std::uint64_t recorded = numbers_["thread"], mine = pthread_self();
    const std::uint64_t state = numbers_["state"];
    for (std::uint64_t i = 0; i + 8 <= memory_[state].size() / 2; i += 8)
      if (at<std::uint64_t>(state + i) == recorded)
        std::memcpy(&at_byte(state + i), &mine, sizeof mine);
  }
  static std::uint8_t& at_byte(std::uint64_t address) {
    return *reinterpret_cast<std::uint8_t*>(address);
  }

  PythonSymbols symbols() {
    version_ = static_cast<unsigned long>(version()) << 16;
    const auto pointer = [&](const char* name) {
      return reinterpret_cast<const void*>(numbers_[name]);
    };
    PythonSymbols symbols;
    symbols.thread_state = thread_state;
    symbols.is_initialized = is_initialized;
    symbols.code_type = pointer("code_type");
    symbols.text_type = pointer("text_type");
    symbols.bytes_type = pointer("bytes_type");
    symbols.runtime = pointer("runtime");
    if (version() >= 0x030b) symbols.version = &version_;
    symbols.has_iterator_send = version() >= 0x030a;
    symbols.has_add_type = true;
    return symbols;
  }
  std::uint32_t version() { return static_cast<std::uint32_t>(numbers_["version"]); }
  // The frames that Python itself named, a line for each, innermost first.
  const std::string& frames() const { return frames_; }
  // The recorded memory: digits by address, two for each byte.
  const std::map<std::uint64_t, std::string>& memory() const { return memory_; }

 private:
  static constexpr std::uint64_t page_bytes = 4096;

  bool map(std::uint64_t address, std::uint64_t bytes) {
    for (std::uint64_t page = address & ~(page_bytes - 1); page < address + bytes;
         page += page_bytes) {
      if (std::ranges::find(pages_, page) != pages_.end()) continue;
      void* const wanted = reinterpret_cast<void*>(page);
      if (mmap(wanted, page_bytes, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != wanted)
        return false;
      pages_.push_back(page);
    }
    return true;
  }

  std::map<std::string, std::uint64_t> numbers_;
  std::map<std::uint64_t, std::string> memory_;
  std::string frames_;
  std::vector<std::uint64_t> pages_;
  unsigned long version_ = 0;
  bool is_mapped_ = false;
};

class PythonImages : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (image_.is_mapped()) return;
    // Images were recorded without randomised addresses, which such a process needs itself.
    constexpr unsigned long ask = 0xffffffff;
    const bool is_randomised = (personality(ask) & ADDR_NO_RANDOMIZE) == 0;
    ASSERT_FALSE(is_randomised) << "other memory lies at the image's addresses";
    GTEST_SKIP() << "addresses are not randomised";
  }
  // Reads all frames as a new interpreter, which believes nothing yet. Returns a line for each, as
  // Image::frames() has them; nothing if they cannot be read.
  std::string read() {
    const PythonSymbols symbols = image_.symbols();
    const Layout* const layout = layout_of(symbols);
    if (layout == nullptr) return {};
    Interpreter interpreter(symbols, *layout);
    const std::uint64_t state = interpreter.state_of_thread();
    if (state == 0 || !interpreter.read(state, *chain_)) return {};
    is_recognised_ = interpreter.has_frames(state, {chain_->frames, chain_->count});
    return test::text_of_frames(interpreter, *chain_, &files_).value_or("");
  }

  Image image_{std::string(CUWARDEN_TEST_IMAGES) + "/cpython-" + GetParam() + ".txt"};
  const std::unique_ptr<FrameChain> chain_ = std::make_unique<FrameChain>();
  std::string files_;
  bool is_recognised_ = false;
};

TEST_P(PythonImages, give_the_frames_that_python_named) {
  ASSERT_NE(image_.frames(), "");
  EXPECT_EQ(read(), image_.frames());
  EXPECT_NE(files_.find("record_image.py\n"), std::string::npos) << files_;
  EXPECT_NE(files_.find("call_ways.py\n"), std::string::npos) << files_;
  EXPECT_TRUE(is_recognised_);
  // C code called Python code at least twice: generated() by list(), and the lambda by qsort().
  EXPECT_GE(chain_->groups, 3u);
}

TEST_P(PythonImages, are_not_read_if_the_interpreter_describes_itself_otherwise) {
  if (image_.version() < 0x030d) GTEST_SKIP() << "this version does not describe itself";
  const auto runtime = reinterpret_cast<std::uint64_t>(image_.symbols().runtime);
  constexpr std::uint64_t free_threaded = 16;
  Image::at_byte(runtime + free_threaded) = 1;
  EXPECT_EQ(layout_of(image_.symbols()), nullptr) << "a build without a global lock";
  image_.restore();
  Image::at_byte(runtime) = 'X';
  EXPECT_EQ(layout_of(image_.symbols()), nullptr) << "no description";
  image_.restore();
  // Each position of a field that the reading uses is described; most others do not matter.
  std::size_t refused = 0;
  for (std::uint64_t i = 24; i < 648; i += 8) {
    Image::at_byte(runtime + i) ^= 8;
    refused += layout_of(image_.symbols()) == nullptr ? 1 : 0;
    Image::at_byte(runtime + i) ^= 8;
  }
  EXPECT_EQ(refused, 12u);
  EXPECT_NE(layout_of(image_.symbols()), nullptr);
}

TEST_P(PythonImages, with_a_damaged_byte_give_frames_or_none_and_never_a_fault) {
  std::size_t same = 0, other = 0, none = 0;
  for (const auto& [address, digits] : image_.memory()) {
    for (std::uint64_t i = 0; i < digits.size() / 2; ++i) {
      std::uint8_t& byte = Image::at_byte(address + i);
      byte ^= 0xff;
      const std::string frames = read();
      byte ^= 0xff;
      ++(frames == image_.frames() ? same : frames.empty() ? none : other);
    }
  }
  EXPECT_GT(same, 0u);
  EXPECT_GT(other, 0u);
  EXPECT_GT(none, 0u);
  EXPECT_EQ(read(), image_.frames());
}

TEST_P(PythonImages, with_frames_that_go_in_circles_end_somewhere) {
  ASSERT_EQ(read(), image_.frames());
  const Layout* const layout = layout_of(image_.symbols());
  for (const auto& [address, digits] : image_.memory()) {
    // Each part that is as long as a frame is one.
    constexpr std::size_t frame_digits = 2 * 112;
    if (digits.size() != frame_digits) continue;
    std::memcpy(&Image::at_byte(address + layout->frame_previous), &address, sizeof address);
    read();
    EXPECT_LE(chain_->count, FrameChain::most_frames);
    image_.restore();
  }
  EXPECT_EQ(read(), image_.frames());
}

TEST_P(PythonImages, are_recognised_by_all_frames_and_all_that_a_report_says_of_them) {
  const PythonSymbols symbols = image_.symbols();
  const Layout& layout = *layout_of(symbols);
  Interpreter interpreter(symbols, layout);
  const std::uint64_t state = interpreter.state_of_thread();
  EXPECT_FALSE(interpreter.has_frames(state, {chain_->frames, 1})) << "nothing was read yet";
  ASSERT_TRUE(interpreter.read(state, *chain_));
  const std::vector<PythonFrame> known(chain_->frames, chain_->frames + chain_->count);
  ASSERT_TRUE(interpreter.has_frames(state, known));
  EXPECT_FALSE(interpreter.has_frames(state, {known.data(), known.size() - 1}));
  std::vector<PythonFrame> changed = known;
  changed.push_back(known.back());
  EXPECT_FALSE(interpreter.has_frames(state, changed));
  for (std::size_t i = 0; i < known.size(); ++i)
    for (std::uint64_t PythonFrame::*part :
         {&PythonFrame::code, &PythonFrame::position, &PythonFrame::stamp}) {
      changed = known;
      changed[i].*part ^= 4;
      EXPECT_FALSE(interpreter.has_frames(state, changed)) << i;
    }
  const std::uint64_t code = known.front().code;
  Image::at_byte(code + layout.code_first_line) ^= 1;
  EXPECT_FALSE(interpreter.has_frames(state, known)) << "another first line";
  image_.restore();
  if (layout.code_version != Layout::none) return;
  const auto lines = at<std::uint64_t>(code + layout.code_lines);
  for (std::uint64_t i = 0; i < at<std::uint64_t>(lines + object_length); ++i) {
    Image::at_byte(lines + bytes_start + i) ^= 1;
    EXPECT_FALSE(interpreter.has_frames(state, known)) << "another table of lines, " << i;
    Image::at_byte(lines + bytes_start + i) ^= 1;
  }
  EXPECT_TRUE(interpreter.has_frames(state, known));
}

// Python 3.10 never sets the link of a thread's outermost CFrame.
TEST_P(PythonImages, are_read_whatever_the_link_of_the_outermost_cframe_is) {
  const Layout* const layout = layout_of(image_.symbols());
  if (layout == nullptr || !layout->has_cframes()) GTEST_SKIP() << "this version has no CFrames";
  std::uint64_t outermost = at<std::uint64_t>(state_of_image + layout->state_cframe);
  const auto link = [&] { return at<std::uint64_t>(outermost + layout->cframe_previous); };
  while (link() != 0) outermost = link();
  constexpr std::uint64_t nowhere = 0x1234567;
  std::memcpy(&Image::at_byte(outermost + layout->cframe_previous), &nowhere, sizeof nowhere);
  EXPECT_EQ(read(), image_.frames());
}

INSTANTIATE_TEST_SUITE_P(Versions, PythonImages,
                         testing::Values("3.9.18", "3.10.13", "3.11.7", "3.12.1", "3.13.0",
                                         "3.14.10"),
                         [](const auto& each) {
                           std::string name = each.param;
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace cuwarden::stacks::python
