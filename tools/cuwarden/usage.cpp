#include "tools/cuwarden/usage.hpp"

#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>

#include "reporters/comparison/gate.hpp"
#include "reporters/words/quantities.hpp"

namespace cuwarden {
namespace {

class UsageFormatter : public CLI::Formatter {
 public:
  explicit UsageFormatter(std::string usage) : usage_(std::move(usage)) { column_width(26); }
  std::string make_usage(const CLI::App*, std::string) const override {
    return "Usage: cuwarden " + usage_ + "\n";
  }
  // CLI11 writes the value that an option has without one in braces.
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    const std::string name = CLI::Formatter::make_option_name(option, is_positional);
    return name.substr(0, name.find('{'));
  }

 private:
  std::string usage_;
};

// Returns the option of a CLI11 message: "--by" from "--by: 1 required TEXT missing".
std::string option_in(const std::string& message) {
  const std::size_t start = message.find("--");
  if (start == message.npos) return {};
  return message.substr(start, message.find_first_of(": =,", start) - start);
}

std::string unexpected(const CLI::App& app) {
  const auto words = app.remaining(true);
  if (words.empty()) return "the command line has too many words";
  const std::string& word = words.front();
  return (word.starts_with('-') ? "there is no option " : "unexpected word: ") + word;
}

}  // namespace

void set_usage(CLI::App& app, const std::string& usage) {
  app.formatter(std::make_shared<UsageFormatter>(usage));
}

std::string usage_line(const CLI::ParseError& error, const CLI::App& app, const std::string& verb) {
  const std::string message = error.what();
  std::string text;
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    text = unexpected(app);
  } else if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const std::string option = option_in(message);
    const bool repeated = message.find("received") != message.npos;
    text = option.empty() ? message : option + (repeated ? " is given twice" : " needs a value");
  } else {
    text = message;
  }
  std::replace(text.begin(), text.end(), '\n', ' ');
  return verb + ": " + text + "; see cuwarden " + verb + " --help";
}

std::uint64_t size_value(const char* option, const std::string& text) {
  const auto size = parse_size(text);
  if (!size) {
    throw CLI::ValidationError(std::string(option) +
                               " takes a size such as 4096, 64MiB or 1.5GB, not '" + text + "'");
  }
  return *size;
}

std::uint64_t count_value(const char* option, const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw CLI::ValidationError(std::string(option) + " takes a whole number, not '" + text + "'");
  }
  return value;
}

std::string numbered_failing_leaks(std::string& text) {
  FailingLeaks leaks = FailingLeaks::all;
  if (text == "lost")
    leaks = FailingLeaks::lost;
  else if (text != "all")
    return "takes lost or all, not '" + text + "'";
  text = std::to_string(static_cast<int>(leaks));
  return {};
}

}  // namespace cuwarden
