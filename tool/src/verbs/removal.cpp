#include "verbs/removal.hpp"

#include "context.hpp"

namespace warmgraph::tool {

std::string text_of(const store::Removal& removal)
{
    std::string others =
        removal.tuned.files > 0 ? ", " + plural(removal.tuned.files, "tuned configuration") : std::string{};
    if (removal.compiled.files > 0) others += ", " + plural(removal.compiled.files, "compiled program");
    if (removal.profiles.files > 0) others += ", " + plural(removal.profiles.files, "shape profile");
    if (removal.torch.files > 0) others += fmt::format(", {} of PyTorch", plural(removal.torch.files, "artifact"));
    return fmt::format("{}, {}, {}{} ({})", plural(removal.entries.files, "entry"),
                       plural(removal.images.files, "image"), plural(removal.quarantined.files, "quarantined file"),
                       others, size_text(removal.bytes()));
}

} // namespace warmgraph::tool
