#include "index.hpp"

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "warmgraph/cachefmt/codec.hpp"

namespace warmgraph::remote::http {
namespace {

constexpr std::string_view k_magic{"WGINDEX\1", 8};
constexpr std::size_t k_item_bytes = sizeof(std::uint16_t) + 2 * sizeof(std::uint64_t) + sizeof(std::uint32_t);
/// The head of an entry whose header cannot be found.

bool is_name(std::string_view text)
{
    const auto is_allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
               c == '/' || c == '-';
    };
    return !text.empty() && text.size() <= k_most_name && std::ranges::all_of(text, is_allowed);
}

/// Takes fields from the front of the bytes. After a field that is not there, `is_short` is true and all fields are empty.
struct FieldReader {
    ByteView rest;
    bool is_short = false;

    ByteView take(std::size_t size)
    {
        if (is_short || size > rest.size()) {
            is_short = true;
            return {};
        }
        const ByteView field = rest.first(size);
        rest = rest.subspan(size);
        return field;
    }
    template <class T>
    T number()
    {
        const ByteView field = take(sizeof(T));
        return is_short ? T{} : load<T>(field);
    }
};

Result<IndexItem> decode_item(FieldReader& reader)
{
    IndexItem item;
    const ByteView name = reader.take(reader.number<std::uint16_t>());
    item.size = reader.number<std::uint64_t>();
    item.version = reader.number<std::uint64_t>();
    const auto head_size = reader.number<std::uint32_t>();
    if (!reader.is_short && (head_size > k_most_head || head_size > item.size))
        return fail(ErrorCode::corrupt, "index has a head of {} bytes of an object of {}, at most {} are kept",
                    head_size, item.size, k_most_head);
    const ByteView head = reader.take(head_size);
    if (reader.is_short) return fail(ErrorCode::corrupt, "index ends inside an item");
    if (!is_name(as_text(name)))
        return fail(ErrorCode::corrupt,
                    "index has a name of {} bytes that is none, expected 1 to {} of [A-Za-z0-9._/-]", name.size(),
                    k_most_name);
    item.name = as_text(name);
    item.head.assign(head.begin(), head.end());
    return item;
}

} // namespace

void add(Index& index, IndexItem item)
{
    remove(index, item.name);
    index.push_back(std::move(item));
    if (index.size() > k_most_items) index.erase(index.begin(), index.end() - k_most_items);
}

bool remove(Index& index, std::string_view name)
{
    return std::erase_if(index, [&](const IndexItem& item) { return item.name == name; }) != 0;
}

Bytes encode(const Index& index)
{
    // From the newest on: the place that is left for the heads of older items.
    std::size_t left = k_most_index_bytes - k_magic.size() - sizeof(std::uint32_t);
    for (const IndexItem& item : index) left -= k_item_bytes + item.name.size();
    std::size_t heads_from = index.size();
    while (heads_from > 0 && index[heads_from - 1].head.size() <= left) left -= index[--heads_from].head.size();

    Bytes bytes;
    append(bytes, as_bytes(k_magic));
    append(bytes, static_cast<std::uint32_t>(index.size()));
    for (std::size_t i = 0; i < index.size(); ++i) {
        const ByteView head = i >= heads_from ? ByteView{index[i].head} : ByteView{};
        append(bytes, static_cast<std::uint16_t>(index[i].name.size()));
        append(bytes, as_bytes(index[i].name));
        append(bytes, index[i].size);
        append(bytes, index[i].version);
        append(bytes, static_cast<std::uint32_t>(head.size()));
        append(bytes, head);
    }
    return bytes;
}

Result<Index> decode_index(ByteView bytes)
{
    if (bytes.size() > k_most_index_bytes)
        return fail(ErrorCode::corrupt, "index has {} bytes, at most {} are read", bytes.size(), k_most_index_bytes);
    FieldReader reader{bytes};
    if (as_text(reader.take(k_magic.size())) != k_magic)
        return fail(ErrorCode::corrupt, "index has another magic or version than 1");
    const auto count = reader.number<std::uint32_t>();
    if (reader.is_short || count > k_most_items || count > reader.rest.size() / k_item_bytes)
        return fail(ErrorCode::corrupt, "index of {} bytes says it has {} items, at most {} are read", bytes.size(),
                    count, k_most_items);
    Index index;
    index.reserve(count);
    std::unordered_set<std::string_view> names; // of the bytes, which stay
    for (std::uint32_t i = 0; i < count; ++i) {
        const ByteView before = reader.rest;
        auto item = decode_item(reader);
        if (!item) return std::unexpected(std::move(item.error()));
        if (!names.insert(as_text(before.subspan(sizeof(std::uint16_t), item->name.size()))).second)
            return fail(ErrorCode::corrupt, "index has the name {} twice", item->name);
        index.push_back(std::move(*item));
    }
    if (!reader.rest.empty())
        return fail(ErrorCode::corrupt, "index has {} bytes after its last item", reader.rest.size());
    return index;
}

} // namespace warmgraph::remote::http
