// No other file of the shim may include fmt or spdlog. FMT_HEADER_ONLY must be defined before the
// first header of fmt in a unit of files that are compiled together.
#define FMT_HEADER_ONLY
#include "shim/support/log.hpp"

#include <spdlog/details/null_mutex.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <new>
#include <string>

#include "reporters/words/printable.hpp"
#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/uncancelled.hpp"
#include "shim/support/message_output.hpp"

namespace cuwarden::shim {
namespace {

class MessageSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit MessageSink(const char* file) : output_(file) {}
  void complain_if_unusable() { output_.complain_if_unusable(); }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    output_.write({line.data(), line.size()});
  }
  void flush_() override {}

  MessageOutput output_;
};

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::off:
      return spdlog::level::off;
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::warn:
      return spdlog::level::warn;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::debug:
      return spdlog::level::debug;
  }
  return spdlog::level::warn;
}

// Storage of the logger, which is used after static destructors have run and so is never destroyed.
alignas(spdlog::logger) constinit unsigned char storage[sizeof(spdlog::logger)] = {};
constinit std::atomic<spdlog::logger*> logger{nullptr};

// Messages from before the settings are read, such as those of functions of cuwarden.h. The level
// and the target of CUWARDEN_LOG are not known yet. Messages that do not fit are lost.
constinit FutexLock early_lock;
constinit char early_lines[2048] = {};
constinit std::size_t early_bytes = 0;
// Pid of the process that kept the lines; a forked child drops its parent's.
constinit pid_t early_process = 0;

void keep_for_later(std::string_view line) {
  const Locked locked(early_lock);
  if (early_process != getpid()) early_bytes = 0;
  early_process = getpid();
  if (!locked || line.size() + 1 > sizeof early_lines - early_bytes) return;
  line.copy(early_lines + early_bytes, line.size());
  early_bytes += line.size();
  early_lines[early_bytes++] = '\n';
}

void log(spdlog::level::level_enum level, std::string_view line) noexcept {
  if (is_confined()) return;  // spdlog asks the kernel for the thread's id
  const ErrnoGuard keep;
  const Uncancelled whole;
  spdlog::logger* const present = logger.load(std::memory_order_acquire);
  if (present != nullptr && !present->should_log(level)) return;
  try {
    // The line has values of variables, names and paths. printable() keeps them from changing
    // the terminal, and from beginning a line that looks like another message.
    const std::string shown = printable(std::string(line));
    if (present != nullptr)
      present->log(level, spdlog::string_view_t(shown.data(), shown.size()));
    else if (level == spdlog::level::warn)
      keep_for_later(shown);
  } catch (...) {
    // Without memory to format it, the message is dropped.
    return;
  }
}

}  // namespace

std::string format_arguments(fmt::string_view format, fmt::format_args arguments) {
  return fmt::vformat(format, arguments);
}

void set_up_log(const Settings& settings) noexcept {
  const ErrnoGuard keep;
  logger.store(nullptr);  // a forked child may have inherited a logger, finished or not
  try {
    auto sink = std::make_shared<MessageSink>(settings.log.file);
    if (level_of(settings.log.level) <= spdlog::level::warn) sink->complain_if_unusable();
    sink->set_formatter(std::make_unique<spdlog::pattern_formatter>("cuwarden: %v"));
    auto* made = new (storage) spdlog::logger("cuwarden", std::move(sink));
    made->set_level(level_of(settings.log.level));
    made->set_error_handler([](const std::string&) {});
    logger.store(made, std::memory_order_release);
  } catch (...) {
    return;
  }
  char lines[sizeof early_lines];
  std::size_t bytes = 0;
  if (const Locked locked(early_lock); locked) {
    bytes = early_process == getpid() ? early_bytes : 0;
    std::string_view(early_lines, bytes).copy(lines, bytes);
    early_bytes = 0;
  }
  for (std::string_view rest(lines, bytes); !rest.empty(); rest.remove_prefix(rest.find('\n') + 1))
    log_warn(rest.substr(0, rest.find('\n')));
}

void log_error(std::string_view line) noexcept { log(spdlog::level::err, line); }
void log_warn(std::string_view line) noexcept { log(spdlog::level::warn, line); }
void log_info(std::string_view line) noexcept { log(spdlog::level::info, line); }
void log_debug(std::string_view line) noexcept { log(spdlog::level::debug, line); }

}  // namespace cuwarden::shim
