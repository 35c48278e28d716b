#include "verbs/removal.hpp"

#include "context.hpp"

namespace warmgraph::tool {

std::string text_of(const store::Removal& removal)
{
    std::string others;
    for (const store::ArtifactKind kind : store::kinds_with_files())
        if (const std::uint64_t files = removal.of(kind).files; files > 0)
            others += ", " + plural(files, store::row_of(kind).noun);
    return fmt::format("{}, {}, {}{} ({})", plural(removal.of(store::ArtifactKind::entries).files, "entry"),
                       plural(removal.of(store::ArtifactKind::images).files, "image"),
                       plural(removal.quarantined.files, "quarantined file"), others, size_text(removal.bytes()));
}

} // namespace warmgraph::tool
