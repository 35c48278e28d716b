// Calls of host functions.
#include "digest_put.hpp"
#include "flat_parse.hpp"
#include "heap_size.hpp"
#include "nodes/node_format_of.hpp"
#include "validate_symbol.hpp"
#include "warmgraph/base/printable.hpp"

namespace warmgraph::cachefmt {
namespace {

constexpr std::size_t k_host_name_max = 255;

struct HostFormat {
    using Work = HostNode;
    using Flat = flat::Host;

    static std::string_view kind(const HostNode&) noexcept { return "host"; }
    static void digest(Sha256& hash, const HostNode& host) { put(hash, host.function); }
    static void compare(const NodeDifference& out, const HostNode& a, const HostNode& b)
    {
        out.text("function", a.function, b.function);
    }
    static Result<void> validate(const HostNode& host, const Graph&, const Limits&)
    {
        return validate_symbol("host function name", host.function, k_host_name_max);
    }
    static std::uint64_t footprint(const HostNode& host) noexcept { return text_size(host.function.size()); }

    static auto to_flat(FlatBuilder& builder, const HostNode& host)
    {
        return flat::CreateHost(builder, write(builder, host.function));
    }
    static Result<void> check_flat(const flat::Host&, const Limits&) { return {}; }
    static std::uint64_t flat_footprint(const flat::Host& host) { return text_size(count(host.function())); }
    static HostNode from_flat(const flat::Host& host) { return {to_text(host.function())}; }

    static void json(Json& out, const HostNode& host, const Graph&) { set_text(out, "function", host.function); }
    static NodeRow row(const HostNode& host, const Graph&) { return {.parameters = printable(host.function)}; }
    static std::vector<std::string> label(const HostNode& host, const Graph&) { return {"host", host.function}; }
};

} // namespace

const NodeFormat& format_of(std::type_identity<HostNode>) noexcept
{
    static const NodeFormatOf<HostFormat> format;
    return format;
}

} // namespace warmgraph::cachefmt
