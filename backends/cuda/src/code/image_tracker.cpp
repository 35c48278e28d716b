#include "code/image_tracker.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include <dlfcn.h>

#include "code/cupti.hpp"
#include "code/driver_function.hpp"
#include "code/loading_calls.hpp"
#include "cubin/image_table.hpp"
#include "device/core.hpp"
#include "device/enqueue_watch.hpp"
#include "device/watched_calls.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph::backends::cuda {

namespace {

constexpr auto k_resource_events =
    std::to_array<CUpti_CallbackId>({CUPTI_CBID_RESOURCE_MODULE_LOADED, CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING,
                                     CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING});

// The driver calls that a thread is inside, outermost first. Plain data, because callbacks may come while the thread's
// other thread-local objects are being destroyed.
struct OpenCalls {
    struct Call {
        std::uint32_t id = 0;     // CUPTI's correlation id
        std::uint64_t images = 0; // key into State::arrived; 0: nothing was loaded during the call
    };
    std::array<Call, 16> calls{};
    std::size_t depth = 0;
    bool is_own_call = false; // inside our own driver calls
};
constinit thread_local OpenCalls t_open;

struct State {
    std::shared_ptr<const Driver> driver;
    std::shared_ptr<const Cupti> cupti;
    CUpti_SubscriberHandle subscriber = nullptr;
    std::mutex start; // also guards watches and holds
    long watches = 0, holds = 0;
    std::atomic<bool> is_running{false};
    std::atomic<bool> was_paused{false};
    std::atomic<std::uint64_t> last_key{0};

    ImageTable images;
    VariableAccess variables;
    std::mutex mutex; // guards the members below; never held during a driver call
    std::map<std::uint64_t, std::vector<LoadedImage>> arrived;
    std::vector<std::shared_ptr<const Bytes>> unsearched; // not yet searched for malloc
    std::size_t unsearched_bytes = 0;
    bool saw_malloc = false;
};

State& state()
{
    // Never destroyed: callbacks come until the process ends.
    static State* const s_state = std::make_unique<State>().release();
    return *s_state;
}

// Asks the driver without breaking a capture on this thread.
class DriverQuery {
public:
    explicit DriverQuery(const Driver& driver) noexcept : m_driver(driver), m_outside(driver) {}

    [[nodiscard]] std::optional<std::string> name_of(CUfunction function) const
    {
        const char* name = nullptr;
        if (m_driver.status("cuFuncGetName", m_driver.cuFuncGetName, &name, function) != CUDA_SUCCESS ||
            name == nullptr)
            return std::nullopt;
        return name;
    }

    // Finds the module that a call concerns; nullopt if the driver does not say.
    [[nodiscard]] std::optional<ModuleCall> module_of(const CallSubject& subject) const
    {
        ModuleCall call;
        CUmodule module = subject.made != nullptr ? subject.made : subject.module;
        if (subject.made != nullptr) call.module = ModuleCall::Module::made;
        if (subject.library != nullptr) {
            if (m_driver.cuLibraryGetModule == nullptr) return std::nullopt;
            if (m_driver.status("cuLibraryGetModule", m_driver.cuLibraryGetModule, &module, subject.library) !=
                CUDA_SUCCESS)
                return std::nullopt;
        }
        call.library = subject.library;
        CUkernel kernel = subject.kernel;
        CUfunction function = subject.function;
        if (subject.kernel != nullptr && m_driver.status("cuKernelGetFunction", m_driver.cuKernelGetFunction, &function,
                                                         subject.kernel) != CUDA_SUCCESS)
            return std::nullopt;
        if (function != nullptr) {
            const auto found = driver_function(m_driver, function);
            if (!found) return std::nullopt;
            if (found->function != function) kernel = reinterpret_cast<CUkernel>(function);
            module = found->module;
            call.function = name_of(found->function);
            if (!call.function) return std::nullopt;
        }
        if (module == nullptr) return std::nullopt;
        call.handle = module;
        if (call.library == nullptr) call.library = library_of(kernel);
        return call;
    }

    [[nodiscard]] std::vector<std::string> functions_of(CUmodule module) const
    {
        unsigned int count = 0;
        if (m_driver.status("cuModuleGetFunctionCount", m_driver.cuModuleGetFunctionCount, &count, module) !=
            CUDA_SUCCESS)
            return {};
        std::vector<CUfunction> functions(count);
        if (m_driver.status("cuModuleEnumerateFunctions", m_driver.cuModuleEnumerateFunctions, functions.data(), count,
                            module) != CUDA_SUCCESS)
            return {};
        std::vector<std::string> names;
        for (CUfunction function : functions)
            if (auto name = name_of(function)) names.push_back(std::move(*name));
        return names;
    }

private:
    // Returns null if the kernel belongs to no library, or the driver is too old to say.
    [[nodiscard]] CUlibrary library_of(CUkernel kernel) const
    {
        CUlibrary library = nullptr;
        if (kernel == nullptr || m_driver.cuKernelGetLibrary == nullptr) return nullptr;
        const CUresult found = m_driver.status("cuKernelGetLibrary", m_driver.cuKernelGetLibrary, &library, kernel);
        return found == CUDA_SUCCESS ? library : nullptr;
    }

    // Marks driver calls that this library makes on this thread, so that they do not count as calls of the program.
    struct OwnCallScope {
        OwnCallScope() noexcept { t_open.is_own_call = true; }
        OwnCallScope(const OwnCallScope&) = delete;
        OwnCallScope& operator=(const OwnCallScope&) = delete;
        ~OwnCallScope() { t_open.is_own_call = false; }
    };
    const Driver& m_driver;
    OwnCallScope m_own_call; ///< destroyed last
    OutsideCapture m_outside;
};

void enter(const CUpti_CallbackData& data)
{
    // The exits of some calls were not reported, so the open calls are unreliable: forget them, and tie no image to
    // them.
    if (t_open.depth == t_open.calls.size()) t_open.depth = 0;
    t_open.calls[t_open.depth++] = {.id = data.correlationId, .images = 0};
}

/// True if the image names malloc's symbol, which code that calls malloc needs. memmem takes a tenth of the time of
/// std::string_view::find, which takes 3 ms for 1 MB because images are full of zeros.
bool names_malloc(ByteView image)
{
    constexpr std::string_view k_symbol{"\0malloc\0", 8};
    return memmem(image.data(), image.size(), k_symbol.data(), k_symbol.size()) != nullptr;
}

/// Searches the images that were not searched yet; true if any loaded image names malloc. REQUIRES: the state's mutex
/// is held.
bool search_for_malloc(State& tracker)
{
    auto& all = tracker.unsearched;
    tracker.saw_malloc =
        tracker.saw_malloc || std::ranges::any_of(all, [](const auto& image) { return names_malloc(*image); });
    all.clear();
    tracker.unsearched_bytes = 0;
    return tracker.saw_malloc;
}

void image_arrived(const CUpti_ModuleResourceData& data)
{
    if (t_open.depth == 0 || data.pCubin == nullptr) return; // no call to tie the image to
    auto& key = t_open.calls[t_open.depth - 1].images;
    if (key == 0) key = ++state().last_key;
    const auto* const begin = reinterpret_cast<const std::byte*>(data.pCubin);
    auto bytes = std::make_shared<const Bytes>(begin, begin + data.cubinSize);
    const std::lock_guard lock(state().mutex);
    // The image is searched later, on demand: it takes 0.3 ms for 1 MB, and the program is waiting for its library now.
    constexpr std::size_t k_most_unsearched = 256ULL << 20U; // bytes that are kept even if their module is unloaded
    if (!state().saw_malloc) {
        state().unsearched.push_back(bytes);
        state().unsearched_bytes += bytes->size();
    }
    if (state().unsearched_bytes > k_most_unsearched) static_cast<void>(search_for_malloc(state()));
    state().arrived[key].push_back({std::move(bytes), data.moduleId});
}

std::vector<LoadedImage> take_arrived(std::uint64_t key)
{
    if (key == 0) return {};
    const std::lock_guard lock(state().mutex);
    const auto node = state().arrived.extract(key);
    return node ? std::move(node.mapped()) : std::vector<LoadedImage>{};
}

std::size_t count_arrived(std::uint64_t key)
{
    const std::lock_guard lock(state().mutex);
    const auto found = state().arrived.find(key);
    return found != state().arrived.end() ? found->second.size() : 0;
}

/// Returns the owner of code at this address. nvcc puts code into the data of a program or library, behind a wrapper
/// that points to it ("FB", fatbinary_section.h: magic, version, data).
VariableAccess::Owner owner_of(const void* code)
{
    struct Wrapper {
        std::uint32_t magic, version;
        const void* data;
    };
    constexpr std::uint32_t k_magic = 0x466243b1;
    const auto is_in_library = [](const void* address) {
        Dl_info file{};
        return dladdr(address, &file) != 0 && file.dli_fname != nullptr && is_known_library(file.dli_fname);
    };
    if (code == nullptr) return VariableAccess::Owner::program;
    Wrapper wrapper{};
    std::memcpy(&wrapper.magic, code, sizeof(wrapper.magic)); // every form of code is longer than this
    if (wrapper.magic == k_magic) {
        std::memcpy(&wrapper, code, sizeof(wrapper));
        code = wrapper.data;
    }
    return is_in_library(code) ? VariableAccess::Owner::library : VariableAccess::Owner::program;
}

/// Notes who loaded the code of this call, and the variables whose addresses the program requested.
void see_variables(CUpti_CallbackId which, const void* params)
{
    VariableAccess& variables = state().variables;
    if (const auto loaded = loaded_code(which, params)) {
        if (loaded->library != nullptr) variables.library_made(loaded->library, owner_of(loaded->code));
        if (loaded->module != nullptr) variables.module_made(loaded->module, owner_of(loaded->code));
    }
    // Skip requests that this library makes itself.
    const auto asked = OutsideCapture::is_active() ? std::nullopt : variable_query(which, params);
    if (!asked || asked->name == nullptr) return;
    if (asked->library != nullptr) variables.asked_of_library(asked->library, asked->name);
    if (asked->module != nullptr) variables.asked_of_module(asked->module, asked->name);
}

void associate(CUpti_CallbackId which, const CUpti_CallbackData& data, const OpenCalls::Call& open)
{
    if (*static_cast<const CUresult*>(data.functionReturnValue) != CUDA_SUCCESS) return;
    see_variables(which, data.functionParams);
    const auto subject = subject_of(which, data.functionParams);
    if (!subject) return;
    if (open.images == 0) {
        // The module's code is loaded later (lazily). An older module with the same handle no longer exists.
        if (subject->made != nullptr) state().images.forget_module(subject->made);
        return;
    }
    std::optional<ModuleCall> call;
    {
        const DriverQuery driver(*state().driver);
        call = driver.module_of(*subject);
        if (!call) return;
        // A single image without an older one belongs to the module. Otherwise compare kernels.
        const bool is_plain = count_arrived(open.images) == 1 &&
                              (call->module == ModuleCall::Module::made || !state().images.is_known(call->handle));
        if (!call->function && !is_plain)
            call->all_functions = driver.functions_of(static_cast<CUmodule>(const_cast<void*>(call->handle)));
    }
    if (call->library != nullptr) state().variables.module_of_library(call->handle, call->library);
    call->context = data.context;
    state().images.associate(*call, take_arrived(open.images));
}

void leave(CUpti_CallbackId which, const CUpti_CallbackData& data)
{
    auto& open = t_open;
    std::size_t at = open.depth;
    while (at > 0 && open.calls[at - 1].id != data.correlationId) --at;
    if (at == 0) return; // the call began before we subscribed
    open.depth = at;
    // Keep the call open: images that the driver loads for our own questions belong to it.
    associate(which, data, open.calls[at - 1]);
    static_cast<void>(take_arrived(open.calls[at - 1].images));
    open.depth = at - 1;
}

void detach_if_asked(CUpti_CallbackId which, const CUpti_CallbackData& data);

void on_driver_call(CUpti_CallbackId which, const CUpti_CallbackData& data)
{
    detach_if_asked(which, data);
    if (t_open.is_own_call) return;
    if (is_watching() && data.callbackSite == CUPTI_API_EXIT) see_call(which, data);
    if (which == CUPTI_DRIVER_TRACE_CBID_cuModuleUnload) {
        // Forget the module before the unload: afterwards another thread may have got the same handle.
        if (data.callbackSite == CUPTI_API_ENTER) {
            const CUmodule module = static_cast<const cuModuleUnload_params*>(data.functionParams)->hmod;
            state().images.forget_module(module);
            state().variables.forget_module(module);
        }
        return;
    }
    if (!is_loading_call(which)) return; // this call is watched, but loads nothing
    if (data.callbackSite == CUPTI_API_ENTER)
        enter(data);
    else
        leave(which, data);
}

void on_resource(CUpti_CallbackId which, const CUpti_ResourceData& data)
{
    if (which == CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING) {
        state().images.forget_context(data.context);
        return;
    }
    const auto* const module = static_cast<const CUpti_ModuleResourceData*>(data.resourceDescriptor);
    if (module == nullptr) return;
    if (which == CUPTI_CBID_RESOURCE_MODULE_LOADED) image_arrived(*module);
    if (which == CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING) state().images.forget_image(module->moduleId);
}

void CUPTIAPI on_callback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId which, const void* data) noexcept
{
    try {
        if (domain == CUPTI_CB_DOMAIN_DRIVER_API)
            on_driver_call(which, *static_cast<const CUpti_CallbackData*>(data));
        else if (domain == CUPTI_CB_DOMAIN_RESOURCE)
            on_resource(which, *static_cast<const CUpti_ResourceData*>(data));
    } catch (...) { // NOLINT(bugprone-empty-catch)
        // Out of memory: the image stays unknown, and a recording that needs it is refused.
    }
}

Result<void> enable(const Cupti& cupti, CUpti_SubscriberHandle subscriber)
{
    const auto on = [&](CUpti_CallbackDomain domain, CUpti_CallbackId which) {
        return cupti.call("cuptiEnableCallback", cupti.cuptiEnableCallback, std::uint32_t{1}, subscriber, domain,
                          which);
    };
    for (const CUpti_CallbackId which : k_resource_events)
        if (auto done = on(CUPTI_CB_DOMAIN_RESOURCE, which); !done) return done;
    if (auto done = on(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuModuleUnload); !done) return done;
    for (const CUpti_CallbackId which : loading_calls()) {
        // An older CUPTI does not know the newest calls: images that those load stay unknown.
        if (auto done = on(CUPTI_CB_DOMAIN_DRIVER_API, which); !done)
            log().debug("CUPTI cannot report driver call {}: {}", which, done.error().message);
    }
    return {};
}

Result<void> enable_watched(const Cupti& cupti, CUpti_SubscriberHandle subscriber)
{
    for (const WatchedCall& call : watched_calls()) {
        auto done = cupti.call("cuptiEnableCallback", cupti.cuptiEnableCallback, std::uint32_t{1}, subscriber,
                               CUPTI_CB_DOMAIN_DRIVER_API, call.id);
        if (done) continue;
        if (!call.is_recent) return within(fmt::format("watch {}", call.name), done.error());
        log().debug("CUPTI cannot report {}: {}", call.name, done.error().message);
    }
    return {};
}

/// Attaches CUPTI. REQUIRES: the state's `start` is held; `driver` and `cupti` are set.
Result<void> attach(State& tracker)
{
    const Cupti& cupti = *tracker.cupti;
    if (auto done = cupti.call("cuptiSubscribe", cupti.cuptiSubscribe, &tracker.subscriber, &on_callback,
                               static_cast<void*>(nullptr));
        !done)
        return done;
    if (auto done = enable(cupti, tracker.subscriber); !done) {
        // NOLINTNEXTLINE(bugprone-unused-return-value): the first failure says more
        static_cast<void>(cupti.call("cuptiUnsubscribe", cupti.cuptiUnsubscribe, tracker.subscriber));
        return done;
    }
    tracker.is_running = true;
    return {};
}

/// Attaches CUPTI again after a pause. REQUIRES: `start` is held.
Result<void> attach_again(State& tracker)
{
    // Unloads during the pause were not seen, and handles are reused. Only the code of known libraries surely stays
    // loaded.
    tracker.images.forget_all_but([&](const void* module) { return tracker.variables.is_of_known_library(module); });
    {
        const std::lock_guard lock(tracker.mutex);
        tracker.saw_malloc = true; // code that calls malloc may have been loaded during the pause
        tracker.unsearched.clear();
        tracker.unsearched_bytes = 0;
    }
    return attach(tracker);
}

/// True on the thread that is detaching CUPTI, until its callback has done it.
constinit thread_local bool t_detaches = false;
constexpr CUpti_CallbackId k_detaching_call = CUPTI_DRIVER_TRACE_CBID_cuDriverGetVersion;

/// Detaches CUPTI at the end of a driver call, as cupti_activity.h demands (cuptiFinalize). The call itself is
/// harmless.
void detach_if_asked(CUpti_CallbackId which, const CUpti_CallbackData& data)
{
    if (!t_detaches || which != k_detaching_call || data.callbackSite != CUPTI_API_EXIT) return;
    const Cupti& cupti = *state().cupti;
    if (auto done = cupti.call("cuptiFinalize", cupti.cuptiFinalize); !done) {
        log().debug("device code is still kept: {}", done.error().message);
        return;
    }
    t_detaches = false;
}

/// Disables the callbacks of watches, except those that the tracker needs. A failure only costs time.
void disable_watched(const Cupti& cupti, CUpti_SubscriberHandle subscriber) noexcept
{
    for (const WatchedCall& call : watched_calls())
        if (!is_loading_call(call.id))
            // NOLINTNEXTLINE(bugprone-unused-return-value): the failure is harmless
            static_cast<void>(cupti.call("cuptiEnableCallback", cupti.cuptiEnableCallback, std::uint32_t{0}, subscriber,
                                         CUPTI_CB_DOMAIN_DRIVER_API, call.id));
}

} // namespace

bool tracking_requested() noexcept
{
    const char* const value = std::getenv("WARMGRAPH_TRACK_IMAGES");
    return value != nullptr && std::string_view(value) == "1";
}

Result<void> ImageTracker::start(const std::shared_ptr<const Driver>& driver, const CudaOptions& options)
{
    State& tracker = state();
    const std::lock_guard lock(tracker.start);
    if (tracker.is_running) return {};
    if (tracker.was_paused) return attach_again(tracker);
    auto cupti = Cupti::load(options.cupti);
    if (!cupti) return std::unexpected(std::move(cupti.error()));
    // `driver` is set before the first callback can come, and never changes.
    if (!tracker.driver) tracker.driver = driver;
    tracker.cupti = *cupti;
    return attach(tracker);
}

bool ImageTracker::pause() noexcept
try {
    State& tracker = state();
    const std::lock_guard lock(tracker.start);
    if (!tracker.is_running || tracker.watches != 0 || tracker.holds != 0) return false;
    const Cupti& cupti = *tracker.cupti;
    if (auto asked = cupti.call("cuptiEnableCallback", cupti.cuptiEnableCallback, std::uint32_t{1}, tracker.subscriber,
                                CUPTI_CB_DOMAIN_DRIVER_API, k_detaching_call);
        !asked) {
        log().debug("device code is still kept: {}", asked.error().message);
        return false;
    }
    t_detaches = true;
    int version = 0;
    static_cast<void>(tracker.driver->status("cuDriverGetVersion", tracker.driver->cuDriverGetVersion, &version));
    if (std::exchange(t_detaches, false)) return false; // other code detached CUPTI, or CUPTI refuses
    tracker.subscriber = nullptr;
    tracker.is_running = false;
    tracker.was_paused = true;
    return true;
} catch (const std::exception&) { // no memory for an error's text
    return false;
}

Result<void> ImageTracker::begin_hold()
{
    State& tracker = state();
    const std::lock_guard lock(tracker.start);
    if (!tracker.is_running && tracker.was_paused)
        if (auto attached = attach_again(tracker); !attached) return attached;
    ++tracker.holds;
    return {};
}

void ImageTracker::end_hold() noexcept
{
    State& tracker = state();
    const std::lock_guard lock(tracker.start);
    --tracker.holds;
}

bool ImageTracker::was_paused() noexcept { return state().was_paused; }

Result<void> ImageTracker::begin_watch()
{
    State& tracker = state();
    const std::lock_guard lock(tracker.start);
    if (!tracker.is_running && tracker.was_paused)
        if (auto attached = attach_again(tracker); !attached) return attached;
    if (!tracker.is_running)
        return fail(ErrorCode::not_recordable, "the work that a function enqueues cannot be watched, because CUPTI is "
                                               "not in use; call prepare_recording first");
    if (tracker.watches == 0)
        if (auto enabled = enable_watched(*tracker.cupti, tracker.subscriber); !enabled) {
            disable_watched(*tracker.cupti, tracker.subscriber);
            return enabled;
        }
    ++tracker.watches;
    return {};
}

void ImageTracker::end_watch() noexcept
{
    State& tracker = state();
    const std::lock_guard lock(tracker.start);
    if (--tracker.watches == 0) disable_watched(*tracker.cupti, tracker.subscriber);
}

bool ImageTracker::saw_malloc() noexcept
{
    const std::lock_guard lock(state().mutex);
    return search_for_malloc(state());
}

bool ImageTracker::is_running() noexcept { return state().is_running; }

const VariableAccess& ImageTracker::variables() noexcept { return state().variables; }

std::shared_ptr<const Bytes> ImageTracker::image_of(CUmodule module)
{
    return is_running() ? state().images.find(module) : nullptr;
}

} // namespace warmgraph::backends::cuda
