// The C interface: functions, their calls and reports.
#include <vector>

#include "c_api.hpp"
#include "warmgraph/base/printable.hpp"
#include "warmgraph/facade/cache_access.hpp"

using namespace warmgraph;        // NOLINT: the functions of the C interface are in no namespace
using namespace warmgraph::c_api; // NOLINT

namespace {

const wg_function& need_function(const wg_function* function) { return need(function, "function", "one from wg_wrap"); }
const wg_report& need_report(const wg_report* report) { return need(report, "report", "one from wg_function_report"); }

/// Reads sizes or strides. The rank is checked before they are read.
std::vector<std::int64_t> to_extents(const std::int64_t* first, std::uint64_t rank, std::string_view of)
{
    if (rank > cachefmt::k_max_rank)
        refuse("'{}' has {} dimensions, expected at most {}", of, rank, cachefmt::k_max_rank);
    if (first == nullptr && rank != 0)
        refuse("the sizes of '{}' are null with {} dimensions: pass one for each", of, rank);
    return {first, first + rank};
}

} // namespace

std::vector<TensorDecl> c_api::to_tensors(const wg_tensor_decl* first, std::uint64_t count, std::string_view what)
{
    std::vector<TensorDecl> result;
    for (const wg_tensor_decl& decl : need_array(first, count, what)) {
        const char* name = need_text(decl.name, fmt::format("a name in {}", what));
        result.push_back({name, to_dtype(decl.dtype, name), to_extents(decl.sizes, decl.rank, name), {}});
    }
    return result;
}

namespace {

std::vector<ScalarDecl> to_scalars(const wg_scalar_decl* first, std::uint64_t count, std::string_view what)
{
    std::vector<ScalarDecl> result;
    for (const wg_scalar_decl& decl : need_array(first, count, what)) {
        const char* name = need_text(decl.name, fmt::format("a name in {}", what));
        result.push_back(decl.has_range != 0 ? scalar(name, to_dtype(decl.dtype, name), decl.low, decl.high)
                                             : scalar(name, to_dtype(decl.dtype, name)));
    }
    return result;
}

Access to_access(wg_access access, std::string_view of)
{
    switch (access) {
    case wg_access_read_write: return Access::read_write;
    case wg_access_read_only: return Access::read_only;
    default: refuse("state '{}' has the access {}, expected a wg_access", of, access);
    }
}

void set_layout(const wg_layout& from, const std::string& name, TensorDecl& decl)
{
    decl.dtype = to_dtype(from.dtype, name);
    decl.sizes = to_extents(from.sizes, from.rank, name);
    if (from.strides != nullptr) decl.strides = to_extents(from.strides, from.rank, name);
}

void set_layout(const wg_layout& from, const std::string& name, StateDecl& decl)
{
    decl.dtype = to_dtype(from.dtype, name);
    if (from.sizes != nullptr) decl.sizes = to_extents(from.sizes, from.rank, name);
    if (from.strides != nullptr) decl.strides = to_extents(from.strides, from.rank, name);
}

void set_layouts(const wg_function_spec& from, Spec& spec)
{
    // Arguments mostly come in the order of the declarations, so each search begins after the declaration that was
    // found last.
    std::size_t after_input = 0, after_output = 0, after_state = 0;
    for (const wg_layout& layout : need_array(from.layouts, from.layout_count, "layouts")) {
        const std::string name = need_text(layout.name, "a name in layouts");
        const auto set_in = [&](auto& decls, std::size_t& after) {
            for (std::size_t i = 0; i < decls.size(); ++i) {
                auto& decl = decls[(after + i) % decls.size()];
                if (decl.name != name) continue;
                set_layout(layout, name, decl);
                after = (after + i + 1) % decls.size();
                return true;
            }
            return false;
        };
        if (!set_in(spec.inputs, after_input) && !set_in(spec.outputs, after_output) &&
            !set_in(spec.states, after_state))
            refuse("layouts names '{}', which is not an input, output or state: name a declared one", name);
    }
}

} // namespace

Spec c_api::to_spec(const wg_function_spec& from)
{
    Spec spec;
    spec.inputs = to_tensors(from.inputs, from.input_count, "inputs");
    spec.outputs = to_tensors(from.outputs, from.output_count, "outputs");
    for (const wg_state_decl& decl : need_array(from.states, from.state_count, "states")) {
        const char* name = need_text(decl.name, "a name in states");
        spec.states.push_back({name, to_memory(decl.memory), to_access(decl.access, name), DType::u8, {}, {}});
    }
    set_layouts(from, spec);
    for (const wg_constant_decl& decl : need_array(from.constants, from.constant_count, "constants"))
        spec.constants.push_back({need_text(decl.name, "a name in constants"), to_memory(decl.memory)});
    if (from.max_constant_bytes != 0) spec.max_constant_bytes = from.max_constant_bytes;
    spec.undeclared = from.undeclared_constants != 0 ? Undeclared::constants : Undeclared::refuse;
    spec.scalars = to_scalars(from.scalars, from.scalar_count, "scalars");
    spec.values = to_scalars(from.values, from.value_count, "values");
    for (const wg_program* program : need_array(from.code, from.code_count, "code"))
        spec.code.push_back(need(program, "a program of code", "one from wg_program_create").program);
    spec.config = to_map(from.config, from.config_count, "the function's configuration");
    for (const char* name : need_array(from.environment, from.environment_count, "environment"))
        spec.environment.emplace_back(need_text(name, "a name in environment"));
    for (const char* name : need_array(from.frozen_variables, from.frozen_variable_count, "frozen_variables"))
        spec.frozen_variables.emplace_back(need_text(name, "a name in frozen_variables"));
    for (const char* name : need_array(from.no_addresses, from.no_address_count, "no_addresses"))
        spec.no_addresses.emplace_back(need_text(name, "a name in no_addresses"));
    spec.strict = from.strict != 0;
    if (from.version != nullptr) spec.version = from.version;
    spec.recorded_code = to_map(from.recorded_code, from.recorded_code_count, "the recorded code");
    if (from.metadata != nullptr) spec.metadata = from.metadata;
    spec.policy = to_policy(from.policy);
    spec.buckets = to_buckets(from);
    for (const wg_named_event& event : need_array(from.events, from.event_count, "events")) {
        const char* name = need_text(event.name, "a name in events");
        if (!spec.events.emplace(name, event.event).second) refuse("event '{}' is given twice", name);
    }
    for (const wg_named_semaphore& one : need_array(from.semaphores, from.semaphore_count, "semaphores")) {
        const char* name = need_text(one.name, "a name in semaphores");
        if (!spec.semaphores.emplace(name, one.semaphore).second) refuse("semaphore '{}' is given twice", name);
    }
    return spec;
}

wg_function_spec c_api::known_spec(const wg_function_spec* spec)
{
    wg_function_spec known{};
    copy_versioned(&known, sizeof known, &need(spec, "spec", "a wg_function_spec"), k_least_function_spec,
                   "wg_function_spec");
    need_text(known.name, "function name");
    return known;
}

Spec c_api::to_unnamed_spec(const wg_function_spec* from, const char* what)
{
    wg_function_spec known{};
    copy_versioned(&known, sizeof known, &need(from, what, "a wg_function_spec"), k_least_function_spec,
                   "wg_function_spec");
    return to_spec(known);
}

Callable c_api::to_callable(const std::string& name, wg_callback callback, void* user)
{
    return [name, callback, user](Recorder& run) {
        wg_recorder recorder{run};
        const std::uint64_t failures_before = last_failure().count;
        const int returned = callback(&recorder, user);
        const Failure& failure = last_failure();
        if (failure.count != failures_before) throw Exception(static_cast<ErrorCode>(failure.status), failure.text);
        if (returned != 0)
            throw CallbackFailed{fmt::format("the callback of '{}' returned {}, expected 0", name, returned)};
    };
}

Arg c_api::to_arg(const wg_arg& from)
{
    const char* name = need_text(from.name, "an argument's name");
    Arg arg{name, to_memory(from.memory)};
    switch (from.kind) {
    case wg_arg_memory: break;
    case wg_arg_tensor:
        arg.value =
            Tensor{to_memory(from.memory), to_dtype(from.dtype, name), to_extents(from.sizes, from.rank, name), {}};
        if (from.strides != nullptr) std::get<Tensor>(arg.value).strides = to_extents(from.strides, from.rank, name);
        break;
    case wg_arg_number: arg.value = Number{to_dtype(from.dtype, name), from.bits}; break;
    default: refuse("'{}' has the kind {}, expected a wg_arg_kind", name, from.kind);
    }
    return arg;
}

std::vector<Arg> c_api::to_args(const wg_arg* args, std::uint64_t count)
{
    std::vector<Arg> list;
    const auto given = need_array(args, count, "arguments");
    list.reserve(given.size());
    for (const wg_arg& arg : given) list.push_back(to_arg(arg));
    return list;
}

wg_status wg_wrap(wg_cache* cache, const wg_device* device, const wg_function_spec* spec, wg_callback callback,
                  void* user, wg_function** out)
{
    return guarded_handle(out, [&] {
        auto& owner = need(cache, "cache", "one from wg_cache_open").cache;
        const auto& target = need_device(device).device;
        const wg_function_spec known = known_spec(spec);
        const std::string name = known.name;
        if (callback == nullptr) refuse("the callback of '{}' is null: pass the function that enqueues its work", name);
        return new wg_function{CacheAccess::wrap(owner, name, target, to_spec(known), to_callable(name, callback, user),
                                                 reinterpret_cast<const void*>(callback))};
    });
}

wg_status wg_cache_load(wg_cache* cache, const wg_device* device, const wg_function_spec* spec, wg_function** out)
{
    return guarded_handle(out, [&] {
        auto& owner = need(cache, "cache", "one from wg_cache_open").cache;
        const auto& target = need_device(device).device;
        const wg_function_spec known = known_spec(spec);
        return new wg_function{owner.load(known.name, target, to_spec(known))};
    });
}

wg_status wg_function_destroy(wg_function* function)
{
    return guarded([&] { delete function; });
}

wg_status wg_bind(wg_function* function, const char* state, wg_memory memory)
{
    return guarded([&] {
        need_function(function);
        function->function.bind(need_text(state, "state name"), to_memory(memory));
    });
}

wg_status wg_call(wg_function* function, wg_stream* stream, const wg_arg* args, uint64_t count, wg_outcome* outcome)
{
    return guarded([&] {
        need_function(function);
        auto& target = need_stream(stream).stream;
        const Outcome happened = function->function.call(target, to_args(args, count));
        if (outcome != nullptr) *outcome = static_cast<wg_outcome>(happened);
    });
}

wg_status wg_call_uncaptured(wg_function* function, wg_stream* stream, const wg_arg* args, uint64_t count,
                             wg_outcome* outcome)
{
    return guarded([&] {
        need_function(function);
        auto& target = need_stream(stream).stream;
        const Outcome happened = function->function.call_uncaptured(target, to_args(args, count));
        if (outcome != nullptr) *outcome = static_cast<wg_outcome>(happened);
    });
}

// --- misses and reports

std::string c_api::misses_text(const std::vector<Miss>& misses)
{
    std::string lines;
    for (const Miss& miss : misses) {
        lines += fmt::format("{} {}: {}\n", miss.time, miss.end, miss.reason);
        for (const MissedFact& fact : miss.differences)
            lines += fmt::format("  {}: {} recorded, {} now\n", printable(fact.fact), printable(fact.recorded),
                                 printable(fact.now));
    }
    return lines;
}

wg_status wg_function_misses(const wg_function* function, char* text, uint64_t capacity, uint64_t* length)
{
    return guarded([&] { write_text(misses_text(need_function(function).function.misses()), text, capacity, length); });
}

wg_status wg_function_report(const wg_function* function, wg_report** out)
{
    return guarded_handle(out, [&] { return new wg_report{need_function(function).function.report()}; });
}

wg_status wg_report_destroy(wg_report* report)
{
    return guarded([&] { delete report; });
}

const char* wg_report_function(const wg_report* report)
{
    return guarded_get<const char*>(nullptr, [&] { return need_report(report).report.function.c_str(); });
}

wg_outcome wg_report_outcome(const wg_report* report)
{
    return guarded_get<wg_outcome>(-1, [&] { return static_cast<wg_outcome>(need_report(report).report.outcome); });
}

const char* wg_report_reason(const wg_report* report)
{
    return guarded_get<const char*>(nullptr, [&] { return need_report(report).report.reason.c_str(); });
}

const char* wg_report_entry(const wg_report* report)
{
    return guarded_get<const char*>(nullptr, [&] { return need_report(report).report.entry.c_str(); });
}

double wg_report_first_call_ms(const wg_report* report)
{
    return guarded_get<double>(0, [&] { return need_report(report).report.first_call_ms; });
}

uint64_t wg_report_recording_bytes(const wg_report* report)
{
    return guarded_get<uint64_t>(0, [&] { return need_report(report).report.recording_bytes; });
}

uint64_t wg_report_phase_count(const wg_report* report)
{
    return guarded_get<std::uint64_t>(0, [&] { return need_report(report).report.phases.size(); });
}

namespace {

const std::pair<std::string, double>& phase(const wg_report* report, std::uint64_t index)
{
    const auto& phases = need_report(report).report.phases;
    if (index >= phases.size()) refuse("there is no phase {}: the report has {} phases", index, phases.size());
    return phases[index];
}

} // namespace

const char* wg_report_phase_name(const wg_report* report, uint64_t index)
{
    return guarded_get<const char*>(nullptr, [&] { return phase(report, index).first.c_str(); });
}

double wg_report_phase_ms(const wg_report* report, uint64_t index)
{
    return guarded_get<double>(0, [&] { return phase(report, index).second; });
}
