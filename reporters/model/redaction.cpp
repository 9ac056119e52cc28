#include "reporters/model/redaction.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "reporters/model/types.hpp"
#include "reporters/words/paths.hpp"
#include "reporters/words/process_words.hpp"
#include "reporters/words/replace_all.hpp"
#include "runtime_hooks/core/function_ref.hpp"

namespace cuwarden {
namespace {

using model::AnyValue;
using model::TypeKind;

constexpr std::string_view unnamed_path = "(path)";

bool is_word(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || static_cast<unsigned char>(letter) >= 0x80;
}
bool ends_path(char letter) {
  return std::string_view(" \t\n\"'`()<>[]{},;|=").find(letter) != std::string_view::npos;
}

// Replaces a word at each position where no letter or digit stands before or behind it.
void replace_word(std::string& text, std::string_view word, std::string_view by) {
  for (std::size_t at = text.find(word); at != text.npos;) {
    const std::size_t end = at + word.size();
    const bool whole =
        (at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]));
    if (whole) text.replace(at, word.size(), by);
    at = text.find(word, at + (whole ? by.size() : 1));
  }
}

// Calls visit(text, in_sentence) for each text of a value. A text is in a sentence if it lies in a
// field of a certain name. `in_sentence`: true if the value lies in such a field.
void each_text(AnyValue value, bool in_sentence,
               FunctionRef<void(const std::string& text, bool in_sentence)> visit) {
  switch (value.kind()) {
    case TypeKind::text:
      return visit(value.as<std::string>(), in_sentence);
    case TypeKind::proof:
      for (const auto& [name, figure] : value.as<model::Proof>())
        if (const auto* const text = std::get_if<std::string>(&figure)) visit(*text, in_sentence);
      return;
    case TypeKind::optional:
    case TypeKind::list:
      return value.each_element([&](AnyValue each) { each_text(each, in_sentence, visit); });
    case TypeKind::object:
      return value.each_field([&](const model::Field& field, AnyValue each) {
        constexpr std::string_view sentences[] = {"reasons", "advice",  "value",
                                                  "where",   "library", "reclaimer"};
        each_text(each, in_sentence || std::ranges::count(sentences, field.name) != 0, visit);
      });
    default:
      return;
  }
}

// Calls visit(field, value) for each row of the report's tables and for each of its other fields,
// with the field of the report. Calls done() after each row.
void each_part(AnyValue report, FunctionRef<void(const model::Field&, AnyValue)> visit,
               RowDone done) {
  report.each_field([&](const model::Field& field, AnyValue part) {
    if (part.kind() != TypeKind::list) return visit(field, part);
    part.each_element([&](AnyValue row) {
      visit(field, row);
      done();
    });
  });
}

class Redaction {
 public:
  // Finds the names to take out, which takes one pass over the report's rows. `done`: is called for
  // each row.
  explicit Redaction(
      const model::Report& report, RowDone done = [] {}) {
    add_file(report.process.program);
    for (const model::Module& module : report.modules) add_file(module.path);
    for (const model::Frame& frame : report.frames) add_file(frame.file);
    add_name(report.process.host.value_or(""), "host");
    for (const model::DeviceProcess& other : report.device_processes) add_process(other);
    each_part(
        AnyValue::of(report),
        [this](const model::Field&, AnyValue value) {
          each_text(value, false, [this](const std::string& text, bool) { add_user(text); });
        },
        done);
  }

  // Redacts a field that is one path.
  void path(std::string& value) const { value = without_names(std::string(file_name(value))); }
  void path(model::Text& value) const {
    if (value) path(*value);
  }
  // Redacts a sentence, or another text with paths in it. Names of people and hosts are replaced
  // only in sentences: elsewhere they may be a part of the schema, or of the program.
  void text(std::string& value, bool is_sentence) const {
    // Libraries that reports name. People and hosts may have the same names.
    constexpr std::string_view libraries[] = {"CUDA", "Python", "system libraries"};
    if (std::ranges::count(libraries, value) != 0) return;
    if (is_sentence)
      for (const auto& [words, by] : processes_) replace_all(value, words, by);
    if (value.find('/') != value.npos) {
      for (auto file = files_.rbegin(); file != files_.rend(); ++file)
        replace_all(value, file->second, std::string(file_name(file->second)));
      value = without_folders(value);
    }
    if (is_sentence) value = without_names(std::move(value));
  }

 private:
  void add_file(const model::Text& path) {
    if (path && path->find('/') != path->npos) files_.emplace(path->size(), *path);
  }
  void add_name(const std::string& name, const char* by) {
    if (!name.empty()) names_.emplace(name, by);
  }
  // Keeps only the pids of other processes. A parent's user is not known.
  void add_process(const model::DeviceProcess& other) {
    add_words(other.pid, other.program, other.user);
    add_words(other.parent, other.parent_program, {});
  }
  void add_words(model::Figure pid, const model::Text& program, const model::Text& user) {
    if (pid)
      processes_.emplace(process_words(*pid, program.value_or(""), user.value_or("")),
                         "pid " + std::to_string(*pid));
  }
  void add_user(const std::string& text) {
    for (const std::string_view homes : {"/home/", "/Users/", "/users/"}) {
      const std::size_t at = text.find(homes);
      if (at == text.npos) continue;
      const std::size_t start = at + homes.size();
      add_name(text.substr(start, text.find_first_of("/ \t:'\"", start) - start), "user");
    }
  }

  std::string without_names(std::string text) const {
    for (const auto& [name, by] : names_) replace_word(text, name, by);
    return text;
  }

  // Replaces each path by its last part, if that looks like a file's name, or by "(path)".
  static std::string without_folders(std::string_view text) {
    std::string result;
    for (std::size_t at = 0; at < text.size();) {
      std::size_t end = at;
      while (end < text.size() && !ends_path(text[end])) ++end;
      if (end == at) {
        result += text[at++];
        continue;
      }
      const std::string_view word = text.substr(at, end - at);
      const bool is_path = word.find('/') != word.npos && word.size() > 1 &&
                           word.find_first_not_of('/') != word.npos &&
                           !word.starts_with("operator/");
      const std::string_view name = file_name(word);
      if (!is_path)
        result += word;
      else
        result += name.find('.') == name.npos ? unnamed_path : name;
      at = end;
    }
    return result;
  }

  // By length, because one path may be the beginning of another one.
  std::set<std::pair<std::size_t, std::string>> files_;
  std::map<std::string, const char*> names_;
  // Words for other processes in sentences, and the words by which they are replaced.
  std::map<std::string, std::string> processes_;
};

// Returns the number of rows in all tables of the report.
std::size_t rows_of(const model::Report& report) {
  std::size_t rows = 0;
  AnyValue::of(report).each_field([&](const model::Field&, AnyValue part) {
    if (part.kind() == TypeKind::list) rows += part.count();
  });
  return rows;
}

}  // namespace

std::string redacted_text(const model::Report& report, std::string text) {
  Redaction(report).text(text, true);
  return text;
}

std::string redact(model::Report& report, std::string text, Told told) {
  constexpr std::size_t passes = 2;  // one finds names, and one takes them out
  RowProgress done(rows_of(report), passes, told);
  const Redaction redaction(report, done);
  redaction.text(text, true);
  redaction.path(report.process.program);
  report.process.command_line.clear();
  report.process.host.reset();
  report.environment.clear();
  // A job's number may name its cluster, and a device's its machine.
  report.job.job_id.reset();
  report.job.visible_devices.reset();
  for (model::Device& device : report.devices) device.uuid.reset();
  for (model::DeviceProcess& other : report.device_processes) {
    for (model::Text* const fact :
         {&other.program, &other.parent_program, &other.user, &other.start, &other.job,
          &other.container, &other.pod, &other.unit})
      fact->reset();
  }
  for (model::Module& module : report.modules) redaction.path(module.path);
  for (model::Frame& frame : report.frames) redaction.path(frame.file);
  each_part(
      AnyValue::of(report),
      [&](const model::Field& field, AnyValue value) {
        if (field.name == "schema" || field.name == "modules") return;
        each_text(value, false, [&](const std::string& part, bool is_sentence) {
          // The report may be changed.
          redaction.text(const_cast<std::string&>(part), is_sentence);
        });
      },
      done);
  if (report.memory_cgroup && report.memory_cgroup->path) report.memory_cgroup->path = "/";
  report.redacted = true;
  return text;
}

}  // namespace cuwarden
