// Reads the inputs of `warmgraph report`: counters, misses and an entry of a function, in a folder that any user may
// write.
#include <algorithm>

#include "memory_folder.hpp"
#include "report/gather.hpp"
#include "report/page.hpp"
#include "report_parts.hpp"
#include "sealed_entry.hpp"
#include "warmgraph/base/log.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

using namespace warmgraph;

tool::Json report_of(const fuzz::ReportParts& parts)
{
    const cachefmt::EntryKey& key = fuzz::report_key();
    const std::string folder =
        fmt::format("{}/{}/{}/", key.function.model_info, key.function.rank, key.function.function);
    const fuzz::MemoryFolder::Files contents{{folder + to_hex(key.guards_digest) + ".wg", parts.entry},
                                             {folder + "misses.jsonl", parts.misses},
                                             {folder + "usage.json", parts.usage}};
    fuzz::MemoryFolder files(contents, "/cache/");
    const auto store = store::LocalStore::open("/cache", {.access = store::StoreMode::read_only}, files);
    fuzz::require(store.has_value(), "the folder can be read");
    const tool::Context context{"/cache", tool::Output::json, {}, files, system_clock()};
    const tool::DrawingLimits small{.boxes_a_graph = 20, .boxes_in_all = 20}; // low: more boxes would only be slower
    const auto document = tool::gather_report(context, store->get(), small);
    fuzz::require(document.has_value(), "there is a report of whatever lies there");
    return *document;
}

/// How many characters an HTML parser does not take as text.
std::ptrdiff_t signs_in(const std::string& page)
{
    return std::ranges::count_if(page, [](char c) { return c == '<' || c == '>' || c == '&'; });
}

} // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed)
{
    fuzz::ReportParts parts = fuzz::split({reinterpret_cast<const std::byte*>(data), size});
    Bytes& changed = seed % 4 == 0 ? parts.usage : seed % 4 == 1 ? parts.misses : parts.entry;
    const std::size_t before = changed.size();
    const std::size_t room = max_size > fuzz::joined(parts).size() ? max_size - fuzz::joined(parts).size() : 0;
    changed.resize(before + std::min<std::size_t>(room, 4096));
    if (changed.empty()) return LLVMFuzzerMutate(data, size, max_size);
    changed.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(changed.data()), before, changed.size()));
    if (&changed == &parts.entry)
        fuzz::seal_some(reinterpret_cast<std::uint8_t*>(changed.data()), changed.size(), seed / 4, fuzz::report_key());
    const Bytes out = fuzz::joined(parts);
    if (out.size() > max_size) return size;
    std::memcpy(data, out.data(), out.size());
    return out.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    static const std::ptrdiff_t signs_of_the_page = [] {
        log().set_level(spdlog::level::off);
        return signs_in(tool::page_of(tool::Json::object()));
    }();
    const tool::Json document = report_of(fuzz::split({reinterpret_cast<const std::byte*>(data), size}));
    fuzz::require(document["totals"]["variants"] == 1, "the entry is in the report, whatever is wrong with it");
    fuzz::require(signs_in(tool::page_of(document)) == signs_of_the_page, "what is in a report is no HTML");
    return 0;
}
