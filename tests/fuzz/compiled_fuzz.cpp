// Reads .compiled files, which any process or user may have written. Also searches the text of programs for headers.
#include "fuzz.hpp"
#include "include_scanner.hpp"
#include "warmgraph/precompile/compiled_program.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    using namespace warmgraph;
    const ByteView bytes{reinterpret_cast<const std::byte*>(data), size};
    for (const std::string& name : precompile::scan_includes(as_text(bytes)).names)
        fuzz::require(!name.empty() && name.size() < size, "a header's name is part of the text");
    const auto options = precompile::parse_options(as_text(bytes));
    fuzz::require(options.words.size() + options.folders.size() + options.files.size() <= size,
                  "words are part of the options");
    const auto program = precompile::decode(bytes);
    if (!program) {
        fuzz::require((program.error().code == ErrorCode::corrupt || program.error().code == ErrorCode::stale) &&
                          !program.error().message.empty(),
                      "a refusal is corrupt or stale, and says why");
        static_cast<void>(precompile::decode_ingredients(bytes));
        return 0;
    }
    const auto again = precompile::encode(*program);
    fuzz::require(again.has_value(), "what is accepted can be written");
    const auto twice = precompile::decode(*again);
    fuzz::require(twice.has_value() && twice->ingredients == program->ingredients, "what was written reads the same");
    fuzz::require(precompile::differences(program->ingredients, twice->ingredients).empty(),
                  "nothing differs from itself");
    return 0;
}
