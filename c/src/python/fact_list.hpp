// Facts of a walk as one text: sorted and joined natively, since a model has hundreds.
#pragma once

#include <string_view>

#include "api.hpp"

namespace warmgraph::python {

/// Of the facts (a dict of texts) whose name is in `known`, or begins so: a text with a line of each, its name, a tab and its
/// value, in the order of their names' bytes. The others go into the dict `apart`. An empty text where it would not be read
/// as these facts: a value has a line's end, a name that or a tab, or there are none. Throws Raised.
[[nodiscard]] Ref fact_list(const Api& python, Object* facts, Object* known, std::string_view beginning, Object* apart);

} // namespace warmgraph::python
