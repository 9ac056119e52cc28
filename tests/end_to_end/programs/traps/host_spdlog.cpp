// A program with a spdlog of its own, header-only like the shim's, and with exported symbols: its
// registry, its default logger and its level are its own. Logs to stdout, to the very end.
#include <cuda_runtime_api.h>
#include <spdlog/spdlog.h>

#include <cstdio>

namespace {

struct LogsAtTheEnd {
  LogsAtTheEnd() { spdlog::set_pattern("host [%l] %v"); }  // so the registry is destroyed after it
  ~LogsAtTheEnd() {
    spdlog::debug("destructor, level {}", static_cast<int>(spdlog::get_level()));
    spdlog::default_logger()->flush();
  }
} in_static_storage;

void say(const char* when) {
  spdlog::trace("never to be seen");
  spdlog::debug("{}: level {}, logger '{}' at {}", when, static_cast<int>(spdlog::get_level()),
                spdlog::default_logger()->name(),
                static_cast<int>(spdlog::default_logger()->level()));
  int loggers = 0;
  spdlog::apply_all([&](const std::shared_ptr<spdlog::logger>&) { ++loggers; });
  spdlog::info("{}: {} loggers, one of cuwarden's: {}", when, loggers,
               spdlog::get("cuwarden") != nullptr);
}

}  // namespace

int main() {
  spdlog::set_level(spdlog::level::debug);
  say("before");
  void* memory = nullptr;
  spdlog::info("cudaMalloc: {}", static_cast<int>(cudaMalloc(&memory, 1000)));
  say("after");
}
