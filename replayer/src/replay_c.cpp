// Implements the C interface: its handles, errors and conversions.
#include <algorithm>
#include <cstring>
#include <new>

#include "backends.hpp"
#include "function.hpp"
#include "warmgraph/base/bytes.hpp"
#include "warmgraph/replay.h"

namespace replayer = warmgraph::replayer;
using warmgraph::Address;
using warmgraph::DType;
using warmgraph::Error;
using warmgraph::ErrorCode;
using warmgraph::fail;
using warmgraph::MemoryRef;
using warmgraph::Result;

struct wgr_device {
    std::shared_ptr<replayer::Device> device;
};

struct wgr_cache {
    std::shared_ptr<replayer::Cache> cache;
};

struct wgr_entries {
    std::vector<replayer::ListedEntry> all;
    std::vector<std::string> digests;
    std::vector<wgr_entry> shown; ///< the rows for callers; they point to the texts above
};

struct wgr_function {
    wgr_function(std::shared_ptr<replayer::Cache> cache, std::shared_ptr<replayer::Device> device,
                 replayer::LoadedEntry loaded)
        : function(std::move(cache), std::move(device), std::move(loaded))
    {
        const auto& kinds = function.interface().kinds;
        for (std::size_t i = 0; i < kinds.size(); ++i) {
            const auto& tensor = function.tensors()[i];
            const auto& region = function.regions()[i];
            regions.push_back({tensor.name.c_str(), kind_of(kinds[i]), static_cast<wgr_dtype>(tensor.dtype),
                               tensor.sizes.size(), tensor.sizes.data(), tensor.strides.data(), region.size,
                               std::max(tensor.alignment, region.alignment),
                               region.space == warmgraph::cachefmt::MemorySpace::host ? 1 : 0});
        }
        for (std::size_t i = 0; i < function.ranges().size(); ++i) {
            const auto& scalar = function.interface().scalars[i];
            const auto& range = function.ranges()[i];
            numbers.push_back({scalar.name.c_str(), static_cast<wgr_dtype>(scalar.dtype), 0, range.low, range.high});
        }
        for (const auto& value : function.values())
            numbers.push_back({value.name.c_str(), static_cast<wgr_dtype>(value.dtype), 1, value.bits, value.bits});
    }
    [[nodiscard]] static wgr_region_kind kind_of(warmgraph::cachefmt::RegionKind kind) noexcept
    {
        using warmgraph::cachefmt::RegionKind;
        switch (kind) {
        case RegionKind::input: return wgr_input;
        case RegionKind::output: return wgr_output;
        case RegionKind::weights: return wgr_weights;
        default: return wgr_state;
        }
    }

    replayer::Function function;
    std::vector<wgr_region> regions;
    std::vector<wgr_number_decl> numbers;
};

namespace {

static_assert(wgr_invalid_argument == static_cast<int>(ErrorCode::invalid_argument) &&
              wgr_stale == static_cast<int>(ErrorCode::stale) &&
              wgr_driver_failed == static_cast<int>(ErrorCode::driver_failed) &&
              wgr_untrusted == static_cast<int>(ErrorCode::untrusted));
static_assert(wgr_u8 == static_cast<int>(DType::u8) && wgr_f32 == static_cast<int>(DType::f32) &&
              wgr_boolean + 1 == warmgraph::k_dtype_count);

thread_local std::string t_failure;

wgr_status remember(ErrorCode code, const char* text) noexcept
{
    try {
        t_failure = text;
    } catch (const std::bad_alloc&) {
        t_failure = "out of memory"; // a text this short needs no allocation
    }
    return static_cast<wgr_status>(code);
}

/// Runs f, which returns a Result<void>; turns its error or exception into a status and a text.
template <class F>
wgr_status guarded(F&& f) noexcept
{
    try {
        const Result<void> done = f();
        return done ? wgr_ok : remember(done.error().code, done.error().message.c_str());
    } catch (const std::bad_alloc&) {
        return remember(ErrorCode::out_of_memory, "out of host memory");
    } catch (const std::exception& thrown) {
        return remember(ErrorCode::internal, thrown.what());
    }
}

/// Fails with invalid_argument if a pointer is null; the message names the first such pointer.
Result<void> need(std::initializer_list<std::pair<const void*, const char*>> pointers)
{
    for (const auto& [pointer, name] : pointers)
        if (pointer == nullptr) return fail(ErrorCode::invalid_argument, "{} is null", name);
    return {};
}

template <class T>
Result<std::span<const T>> array(const T* list, std::uint64_t count, const char* name)
{
    if (list == nullptr && count != 0)
        return fail(ErrorCode::invalid_argument, "{} is null, with a count of {}", name, count);
    return std::span(list, count);
}

Result<DType> dtype_of(wgr_dtype dtype, const char* of)
{
    if (dtype >= 0 && dtype < warmgraph::k_dtype_count) return static_cast<DType>(dtype);
    return fail(ErrorCode::invalid_argument, "{} has the type {}, expected a wgr_dtype, 0 to {}", of, dtype,
                warmgraph::k_dtype_count - 1);
}

Result<MemoryRef> memory_of(const replayer::Device& device, const wgr_memory& memory)
{
    if (memory.base == 0 && memory.offset == 0) return MemoryRef{};
    if ((memory.base == 0) != device.takes_streams())
        return fail(ErrorCode::invalid_argument, "memory has base {} and offset {:#x}, {}", memory.base, memory.offset,
                    device.takes_streams() ? "expected base 0 and a device pointer"
                                           : "which is not one that wgr_memory_create returned");
    if (memory.base == 0) return MemoryRef{Address::from_flat(memory.offset), memory.size};
    return MemoryRef{{memory.base, memory.offset}, memory.size};
}

wgr_memory shown(const replayer::Device& device, const MemoryRef& memory)
{
    if (device.takes_streams()) return {0, memory.address.flat(), memory.size};
    return {memory.address.base, memory.address.offset, memory.size};
}

Result<replayer::CacheSettings> settings_of(const wgr_cache_options& given)
{
    if (given.size != sizeof(wgr_cache_options))
        return fail(ErrorCode::invalid_argument,
                    "the options have size {}, expected {}: initialise them with WGR_CACHE_OPTIONS", given.size,
                    sizeof(wgr_cache_options));
    if (auto named = need({{given.model, "options.model"}}); !named) return std::unexpected(named.error());
    replayer::CacheSettings settings{given.model};
    const auto config = array(given.config, given.config_count, "options.config");
    const auto keys = array(given.accept_keys, given.accept_key_count, "options.accept_keys");
    const auto owners = array(given.trusted_owners, given.trusted_owner_count, "options.trusted_owners");
    if (!config) return std::unexpected(config.error());
    if (!keys) return std::unexpected(keys.error());
    if (!owners) return std::unexpected(owners.error());
    for (const auto& [key, value] : *config) {
        if (auto there = need({{key, "a key of options.config"}, {value, "a value of options.config"}}); !there)
            return std::unexpected(there.error());
        if (!settings.config.emplace(key, value).second)
            return fail(ErrorCode::invalid_argument, "'{}' is given twice in options.config", key);
    }
    for (const char* key : *keys) {
        if (auto there = need({{key, "a key of options.accept_keys"}}); !there) return std::unexpected(there.error());
        settings.signing.accept.emplace_back(key);
    }
    const auto rank = [](int given_rank) { return given_rank == -1 ? std::nullopt : std::optional{given_rank}; };
    settings.directory = given.cache_dir != nullptr ? given.cache_dir : "";
    settings.is_dynamic = given.dynamic != 0;
    settings.world_size = rank(given.world_size);
    settings.global_rank = rank(given.global_rank);
    settings.tp_rank = rank(given.tp_rank);
    settings.pp_rank = rank(given.pp_rank);
    if (given.accept_newer_driver != 0) settings.relaxation.driver = warmgraph::guards::VersionRule::same_or_newer;
    if (given.read_only != 0) settings.access = warmgraph::store::StoreMode::read_only;
    settings.signing.accept_file = given.accept_file != nullptr ? given.accept_file : "";
    settings.signing.require = given.require_signed != 0;
    settings.trusted_owners.assign(owners->begin(), owners->end());
    if (given.max_constant_bytes != 0) settings.max_constant_bytes = given.max_constant_bytes;
    return settings;
}

/// Reads a call's arguments and passes them to `use`, which returns a Result<void>.
template <class Use>
Result<void> with_call(wgr_function* function, const replayer::Device& device, const wgr_tensor* tensors,
                       std::uint64_t tensor_count, const wgr_number* numbers, std::uint64_t number_count, Use use)
{
    const auto given = array(tensors, tensor_count, "tensors");
    const auto given_numbers = array(numbers, number_count, "numbers");
    if (!given) return std::unexpected(given.error());
    if (!given_numbers) return std::unexpected(given_numbers.error());
    std::vector<replayer::Tensor> read;
    read.reserve(tensor_count);
    for (const wgr_tensor& tensor : *given) {
        const auto memory = memory_of(device, tensor.memory);
        const auto dtype = tensor.sizes != nullptr ? dtype_of(tensor.dtype, "a tensor") : DType::u8;
        if (!memory) return std::unexpected(memory.error());
        if (!dtype) return std::unexpected(dtype.error());
        const auto list = [&](const std::int64_t* of) {
            return of != nullptr && tensor.sizes != nullptr ? std::span(of, tensor.rank)
                                                            : std::span<const std::int64_t>{};
        };
        read.push_back({*memory, tensor.sizes == nullptr, *dtype, list(tensor.sizes), list(tensor.strides)});
    }
    std::vector<replayer::Number> read_numbers;
    for (const wgr_number& number : *given_numbers) {
        const auto dtype = dtype_of(number.dtype, "a number");
        if (!dtype) return std::unexpected(dtype.error());
        read_numbers.push_back({*dtype, number.bits});
    }
    return use(function->function, replayer::Call{read, read_numbers});
}

Result<wgr_function*> load(wgr_cache& cache, wgr_device& device, const char* function, const char* digest)
{
    std::optional<warmgraph::Digest> wanted;
    if (digest != nullptr) {
        wanted = warmgraph::digest_from_hex(digest);
        if (!wanted) return fail(ErrorCode::invalid_argument, "the digest is '{}', expected 64 hex digits", digest);
    }
    auto loaded = cache.cache->load(function, *device.device, wanted);
    if (!loaded) return std::unexpected(loaded.error());
    return new wgr_function(cache.cache, device.device, std::move(*loaded));
}

} // namespace

const char* wgr_version() { return WARMGRAPH_VERSION; }
const char* wgr_backends() { return replayer::backend_names().data(); }
const char* wgr_last_error() { return t_failure.c_str(); }

wgr_status wgr_device_open(const char* id, wgr_device** out)
{
    return guarded([&]() -> Result<void> {
        if (out != nullptr) *out = nullptr;
        if (auto there = need({{id, "id"}, {out, "out"}}); !there) return there;
        auto device = replayer::Device::open(id);
        if (!device) return std::unexpected(device.error());
        *out = new wgr_device{std::move(*device)};
        return {};
    });
}

wgr_status wgr_device_close(wgr_device* device)
{
    delete device;
    return wgr_ok;
}

wgr_status wgr_device_synchronize(wgr_device* device, void* stream)
{
    return guarded([&]() -> Result<void> {
        if (auto there = need({{device, "device"}}); !there) return there;
        replayer::Device& its = *device->device;
        if (!its.takes_streams()) {
            if (stream != nullptr)
                return fail(ErrorCode::unsupported,
                            "{} cannot use streams that another library made: pass NULL for its own queue",
                            its.device->id());
            const std::scoped_lock lock{its.own_stream_mutex};
            return its.own_stream->synchronize();
        }
        auto view = its.device->view_stream(stream);
        return view ? (*view)->synchronize() : std::unexpected(view.error());
    });
}

wgr_status wgr_memory_create(wgr_device* device, uint64_t size, wgr_memory* out)
{
    return guarded([&]() -> Result<void> {
        if (out != nullptr) *out = {};
        if (auto there = need({{device, "device"}, {out, "out"}}); !there) return there;
        const auto memory = device->device->device->allocate(size);
        if (!memory) return std::unexpected(memory.error());
        *out = shown(*device->device, *memory);
        return {};
    });
}

wgr_status wgr_memory_destroy(wgr_device* device, wgr_memory memory)
{
    return guarded([&]() -> Result<void> {
        if (auto there = need({{device, "device"}}); !there) return there;
        const auto its = memory_of(*device->device, memory);
        if (!its) return std::unexpected(its.error());
        if (!its->address.is_null()) device->device->device->release(*its);
        return {};
    });
}

wgr_status wgr_upload(wgr_device* device, wgr_memory memory, const void* from, uint64_t bytes)
{
    return guarded([&]() -> Result<void> {
        if (auto there = need({{device, "device"}, {from, "from"}}); !there) return there;
        const auto its = memory_of(*device->device, memory);
        if (!its) return std::unexpected(its.error());
        if (bytes > its->size)
            return fail(ErrorCode::invalid_argument, "{} bytes do not fit into memory of {}", bytes, its->size);
        return device->device->device->upload(its->address, {static_cast<const std::byte*>(from), bytes});
    });
}

wgr_status wgr_download(wgr_device* device, wgr_memory memory, void* to, uint64_t bytes)
{
    return guarded([&]() -> Result<void> {
        if (auto there = need({{device, "device"}, {to, "to"}}); !there) return there;
        const auto its = memory_of(*device->device, memory);
        if (!its) return std::unexpected(its.error());
        if (bytes > its->size)
            return fail(ErrorCode::invalid_argument, "{} bytes are requested of memory of {} bytes", bytes, its->size);
        return device->device->device->download({static_cast<std::byte*>(to), bytes}, its->address);
    });
}

wgr_status wgr_cache_open(const wgr_cache_options* options, wgr_cache** out)
{
    return guarded([&]() -> Result<void> {
        if (out != nullptr) *out = nullptr;
        if (auto there = need({{options, "options"}, {out, "out"}}); !there) return there;
        auto settings = settings_of(*options);
        if (!settings) return std::unexpected(settings.error());
        auto cache = replayer::Cache::open(std::move(*settings));
        if (!cache) return std::unexpected(cache.error());
        *out = new wgr_cache{std::move(*cache)};
        return {};
    });
}

wgr_status wgr_cache_close(wgr_cache* cache)
{
    delete cache;
    return wgr_ok;
}

wgr_status wgr_entries_list(wgr_cache* cache, wgr_device* device, const char* function, wgr_entries** out)
{
    return guarded([&]() -> Result<void> {
        if (out != nullptr) *out = nullptr;
        if (auto there = need({{cache, "cache"}, {device, "device"}, {function, "function"}, {out, "out"}}); !there)
            return there;
        auto listed = cache->cache->entries(function, *device->device);
        if (!listed) return std::unexpected(listed.error());
        auto entries = std::make_unique<wgr_entries>();
        entries->all = std::move(*listed);
        for (const auto& entry : entries->all) entries->digests.push_back(to_hex(entry.digest));
        for (std::size_t i = 0; i < entries->all.size(); ++i) {
            const auto& entry = entries->all[i];
            entries->shown.push_back(
                {entries->digests[i].c_str(), entry.recorded.c_str(), entry.code.c_str(), entry.misfit.c_str()});
        }
        *out = entries.release();
        return {};
    });
}

uint64_t wgr_entries_count(const wgr_entries* entries) { return entries != nullptr ? entries->shown.size() : 0; }

const wgr_entry* wgr_entries_at(const wgr_entries* entries, uint64_t index)
{
    return index < wgr_entries_count(entries) ? &entries->shown[index] : nullptr;
}

wgr_status wgr_entries_destroy(wgr_entries* entries)
{
    delete entries;
    return wgr_ok;
}

wgr_status wgr_load(wgr_cache* cache, wgr_device* device, const char* function, const char* digest, wgr_function** out)
{
    return guarded([&]() -> Result<void> {
        if (out != nullptr) *out = nullptr;
        if (auto there = need({{cache, "cache"}, {device, "device"}, {function, "function"}, {out, "out"}}); !there)
            return there;
        const auto loaded = load(*cache, *device, function, digest);
        if (!loaded) return std::unexpected(loaded.error());
        *out = *loaded;
        return {};
    });
}

wgr_status wgr_function_destroy(wgr_function* function)
{
    delete function;
    return wgr_ok;
}

const wgr_region* wgr_regions(const wgr_function* function, uint64_t* count)
{
    if (count != nullptr) *count = function != nullptr ? function->regions.size() : 0;
    return function != nullptr ? function->regions.data() : nullptr;
}

const wgr_number_decl* wgr_numbers(const wgr_function* function, uint64_t* count)
{
    if (count != nullptr) *count = function != nullptr ? function->numbers.size() : 0;
    return function != nullptr ? function->numbers.data() : nullptr;
}

wgr_status wgr_launch(wgr_function* function, void* stream, const wgr_tensor* tensors, uint64_t tensor_count,
                      const wgr_number* numbers, uint64_t number_count)
{
    return guarded([&]() -> Result<void> {
        if (auto there = need({{function, "function"}}); !there) return there;
        return with_call(function, function->function.device(), tensors, tensor_count, numbers, number_count,
                         [&](replayer::Function& its, const replayer::Call& call) { return its.launch(stream, call); });
    });
}

wgr_status wgr_prepare(wgr_function* function, const wgr_tensor* tensors, uint64_t tensor_count,
                       const wgr_number* numbers, uint64_t number_count)
{
    return guarded([&]() -> Result<void> {
        if (auto there = need({{function, "function"}}); !there) return there;
        return with_call(function, function->function.device(), tensors, tensor_count, numbers, number_count,
                         [](replayer::Function& its, const replayer::Call& call) { return its.prepare(call); });
    });
}
