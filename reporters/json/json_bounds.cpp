#include "reporters/json/json_bounds.hpp"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "reporters/json/told_text.hpp"
#include "reporters/words/quantities.hpp"

namespace cuwarden {
namespace {

// A report has four levels: the report, a table, a row, the frames of a stack.
constexpr std::size_t most_levels = 16;
// A report has no lists in lists. A few of them in a damaged report are accepted here, because a
// later check names the field that they are in.
constexpr std::size_t most_lists_in_lists = 1000;
// Objects of a report have fewer than 100 properties. More would take long, since they are searched
// one after the other.
constexpr std::size_t most_properties = 1000;

// Bytes that parts of the parsed tree take, with the heap's own bytes.
constexpr std::uint64_t bytes_of_value =
    2 * sizeof(nlohmann::json);  // a list grows to twice its size
constexpr std::uint64_t bytes_of_text = 48, bytes_of_list = 40, bytes_of_object = 64;
constexpr std::uint64_t bytes_of_key = 96;

class Outline final : public nlohmann::json_sax<nlohmann::json> {
 public:
  Outline(std::size_t size, std::uint64_t most_memory) : size_(size), most_memory_(most_memory) {}
  WrongOutline take_wrong() { return std::move(wrong_); }
  RowsOfTables take_rows() { return std::move(rows_); }

  bool null() override { return add(bytes_of_value); }
  bool boolean(bool) override { return add(bytes_of_value); }
  bool number_integer(number_integer_t) override { return add(bytes_of_value); }
  bool number_unsigned(number_unsigned_t) override { return add(bytes_of_value); }
  bool number_float(number_float_t, const string_t&) override { return add(bytes_of_value); }
  bool binary(binary_t&) override { return add(bytes_of_value); }
  bool string(string_t& text) override {
    if (levels_.size() == 1 && is_schema_next_) is_of_cuwarden_ = text.starts_with("cuwarden.");
    return add(bytes_of_value + bytes_of_text + text.size());
  }
  bool key(string_t& text) override {
    if (++levels_.back().properties > most_properties)
      return wrong("one of its objects has too many properties");
    if (levels_.size() == 1) {
      rows_of_key_ = &rows_[text];
      is_schema_next_ = text == "schema";
    }
    return add(bytes_of_key + text.size());
  }
  bool start_object(std::size_t) override {
    if (levels_.size() == 2 && levels_.back().is_list) ++*rows_of_key_;
    return begin(false) && add(bytes_of_object);
  }
  bool start_array(std::size_t) override { return begin(true) && add(bytes_of_list); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }
  bool parse_error(std::size_t characters, const std::string&,
                   const nlohmann::json::exception&) override {
    // The parser counts the end of the text as a character.
    const bool is_at_end = characters > size_;
    if (!is_at_end) return wrong("not JSON");
    wrong_.is_cut_off = is_of_cuwarden_;
    const std::string end = human_count(size_) + (size_ == 1 ? " byte" : " bytes");
    return wrong(is_of_cuwarden_ ? "it is cut off after " + end
                                 : "not JSON (it breaks off after " + end + ")");
  }

 private:
  bool wrong(std::string reason) {
    wrong_.reason = std::move(reason);
    return false;
  }
  bool add(std::uint64_t bytes) {
    if (levels_.empty()) return wrong("not a cuwarden report (it is no JSON object)");
    memory_ += bytes;
    return memory_ <= most_memory_ ||
           wrong("reading it would take more than " + human_bytes(most_memory_) + " of memory");
  }
  bool begin(bool list) {
    if (list && levels_.empty()) return wrong("not a cuwarden report (it is no JSON object)");
    if (list && levels_.back().is_list && ++lists_in_lists_ > most_lists_in_lists)
      return wrong("it is made of lists in lists");
    if (levels_.size() == most_levels) return wrong("its values are nested too deep");
    levels_.push_back({list, 0});
    return true;
  }
  bool end() {
    levels_.pop_back();
    return true;
  }

  std::size_t size_;  // bytes of the whole text that is read
  std::uint64_t most_memory_, memory_ = 0;
  std::size_t lists_in_lists_ = 0;
  struct Level {
    bool is_list;
    std::size_t properties;  // properties that have been read
  };
  std::vector<Level> levels_;  // levels that are open
  RowsOfTables rows_;
  std::size_t* rows_of_key_ = nullptr;  // the number in rows_ for the property that is read
  bool is_schema_next_ = false;  // true if the last property of the outermost object is "schema"
  bool is_of_cuwarden_ = false;  // true once the text has named a schema of cuwarden's
  WrongOutline wrong_;
};

}  // namespace

WrongOutline wrong_outline(std::string_view text, std::uint64_t most_memory,
                           FunctionRef<void(std::size_t bytes)> read, RowsOfTables* rows) {
  Outline outline(text.size(), most_memory);
  const ToldText told(text, read);
  if (!nlohmann::json::sax_parse(told.begin(), told.end(), &outline)) return outline.take_wrong();
  if (rows != nullptr) *rows = outline.take_rows();
  return {};
}

}  // namespace cuwarden
