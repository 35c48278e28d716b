#include "verify/module_state.hpp"

#include <algorithm>
#include <unordered_set>

#include "classify/words.hpp"
#include "warmgraph/cachefmt/image_use.hpp"
#include "warmgraph/replay/exposure.hpp"

namespace warmgraph {

Result<ModuleState> read_module_state(std::span<backends::Module* const> modules)
{
    ModuleState state;
    for (backends::Module* module : modules) {
        auto variables = module->changed_variables();
        if (!variables) return within("read a module's variables", variables.error());
        std::ranges::sort(*variables, {}, &cachefmt::ModuleVariable::name);
        state.push_back(std::move(*variables));
    }
    return state;
}

Result<void> check_module_state(std::span<backends::Module* const> modules, const ModuleState& state,
                                const Interface& interface, std::span<const MemoryRef> regions,
                                const std::function<std::optional<MemoryRef>(std::uint64_t)>& allocation_at)
{
    if (!allocation_at) return {};           // without flat addresses no word is a pointer
    std::unordered_set<std::uint64_t> asked; // the device is asked once for each word
    const auto check = [&](const backends::Module& module, const cachefmt::ModuleVariable& variable,
                           std::size_t offset) -> Result<void> {
        const auto word = load<std::uint64_t>(variable.contents, offset);
        if (module.may_be_function(word) && !allocation_at(word))
            return fail(ErrorCode::not_recordable,
                        "the module variable '{}' holds at byte {} the value {:#x}, which may be the address of a "
                        "device function, and a new process has its functions at other addresses: choose the function "
                        "by a number in the kernel",
                        variable.name, offset, word);
        if (!may_be_pointer(word) || !asked.insert(word).second) return {};
        for (std::size_t i = 0; i < regions.size(); ++i)
            if (word - regions[i].address.flat() < regions[i].size)
                return fail(ErrorCode::not_recordable,
                            "the module variable '{}' holds at byte {} a pointer into '{}' ({:#x}), which a replay "
                            "could not follow: pass the pointer as a kernel parameter",
                            variable.name, offset, interface.regions[i].name, word);
        if (const auto allocation = allocation_at(word))
            return fail(ErrorCode::not_recordable,
                        "the module variable '{}' holds at byte {} a pointer ({:#x}, inside an allocation of {} "
                        "bytes), which a replay could not follow: declare the memory and pass the pointer as a kernel "
                        "parameter",
                        variable.name, offset, word, allocation->size);
        return {};
    };
    for (std::size_t i = 0; i < state.size(); ++i)
        for (const auto& variable : state[i])
            for (std::size_t at = 0; at + sizeof(std::uint64_t) <= variable.contents.size();
                 at += sizeof(std::uint64_t))
                if (auto checked = check(*modules[i], variable, at); !checked) return checked;
    return {};
}

namespace {

bool is_registered(backends::Device& device, const backends::Module& module)
{
    const auto own = device.registered_modules();
    return std::ranges::any_of(own, [&](const auto& one) { return one.get() == &module; });
}

} // namespace

namespace {

/// Whether the variable is a library's own and holds only addresses of the library's tables, which became slots.
bool holds_constants_alone(const cachefmt::ModuleVariable& variable)
{
    return !variable.slots.empty() &&
           std::ranges::all_of(variable.contents, [](std::byte byte) { return byte == std::byte{0}; });
}

} // namespace

Result<std::uint32_t> check_frozen(backends::Device& device, std::span<backends::Module* const> modules,
                                   const ModuleState& state, std::span<const std::string> frozen)
{
    std::uint32_t constants = 0;
    const auto is_frozen = [&](const std::string& name) {
        return std::ranges::any_of(frozen, [&](const auto& one) { return one == "*" || one == name; });
    };
    for (std::size_t i = 0; i < state.size(); ++i)
        for (const auto& variable : state[i]) {
            if (is_frozen(variable.name) || is_registered(device, *modules[i]) || holds_constants_alone(variable))
                continue;
            if (modules[i]->is_library_constant(variable.name)) {
                ++constants;
                continue;
            }
            return fail(ErrorCode::not_recordable,
                        "the module variable '{}' has other contents than in its image, and a later change could not "
                        "be detected: pass it as a kernel parameter, register its module (Device::register_module), or "
                        "promise that it does not change (Spec::frozen_variables)",
                        variable.name);
        }
    return constants;
}

Result<void> check_exposed(backends::Device& device, std::span<backends::Module* const> modules,
                           const ModuleState& state, std::span<const std::string> frozen)
{
    if (device.exposures() == 0) return {};
    for (std::size_t i = 0; i < modules.size(); ++i) {
        if (is_registered(device, *modules[i])) continue;
        auto image = modules[i]->image();
        if (!image) return std::unexpected(image.error());
        std::vector<std::string> known{frozen.begin(), frozen.end()};
        for (const auto& variable : state[i])
            if (holds_constants_alone(variable)) known.push_back(variable.name);
        if (auto checked = replay::check_exposed(device, *image, known); !checked) return checked;
    }
    return {};
}

Result<void> write_module_state(std::span<backends::Module* const> modules, const ModuleState& state,
                                const ModuleState& now)
{
    for (std::size_t i = 0; i < state.size(); ++i) {
        if (state[i] == now[i]) continue;
        if (auto written = modules[i]->restore_variables(state[i], now[i]); !written) return written;
    }
    return {};
}

Result<void> check_unchanged(const ModuleState& before, const ModuleState& after)
{
    for (std::size_t i = 0; i < before.size(); ++i) {
        if (before[i] == after[i]) continue;
        return fail(ErrorCode::not_recordable,
                    "the work changes the module variable '{}' from run to run: state that it keeps must be declared "
                    "(a read-write state in the Spec, passed to the kernel as a parameter)",
                    cachefmt::first_difference(before[i], after[i]));
    }
    return {};
}

} // namespace warmgraph
