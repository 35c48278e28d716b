// Facts as one text. They are sorted and joined natively, because a model has hundreds of them.
#pragma once

#include <string_view>

#include "api.hpp"

namespace warmgraph::python {

/// Returns a text with a line for each fact of a dict of texts whose name is in `known` or begins with the given text:
/// the name, a tab and the value, in the order of the names' bytes. The other facts go into the dict `apart`. The text
/// is empty if there are no facts, or if it could not be read back: a value has a line end, or a name has a line end or
/// a tab. Throws Raised.
[[nodiscard]] Ref fact_list(const Api& python, Object* facts, Object* known, std::string_view beginning, Object* apart);

} // namespace warmgraph::python
