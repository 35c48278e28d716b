#include "call_rows.hpp"

#include <array>

namespace warmgraph::backends::cuda {

namespace {

constexpr std::uint8_t k_with_size = 4; // the row format with a size
// Attributes, with the names that nvdisasm prints.
constexpr std::uint8_t k_externs = 0x0f, k_frame_size = 0x11, k_min_stack_size = 0x12, k_max_stack_size = 0x23,
                       k_register_count = 0x2f, k_cuda_api_version = 0x37;

} // namespace

Result<std::vector<CallRow>> read_calls(ByteView section)
{
    constexpr std::size_t k_row = 8;
    constexpr std::array k_parts{CallKind::needs, CallKind::address_taken, CallKind::by_address, CallKind::needs};
    if (section.size() % k_row != 0)
        return fail(ErrorCode::unsupported, "a call graph of {} bytes, expected rows of {}", section.size(), k_row);
    std::vector<CallRow> rows;
    std::uint32_t part = 0;
    for (std::size_t at = 0; at < section.size(); at += k_row) {
        CallRow row{.first = load<std::uint32_t>(section, at), .second = load<std::uint32_t>(section, at + 4)};
        const std::uint32_t mark = 0U - row.second; // 1 ... 4
        if (row.first == 0 && mark >= 1 && mark <= 4)
            part = mark;
        else if (part != 0)
            row.kind = k_parts[part - 1];
        else
            return fail(ErrorCode::unsupported,
                        "a call graph begins with row ({}, {}), expected the row that begins a part", row.first,
                        row.second);
        rows.push_back(row);
    }
    return rows;
}

Result<std::vector<InfoRow>> read_info(ByteView section)
{
    std::vector<InfoRow> rows;
    while (!section.empty()) {
        if (section.size() < 4) return fail(ErrorCode::unsupported, "a row of .nv.info is cut off");
        InfoRow row;
        row.format = load<std::uint8_t>(section);
        row.attribute = load<std::uint8_t>(section, 1);
        if (row.format == 0 || row.format > k_with_size)
            return fail(ErrorCode::unsupported, "a row of .nv.info has format {}, expected 1 to 4", row.format);
        const std::size_t size = row.format == k_with_size ? load<std::uint16_t>(section, 2) : 0;
        if (section.size() < 4 + size)
            return fail(ErrorCode::unsupported, "a row of .nv.info of {} bytes is cut off", size);
        row.whole = section.first(4 + size);
        row.payload = row.whole.subspan(4);
        section = section.subspan(4 + size);
        rows.push_back(row);
    }
    return rows;
}

bool is_about_symbol(const InfoRow& row) noexcept
{
    return row.payload.size() == 8 && (row.attribute == k_frame_size || row.attribute == k_min_stack_size ||
                                       row.attribute == k_max_stack_size || row.attribute == k_register_count);
}

bool is_about_image(const InfoRow& row) noexcept
{
    return row.payload.size() < 4 || row.attribute == k_cuda_api_version;
}

Result<std::vector<std::uint32_t>> external_symbols(ByteView section)
{
    const auto rows = read_info(section);
    if (!rows) return std::unexpected(rows.error());
    std::vector<std::uint32_t> symbols;
    for (const InfoRow& row : *rows) {
        if (row.attribute != k_externs) continue;
        for (std::size_t at = 0; at + 4 <= row.payload.size(); at += 4)
            symbols.push_back(load<std::uint32_t>(row.payload, at));
    }
    return symbols;
}

} // namespace warmgraph::backends::cuda
