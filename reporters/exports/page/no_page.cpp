// Stands in for the bundled page where nodejs and npm are missing.
#include "reporters/exports/page/page_template.hpp"

namespace cuwarden {

std::string_view page_template() { return {}; }

}  // namespace cuwarden
