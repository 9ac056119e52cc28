#include "reporters/json/report_head.hpp"

#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "reporters/words/wall_clock.hpp"

namespace cuwarden {
namespace {

// Stops the parser as soon as the head is known, or cannot become known any more.
class HeadParser : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool done() const { return is_ours_ && has_end_; }
  ReportHead take() { return std::move(head_); }

  bool null() override {
    if (is_field("end_reason")) has_end_ = true;
    return !done();
  }
  bool boolean(bool value) override {
    if (in_names_ && depth_ == 2 && key_ == "complete") head_.has_all_names = value;
    return true;
  }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t value) override {
    if (is_field("pid")) head_.pid = value;
    if (is_field("end_ns")) head_.end_ns = value;
    return true;
  }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t& text) override {
    if (depth_ == 1 && key_ == "schema") {
      is_ours_ = text == "cuwarden.report/1";
      return is_ours_ && !done();
    }
    if (is_field("program")) {
      head_.program = std::move(text);
    } else if (is_field("host")) {
      head_.host = std::move(text);
    } else if (is_field("start")) {
      head_.start = std::move(text);
    } else if (is_field("end_reason")) {
      head_.running = text == "running";
      has_end_ = true;
    }
    return !done();
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_array() override { return leave(); }
  bool key(string_t& name) override {
    if (depth_ <= 2) key_ = std::move(name);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override {
    return false;
  }

 private:
  bool is_field(const char* name) const { return in_process_ && depth_ == 2 && key_ == name; }
  bool enter() {
    if (depth_ == 1) {
      in_process_ = key_ == "process";
      in_names_ = key_ == "names";
    }
    ++depth_;
    return true;
  }
  bool leave() {
    --depth_;
    return true;
  }

  ReportHead head_;
  std::string key_;  // key that was read last, in the report or in one of its objects
  int depth_ = 0;    // nesting depth; 1: directly in the report
  bool is_ours_ = false, in_process_ = false, in_names_ = false, has_end_ = false;
};

}  // namespace

std::optional<std::int64_t> end_realtime_ns(const ReportHead& head) {
  constexpr std::uint64_t longest_ns = std::uint64_t{1} << 60;  // 36 years
  const std::optional<std::int64_t> start = parse_iso_8601(head.start);
  if (!start || head.end_ns > longest_ns) return std::nullopt;
  return *start + static_cast<std::int64_t>(head.end_ns);
}

std::optional<ReportHead> read_report_head(std::string_view text) {
  if (text.empty() || text.front() != '{') return std::nullopt;
  HeadParser parser;
  nlohmann::json::sax_parse(text, &parser);
  return parser.done() ? std::optional(parser.take()) : std::nullopt;
}

std::optional<ReportHead> read_report_head(int descriptor) {
  // The longer read is needed only if the command line or paths are long.
  constexpr std::size_t usual_bytes = 4 << 10, most_bytes = 256 << 10;
  std::string text;
  for (const std::size_t wanted : {usual_bytes, most_bytes}) {
    std::size_t length = text.size();
    text.resize(wanted);
    while (length < wanted) {
      const ssize_t got =
          pread(descriptor, text.data() + length, wanted - length, static_cast<off_t>(length));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      length += static_cast<std::size_t>(got);
    }
    text.resize(length);
    if (auto head = read_report_head(std::string_view(text))) return head;
    if (length < wanted) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace cuwarden
