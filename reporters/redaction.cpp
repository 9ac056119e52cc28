#include "reporters/redaction.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace cuwarden {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view unnamed_path = "(path)";

std::string file_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}
bool is_word(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || static_cast<unsigned char>(letter) >= 0x80;
}
bool ends_path(char letter) {
  return std::string_view(" \t\n\"'`()<>[]{},;|=").find(letter) != std::string_view::npos;
}

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

// Where no letter or digit stands before or behind it.
void replace_word(std::string& text, std::string_view word, std::string_view by) {
  for (std::size_t at = text.find(word); at != text.npos;) {
    const std::size_t end = at + word.size();
    const bool whole =
        (at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]));
    if (whole) text.replace(at, word.size(), by);
    at = text.find(word, at + (whole ? by.size() : 1));
  }
}

class Redaction {
 public:
  explicit Redaction(const Json& report) {
    const Json& process = report.at("process");
    add_file(process.at("program"));
    for (const Json& module : report.at("modules")) add_file(module.at("path"));
    for (const Json& frame : report.at("frames")) add_file(frame.at("file"));
    if (process.at("host").is_string()) add_name(process.at("host").get<std::string>(), "host");
    add_users(report);
  }

  // A field that is one path.
  void path(Json& value) const {
    if (value.is_string()) value = without_names(file_name(value.get_ref<const std::string&>()));
  }
  // A sentence, or another text with paths in it. Names of people and hosts are replaced only in
  // sentences: elsewhere they may be a part of the schema, or of the program.
  void text(Json& value, bool is_sentence) const {
    if (!value.is_string()) return;
    std::string text = value.get<std::string>();
    if (text.find('/') != text.npos) {
      for (auto file = files_.rbegin(); file != files_.rend(); ++file)
        replace_all(text, file->second, file_name(file->second));
      text = without_folders(text);
    }
    value = is_sentence ? without_names(std::move(text)) : text;
  }
  void all_texts(Json& value, bool in_sentences) const {
    if (value.is_string()) return text(value, in_sentences);
    if (!value.is_structured()) return;
    for (auto& [key, inner] : value.items()) {
      static const std::set<std::string> sentences = {"reasons", "advice", "value", "reclaimer"};
      all_texts(inner, in_sentences || sentences.contains(key));
    }
  }

 private:
  void add_file(const Json& path) {
    if (!path.is_string()) return;
    const std::string& text = path.get_ref<const std::string&>();
    if (text.find('/') != text.npos) files_.emplace(text.size(), text);
  }
  void add_name(const std::string& name, const char* by) {
    if (!name.empty()) names_.emplace(name, by);
  }
  void add_users(const Json& value) {
    if (value.is_structured()) {
      for (const Json& inner : value) add_users(inner);
      return;
    }
    if (!value.is_string()) return;
    const std::string& text = value.get_ref<const std::string&>();
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

  // Of each path its last part, if that looks like a file's name.
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
      const std::string name = file_name(word);
      if (!is_path)
        result += word;
      else
        result += name.find('.') == name.npos ? std::string(unnamed_path) : name;
      at = end;
    }
    return result;
  }

  std::set<std::pair<std::size_t, std::string>> files_;  // by length: one may begin another one
  std::map<std::string, const char*> names_;
};

void set_if_there(Json& object, const char* name, const Json& value) {
  if (object.is_object() && object.contains(name)) object[name] = value;
}

}  // namespace

std::string redacted_text(const Json& report, const std::string& text) {
  Json value = text;
  Redaction(report).text(value, true);
  return value;
}

void redact(Json& report) {
  const Redaction redaction(report);
  Json& process = report["process"];
  redaction.path(process["program"]);
  process["command_line"] = Json::array();
  process["host"] = nullptr;
  if (report.contains("environment")) report["environment"] = Json::array();
  if (report.contains("memory_cgroup")) set_if_there(report["memory_cgroup"], "path", "/");
  // A job's number may name its cluster, and a device's its machine.
  set_if_there(report["job"], "job_id", nullptr);
  set_if_there(report["job"], "visible_devices", nullptr);
  for (Json& device : report["devices"]) set_if_there(device, "uuid", nullptr);
  if (report.contains("device_processes"))
    for (Json& other : report["device_processes"]) set_if_there(other, "program", nullptr);
  for (Json& module : report["modules"]) redaction.path(module["path"]);
  for (Json& frame : report["frames"]) redaction.path(frame["file"]);
  for (auto& [name, part] : report.items()) {
    if (name != "schema" && name != "modules" && name != "stacks" && name != "memory_cgroup")
      redaction.all_texts(part, false);
  }
  report["redacted"] = true;
}

}  // namespace cuwarden
