#include "http_backend.hpp"

#include <algorithm>
#include <exception>

#include <unistd.h>

#include "clocks.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/base/printable.hpp"

namespace warmgraph::remote::http {
namespace {

using store::FunctionKey;
using store::Name;
using store::ReadLimit;
using store::Stamp;
using store::StampedBytes;
using store::StampedEntry;

Settings without_credentials(Settings settings)
{
    settings.credentials.forget();
    settings.credentials = {};
    return settings;
}

/// "<model_info>/<rank>/<function>", the name of a function in the index of functions.
std::string text_of(const FunctionKey& function)
{
    return fmt::format("{}/{}/{}", function.model_info, function.rank, function.function);
}

std::optional<FunctionKey> function_from(std::string_view text)
{
    // Through the name of an entry, so that one place decides on names.
    const auto name = store::name_from_text(fmt::format("entries/{}/{:064}", text, 0));
    const auto* const key = name ? std::get_if<store::EntryKey>(&*name) : nullptr;
    return key != nullptr ? std::optional<FunctionKey>(key->function) : std::nullopt;
}

store::Scope scope_of(const Name& name)
{
    const auto* const entry = std::get_if<store::EntryKey>(&name);
    return {store::kind_of(name), entry != nullptr ? std::optional<FunctionKey>(entry->function) : std::nullopt};
}

/// The entry as the index has it; nullopt: the index has too little of it.
std::optional<StampedBytes> from_index(const IndexItem& item, const ReadLimit& extent)
{
    StampedBytes found{{.size = item.size, .version = item.version}, Bytes{}};
    if (extent.whole && item.size > extent.bytes) {
        found.bytes = fail(ErrorCode::corrupt, "object has {} bytes, at most {} are read", item.size, extent.bytes);
        return found;
    }
    const bool has_all = item.head.size() >= std::min(store::end_of(extent), item.size);
    const bool wants_nothing = extent.bytes == 0 || extent.offset >= item.size;
    const bool has_enough = !extent.whole && extent.offset == 0 && has_header(item.head);
    if (!has_all && !wants_nothing && !has_enough) return std::nullopt;
    if (!wants_nothing) store::cut(*(found.bytes = item.head), extent);
    return found;
}

} // namespace

HttpBackend::OfProcess::OfProcess(const CurlLibrary& library, const Address& address, const Settings& settings)
    : process(::getpid()),
      client(library, address, settings.connect_timeout, settings.stop),
      objects(client, {settings.header_timeout, settings.payload_timeout}),
      indexes(objects)
{
}

HttpBackend::HttpBackend(const CurlLibrary& library, Address address, const Settings& settings)
    : m_library(library), m_address(std::move(address)), m_settings(without_credentials(settings))
{
}

HttpBackend::~HttpBackend()
{
    OfProcess* const last = m_own.load();
    // A child leaves its parent's connections alone: to close them would end them for the parent, too.
    if (last != nullptr && last->process == ::getpid()) std::default_delete<OfProcess>{}(last);
}

HttpBackend::OfProcess& HttpBackend::own()
{
    OfProcess* now = m_own.load(std::memory_order_acquire);
    if (now != nullptr && now->process == ::getpid()) return *now;
    auto made = std::make_unique<OfProcess>(m_library, m_address, m_settings);
    if (m_own.compare_exchange_strong(now, made.get(), std::memory_order_acq_rel)) return *made.release();
    return *now; // another thread was faster
}

std::unexpected<Error> HttpBackend::failed(std::string_view doing, std::string_view text, Error error) const
{
    return within(fmt::format("remote {}: {} {}", m_settings.label, doing, text), std::move(error));
}

Result<std::optional<StampedBytes>> HttpBackend::get(const Name& name, ReadLimit extent)
{
    const std::string text = to_text(name);
    auto found = own().objects.get(text, extent, Deadline{extent.within});
    if (!found) return failed("get", text, std::move(found.error()));
    if (!*found) return std::nullopt;
    return std::move((*found)->object);
}

Result<void> HttpBackend::put(const Name& name, ByteView bytes, store::PutMode mode)
{
    OfProcess& self = own();
    const std::string text = to_text(name);
    const bool may_replace = mode == store::PutMode::replace;
    if (!may_replace) {
        // Before the bytes are sent; and servers such as nginx know no conditions.
        const auto found = self.objects.stat(text, Deadline{});
        if (!found && found.error().code != ErrorCode::unsupported) return failed("put", text, found.error());
        if (found && *found) return {};
    }
    const auto put = self.objects.put(text, bytes, may_replace ? "" : "If-None-Match: *");
    if (!put) return failed("put", text, put.error());
    if (put->is_refused) return {}; // it is there
    add_to_index(name, bytes, put->etag);
    return {};
}

void HttpBackend::add_to_index(const Name& name, ByteView bytes, const std::string& etag)
{
    OfProcess& self = own();
    const std::string text = to_text(name), prefix = prefix_of(scope_of(name));
    const bool is_entry = std::holds_alternative<store::EntryKey>(name);
    IndexItem item{text.substr(prefix.size()), bytes.size(), version_of(etag)};
    if (is_entry) {
        const ByteView head = head_of_entry(bytes);
        item.head.assign(head.begin(), head.end());
        // nginx gives the ETag only when it is asked. Without it a header would be read again for each stamp.
        if (etag.empty())
            if (const auto found = self.objects.stat(text, Deadline{}); found && *found)
                item.version = (*found)->object.stamp.version;
    }
    const auto added = self.indexes.change(prefix, [&](Index& index) {
        add(index, item);
        return true;
    });
    if (!added) log().debug("remote {}: {} is not in the index: {}", m_settings.label, text, added.error().message);
    if (const auto* const entry = std::get_if<store::EntryKey>(&name)) add_function(entry->function);
}

void HttpBackend::add_function(const FunctionKey& function)
{
    OfProcess& self = own();
    const std::string text = text_of(function);
    {
        const std::scoped_lock guard(self.mutex);
        if (self.listed_functions.contains(text)) return;
    }
    const auto added = self.indexes.change(store::prefix_of({}), [&](Index& index) {
        if (std::ranges::find(index, text, &IndexItem::name) != index.end()) return false;
        add(index, {text});
        return true;
    });
    if (!added) {
        log().debug("remote {}: {} is not in the index: {}", m_settings.label, text, added.error().message);
        return;
    }
    const std::scoped_lock guard(self.mutex);
    self.listed_functions.insert(text);
}

Result<void> HttpBackend::remove(const Name& name)
{
    OfProcess& self = own();
    const std::string text = to_text(name), prefix = prefix_of(scope_of(name));
    if (auto removed = self.objects.remove(text); !removed) return failed("remove", text, std::move(removed.error()));
    const auto noted = self.indexes.change(
        prefix, [&](Index& index) { return http::remove(index, std::string_view(text).substr(prefix.size())); });
    if (!noted) log().debug("remote {}: {} stays in the index: {}", m_settings.label, text, noted.error().message);
    return {};
}

Result<void> HttpBackend::list_into(std::vector<Name>& names, const store::Scope& scope)
{
    const std::string prefix = prefix_of(scope);
    auto index = own().indexes.read(prefix, Deadline{});
    if (!index) return failed("list", prefix, std::move(index.error()));
    for (const IndexItem& item : *index) {
        if (scope.kind == store::ArtifactKind::entries && !scope.function) {
            if (const auto function = function_from(item.name))
                if (auto ok = list_into(names, {.function = function}); !ok) return ok;
            continue;
        }
        const std::string text = prefix + item.name;
        if (const auto name = store::name_from_text(text)) names.push_back(*name);
    }
    return {};
}

Result<std::vector<Name>> HttpBackend::list(const store::Scope& scope)
{
    std::vector<Name> names;
    if (auto ok = list_into(names, scope); !ok) return std::unexpected(std::move(ok.error()));
    std::ranges::sort(names);
    return names;
}

Result<std::vector<StampedEntry>> HttpBackend::get_entries(const FunctionKey& function, ReadLimit extent)
{
    const std::string prefix = store::prefix_of({.function = function});
    const Deadline deadline{extent.within};
    auto index = own().indexes.read(prefix, deadline);
    if (!index) return failed("list", prefix, std::move(index.error()));
    std::vector<StampedEntry> entries;
    for (const IndexItem& item : *index) {
        const std::string text = prefix + item.name;
        const auto name = store::name_from_text(text);
        const auto* const key = name ? std::get_if<store::EntryKey>(&*name) : nullptr;
        if (key == nullptr) continue;
        if (auto known = from_index(item, extent)) {
            entries.push_back({*key, std::move(*known)});
            continue;
        }
        auto found = own().objects.get(text, extent, deadline);
        if (!found)
            entries.push_back({*key, failed("get", text, std::move(found.error()))});
        else if (*found)
            entries.push_back({*key, std::move((*found)->object)});
    }
    std::ranges::sort(entries, {}, &StampedEntry::key);
    return entries;
}

} // namespace warmgraph::remote::http

namespace warmgraph::remote {

Result<StoreTime> http_time(const Settings& settings)
{
    const auto library = http::CurlLibrary::open();
    if (!library) return within(fmt::format("remote {}", settings.label), library.error());
    const auto address = http::address_of(settings);
    if (!address) return std::unexpected(address.error());
    http::HttpClient client(**library, *address, settings.connect_timeout, settings.stop);
    const auto answer = client.exchange({.method = http::Method::head,
                                         .url = address->base.substr(0, address->root_end),
                                         .timeout = settings.header_timeout});
    if (!answer) return within(fmt::format("remote {}", settings.label), answer.error());
    return time_of_date(answer->head.date);
}

Result<std::unique_ptr<store::Tier>> http_backend(const Settings& settings)
{
    const auto library = http::CurlLibrary::open();
    if (!library) return within(fmt::format("remote {}", settings.label), library.error());
    auto address = http::address_of(settings);
    if (!address) return std::unexpected(std::move(address.error()));
    return std::make_unique<http::HttpBackend>(**library, std::move(*address), settings);
}

} // namespace warmgraph::remote
