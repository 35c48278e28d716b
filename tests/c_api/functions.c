/* Tests calls that succeed: devices, caches, functions, scalars, forks, events, states, reports. */
#include <stdio.h>
#include <string.h>

#include "checks.h"

void names_are_readable(void)
{
    unsigned major, minor, patch;
    CHECK(sscanf(wg_version(), "%u.%u.%u", &major, &minor, &patch) == 3);
    CHECK(contains(wg_backends(), "opencl"));
    CHECK(strcmp(wg_status_name(wg_ok), "ok") == 0);
    CHECK(strcmp(wg_status_name(wg_not_recordable), "not_recordable") == 0);
    CHECK(strcmp(wg_status_name(wg_internal), "internal") == 0);
    CHECK(strcmp(wg_status_name(99), "unknown") == 0);
    CHECK(strcmp(wg_outcome_name(wg_outcome_replayed), "replayed") == 0);
    CHECK(strcmp(wg_outcome_name(wg_outcome_refused), "refused") == 0);
    CHECK(strcmp(wg_outcome_name(-1), "unknown") == 0);
    CHECK(contains(wg_device_id(g_device), "opencl:"));
    CHECK(strlen(wg_device_name(g_device)) > 0);
}

struct received {
    int saved, nested, level;
};

static void receive(wg_log_level level, const char* line, void* user)
{
    struct received* lines = user;
    if (!contains(line, "saved toy/")) return;
    ++lines->saved;
    lines->level = level;
    lines->nested = wg_receive_log(NULL, NULL);
}

void log_lines_reach_the_host(void)
{
    struct received lines = {0, 0, -1};
    static const char* const k_caches[] = {"log", "little_log", "no_log"};
    for (int round = 0; round < 3; ++round) {
        OK(wg_receive_log(round < 2 ? receive : NULL, &lines));
        if (round == 1) OK(wg_limit_log(wg_log_warning));
        wg_cache* cache = open_cache(k_caches[round], wg_policy_read_write);
        call_add_one(cache);
        OK(wg_cache_close(cache));
    }
    CHECK(wg_limit_log(wg_log_error + 1) == wg_invalid_argument);
    CHECK(lines.saved == 1 && lines.level == wg_log_info && lines.nested == wg_invalid_argument);
}

static wg_kind_statistics statistics_of(const wg_cache* cache, wg_artifact_kind kind)
{
    wg_kind_statistics result = {.size = sizeof result};
    OK(wg_cache_kind_statistics(cache, kind, &result));
    return result;
}

static void check_recorded_report(const wg_function* function)
{
    wg_report* report = NULL;
    OK(wg_function_report(function, &report));
    CHECK(wg_report_outcome(report) == wg_outcome_recorded);
    CHECK(strcmp(wg_report_function(report), "add_one") == 0);
    CHECK(strcmp(wg_report_reason(report), "no entry") == 0);
    CHECK(strlen(wg_report_entry(report)) > 0);
    CHECK(wg_report_first_call_ms(report) > 0);
    CHECK(wg_report_recording_bytes(report) > 0);
    const uint64_t phases = wg_report_phase_count(report);
    CHECK(phases > 3);
    int recorded = 0;
    for (uint64_t i = 0; i < phases; ++i) {
        CHECK(wg_report_phase_ms(report, i) >= 0);
        recorded |= strcmp(wg_report_phase_name(report, i), "look") == 0;
    }
    CHECK(recorded);
    CHECK(wg_report_phase_name(report, phases) == NULL && contains(wg_last_error(), "there is no phase"));
    CHECK(wg_report_phase_ms(report, phases) == 0);
    OK(wg_report_destroy(report));
}

void a_second_cache_replays_what_the_first_recorded(void)
{
    const wg_function_spec spec = vector_spec("add_one");
    wg_buffer* later = floats(10);
    int runs = 0;
    wg_cache* cache = open_cache("replay", wg_policy_read_write);
    CHECK(wg_cache_disabled_reason(cache)[0] == '\0');
    CHECK(wg_cache_directory(cache)[0] == '/');
    CHECK(wg_cache_folder(NULL)[0] == '/' && wg_cache_folder("a/../b/")[0] == '/');
    CHECK(contains(wg_cache_folder("a/../b/"), "/b") && !contains(wg_cache_folder("a/../b/"), ".."));
    wrapped it = wrap_in(cache, &spec, add_one, &runs);
    CHECK(call(&it) == wg_outcome_recorded && runs > 1 && holds(it.y, 1, 1));
    it.args[0] = memory_arg("x", later);
    CHECK(call(&it) == wg_outcome_replayed && holds(it.y, 11, 1));
    check_recorded_report(it.function);
    const wg_kind_statistics then = statistics_of(cache, wg_kind_entries);
    CHECK(then.made == 1 && then.misses == 1 && then.hits == 0 && then.refused == 0 && then.making_ms > 0);
    char reasons[64];
    OK(wg_cache_miss_reasons(cache, wg_kind_entries, reasons, sizeof reasons, NULL));
    CHECK(strcmp(reasons, "add_one: no entry") == 0);
    OK(wg_cache_miss_reasons(cache, wg_kind_tuned, reasons, sizeof reasons, NULL));
    CHECK(strcmp(reasons, "") == 0);
    char misses[256];
    OK(wg_function_misses(it.function, misses, sizeof misses, NULL));
    CHECK(contains(misses, "Z recorded: no entry\n"));
    OK(wg_function_misses(it.function, NULL, 0, NULL));
    end(&it);

    runs = 0;
    cache = open_cache("replay", wg_policy_require_hit);
    it = wrap_in(cache, &spec, add_one, &runs);
    CHECK(call(&it) == wg_outcome_replayed && runs == 0 && holds(it.y, 1, 1));
    const wg_kind_statistics now = statistics_of(cache, wg_kind_entries);
    CHECK(now.hits == 1 && now.misses == 0 && now.load_ms > 0);
    wg_statistics all = {.size = sizeof all};
    OK(wg_cache_statistics(cache, &all));
    CHECK(all.images_loaded == 1 && all.cache_faults == 0);
    char summary[256], cut[12];
    uint64_t length = 0;
    OK(wg_cache_summary(cache, summary, sizeof summary, &length));
    CHECK(contains(summary, "warmgraph: 1 hit, 0 misses") && strlen(summary) == length);
    OK(wg_cache_summary(cache, cut, sizeof cut, &length));
    CHECK(strcmp(cut, "warmgraph: ") == 0 && length > sizeof cut);
    OK(wg_cache_summary(cache, NULL, 0, &length));
    CHECK(strlen(summary) == length);
    end(&it);
    OK(wg_buffer_destroy(later));
}

/* No other test compiles this program: a process compiles a program only once. */
static const char* const k_counted_kernel =
    "__kernel void add_one(__global const float* x, __global float* y) { size_t i "
    "= get_global_id(0); y[i] = 1 + x[i]; }";

void kinds_are_counted_apart(void)
{
    wg_program* const shared = g_program;
    OK(wg_program_create(g_device, "counted", k_counted_kernel, NULL, &g_program));
    wg_cache* cache = open_cache("counted", wg_policy_read_write);
    CHECK(call_add_one(cache) == wg_outcome_recorded);
    const wg_kind_statistics entries = statistics_of(cache, wg_kind_entries),
                             programs = statistics_of(cache, wg_kind_compiled);
    CHECK(entries.made == 1 && entries.misses == 1 && entries.hits == 0 && entries.refused == 0);
    CHECK(programs.made == 1 && programs.misses == 1 && programs.hits == 0 && programs.making_ms > 0);
    CHECK(statistics_of(cache, wg_kind_tuned).misses == 0 && statistics_of(cache, wg_kind_torch).misses == 0);
    char reasons[256];
    OK(wg_cache_miss_reasons(cache, wg_kind_compiled, reasons, sizeof reasons, NULL));
    CHECK(strncmp(reasons, "counted: ", 9) == 0);
    OK(wg_cache_close(cache));
    OK(wg_program_destroy(g_program));
    g_program = shared;
}

void a_function_outlives_its_cache_and_device_handles(void)
{
    const wg_function_spec spec = vector_spec("add_one");
    wg_buffer *x = floats(0), *y = room();
    const wg_arg args[] = {memory_arg("x", x), memory_arg("y", y)};
    wg_device* device = NULL;
    wg_stream* stream = NULL;
    wg_function* function = NULL;
    wg_outcome outcome = -1;
    wg_cache* cache = open_cache("outlives", wg_policy_read_write);
    OK(wg_device_open(wg_device_id(g_device), &device));
    OK(wg_stream_create(device, &stream));
    OK(wg_wrap(cache, device, &spec, add_one, NULL, &function));
    OK(wg_cache_close(cache));
    OK(wg_device_close(device));
    OK(wg_call(function, stream, args, 2, NULL));
    OK(wg_stream_synchronize(stream));
    CHECK(holds(y, 1, 1));
    OK(wg_call(function, stream, args, 2, &outcome));
    CHECK(outcome == wg_outcome_replayed);
    OK(wg_stream_synchronize(stream));
    CHECK(wg_stream_is_capturing(stream) == 0 && wg_stream_is_capturing(NULL) == 0);
    outcome = -1;
    OK(wg_call_uncaptured(function, stream, args, 2, &outcome));
    CHECK(outcome == wg_outcome_replayed);
    OK(wg_stream_synchronize(stream));
    FAILS(wg_call_uncaptured(function, stream, args, 1, NULL), wg_invalid_argument, "'y' is missing");
    FAILS(wg_call_uncaptured(NULL, stream, args, 2, NULL), wg_invalid_argument, "function");
    OK(wg_function_destroy(function));
    OK(wg_stream_destroy(stream));
    DESTROY_BUFFERS(x, y);
}

static int g_captured_runs;

/* y = (x + n) * f */
static int shift_and_scale(wg_recorder* recorder, void* user)
{
    (void)user;
    wg_address x, y, between;
    int32_t n = 0;
    float f = 0;
    if (wg_recorder_address(recorder, "x", &x) != wg_ok || wg_recorder_address(recorder, "y", &y) != wg_ok ||
        wg_recorder_alloc(recorder, "between", k_bytes, &between) != wg_ok ||
        wg_recorder_scalar(recorder, "n", wg_i32, &n) != wg_ok ||
        wg_recorder_scalar(recorder, "f", wg_f32, &f) != wg_ok)
        return 1;
    wg_stream* stream = wg_recorder_stream(recorder);
    g_captured_runs += wg_stream_is_capturing(stream);
    const wg_kernel_arg shift[] = {at(x), at(between), {.kind = wg_kernel_arg_value, .value = &n, .bytes = sizeof n}};
    const wg_kernel_arg scale[] = {at(between), at(y), {.kind = wg_kernel_arg_value, .value = &f, .bytes = sizeof f}};
    return launch(stream, "add_int", shift, 3) != wg_ok || launch(stream, "scale", scale, 3) != wg_ok;
}

static wg_arg int_arg(const char* name, int32_t value)
{
    wg_arg arg = {.name = name, .kind = wg_arg_number, .dtype = wg_i32};
    memcpy(&arg.bits, &value, sizeof value);
    return arg;
}

static wg_arg float_arg(const char* name, float value)
{
    wg_arg arg = {.name = name, .kind = wg_arg_number, .dtype = wg_f32};
    memcpy(&arg.bits, &value, sizeof value);
    return arg;
}

struct destroyed {
    wg_function* function;
    int runs;
};

static int destroys_its_function(wg_recorder* recorder, void* user)
{
    struct destroyed* own = user;
    ++own->runs;
    OK(wg_function_destroy(own->function));
    own->function = NULL;
    return add_one(recorder, NULL);
}

void a_function_may_be_destroyed_by_its_own_callback(void)
{
    const wg_function_spec spec = vector_spec("add_one");
    struct destroyed own = {NULL, 0};
    wrapped it = wrap_in(open_cache("destroyed", wg_policy_read_write), &spec, destroys_its_function, &own);
    own.function = it.function;
    CHECK(call(&it) == wg_outcome_refused && own.runs == 1 && own.function == NULL);
    CHECK(holds(it.y, 1, 1));
    it.function = NULL;
    end(&it);
}

void scalars_are_patched_at_every_call(void)
{
    static const wg_scalar_decl scalars[] = {{"n", wg_i32, 1, -8, 1000}, {"f", wg_f32, 1, 0.25, 8}};
    wg_function_spec spec = vector_spec("shift_and_scale");
    spec.scalars = scalars;
    spec.scalar_count = 2;
    for (int round = 0; round < 2; ++round) {
        wg_cache* cache = open_cache("scalars", round == 0 ? wg_policy_read_write : wg_policy_require_hit);
        const wrapped it = wrap_in(cache, &spec, shift_and_scale, NULL);
        const int32_t shifts[] = {3, -2, 700};
        for (int i = 0; i < 3; ++i) {
            const wg_arg args[] = {it.args[0], it.args[1], int_arg("n", shifts[i]), float_arg("f", 0.5F)};
            wg_outcome outcome = -1;
            OK(wg_call(it.function, wg_device_stream(g_device), args, 4, &outcome));
            CHECK(outcome == (round == 0 && i == 0 ? wg_outcome_recorded : wg_outcome_replayed));
            CHECK(holds(it.y, 0.5F * (float)shifts[i], 0.5F));
        }
        CHECK(g_captured_runs > 0);
        end(&it);
    }
}

/* A callback that computes y = (x + 1) + (2 filled) + x. The two parts that are added run in two streams. */
static int fork_and_join(wg_recorder* recorder, void* user)
{
    (void)user;
    const float two = 2;
    wg_address x, y, left, right, copied;
    wg_stream *stream = wg_recorder_stream(recorder), *forked = NULL;
    if (wg_recorder_address(recorder, "x", &x) != wg_ok || wg_recorder_address(recorder, "y", &y) != wg_ok ||
        wg_recorder_alloc(recorder, "left", k_bytes, &left) != wg_ok ||
        wg_recorder_alloc(recorder, "right", k_bytes, &right) != wg_ok ||
        wg_recorder_alloc(recorder, "copied", k_bytes, &copied) != wg_ok ||
        wg_recorder_fork(recorder, &forked) != wg_ok)
        return 1;
    const wg_kernel_arg one[] = {at(x), at(left)}, first[] = {at(left), at(right), at(y)},
                        second[] = {at(y), at(copied), at(y)};
    return launch(stream, "add_one", one, 2) != wg_ok || wg_fill(forked, right, &two, sizeof two, k_bytes) != wg_ok ||
           wg_copy(forked, copied, x, k_bytes) != wg_ok || wg_recorder_join(recorder, forked) != wg_ok ||
           launch(stream, "add", first, 3) != wg_ok || launch(stream, "add", second, 3) != wg_ok;
}

void forks_scratch_copies_and_fills_are_replayed(void)
{
    const wg_function_spec spec = vector_spec("fork_and_join");
    for (int round = 0; round < 2; ++round) {
        wg_cache* cache = open_cache("forks", round == 0 ? wg_policy_read_write : wg_policy_require_hit);
        const wrapped it = wrap_in(cache, &spec, fork_and_join, NULL);
        CHECK(call(&it) == (round == 0 ? wg_outcome_recorded : wg_outcome_replayed));
        CHECK(holds(it.y, 3, 2));
        end(&it);
    }
}

void events_order_streams(void)
{
    wg_buffer *x = floats(0), *y = room();
    const wg_address from = wg_buffer_memory(x).address, to = wg_buffer_memory(y).address;
    const wg_kernel_arg args[] = {at(from), at(to)}, back[] = {at(to), at(from)};
    wg_stream *first = NULL, *second = NULL;
    wg_event* event = NULL;
    OK(wg_stream_create(g_device, &first));
    OK(wg_stream_create(g_device, &second));
    OK(launch(first, "add_one", args, 2));
    OK(wg_stream_record(first, &event));
    OK(wg_stream_wait(second, event));
    OK(wg_event_destroy(event));
    OK(launch(second, "add_one", back, 2));
    OK(wg_stream_synchronize(second));
    CHECK(holds(x, 2, 1));
    OK(wg_stream_destroy(first));
    OK(wg_stream_destroy(second));
    DESTROY_BUFFERS(x, y);
}

/* A callback that computes state += x for all elements of x. */
static int accumulate(wg_recorder* recorder, void* user)
{
    (void)user;
    wg_address x, state;
    const int64_t* sizes = NULL;
    uint64_t rank = 0;
    wg_dtype dtype = -1;
    if (wg_recorder_address(recorder, "x", &x) != wg_ok || wg_recorder_address(recorder, "state", &state) != wg_ok ||
        wg_recorder_sizes(recorder, "x", &sizes, &rank) != wg_ok || wg_recorder_dtype(recorder, "x", &dtype) != wg_ok)
        return 1;
    if (rank != 1 || dtype != wg_f32) return 2;
    const uint32_t grid[3] = {(uint32_t)sizes[0] / 16, 1, 1};
    const wg_kernel_arg args[] = {at(state), at(x)};
    return wg_launch(wg_recorder_stream(recorder), g_program, "accumulate", grid, k_block, args, 2) != wg_ok;
}

void states_move_and_tensors_change_shape(void)
{
    static const int64_t half[] = {k_count / 2};
    wg_buffer *x = floats(0), *here = floats(100), *there = floats(200);
    const wg_state_decl state = {"state", wg_buffer_memory(here), wg_access_read_write};
    wg_function_spec spec = vector_spec("accumulate");
    spec.outputs = NULL;
    spec.output_count = 0;
    spec.states = &state;
    spec.state_count = 1;
    wg_cache* cache = open_cache("states", wg_policy_read_write);
    wg_function* function = NULL;
    wg_outcome outcome = -1;
    const wg_arg whole = memory_arg("x", x);
    OK(wg_wrap(cache, g_device, &spec, accumulate, NULL, &function));
    OK(wg_call(function, wg_device_stream(g_device), &whole, 1, &outcome));
    CHECK(outcome == wg_outcome_recorded);
    CHECK(holds(here, 100, 2));
    OK(wg_bind(function, "state", wg_buffer_memory(there)));
    OK(wg_call(function, wg_device_stream(g_device), &whole, 1, &outcome));
    CHECK(outcome == wg_outcome_replayed);
    CHECK(holds(there, 200, 2) && holds(here, 100, 2));

    wg_arg part = whole;
    part.kind = wg_arg_tensor;
    part.dtype = wg_f32;
    part.rank = 1;
    part.sizes = half;
    OK(wg_call(function, wg_device_stream(g_device), &part, 1, &outcome));
    CHECK(outcome == wg_outcome_recorded); /* recorded, because this is another variant */
    float values[k_count];
    OK(wg_device_synchronize(g_device));
    OK(wg_buffer_download(there, values, k_bytes, 0));
    CHECK(values[1] == 203 && values[k_count - 1] == 200 + 2 * (k_count - 1));
    OK(wg_function_destroy(function));
    OK(wg_cache_close(cache));
    DESTROY_BUFFERS(x, here, there);
}

void misses_are_recorded_on_demand(void)
{
    const wg_function_spec spec = vector_spec("add_one");
    wg_cache_options options = cache_options("on_demand", wg_policy_read_write);
    options.record_on_demand = 1;
    const wrapped it = wrap_in(open_with(options), &spec, add_one, NULL);
    uint64_t recorded = 0;
    CHECK(call(&it) == wg_outcome_eager);
    OK(wg_device_synchronize(g_device));
    OK(wg_record_pending(it.cache, &recorded));
    CHECK(recorded == 1);
    CHECK(call(&it) == wg_outcome_replayed);
    OK(wg_record_pending(it.cache, &recorded));
    CHECK(recorded == 0);
    end(&it);
}

void entries_are_shown_and_cleared(void)
{
    wg_cache* cache = open_cache("clear", wg_policy_read_write);
    call_add_one(cache);
    uint64_t length = 0, removed = 0;
    OK(wg_cache_readable(cache, "add_one", NULL, 0, &length));
    CHECK(length > 100);
    OK(wg_cache_clear(cache, "other", NULL, &removed));
    CHECK(removed == 0);
    FAILS(wg_cache_clear(cache, NULL, "images", &removed), wg_invalid_argument, "the kind 'images'");
    FAILS(wg_cache_clear(cache, "other", "tuned", &removed), wg_invalid_argument, "only entries belong to a function");
    OK(wg_cache_clear(cache, NULL, "tuned", &removed));
    CHECK(removed == 0);
    OK(wg_cache_clear(cache, NULL, "entries", &removed));
    CHECK(removed == 1);
    OK(wg_cache_readable(cache, "add_one", NULL, 0, &length));
    CHECK(length == 0);
    OK(wg_cache_close(cache));
}

void policies_and_unusable_folders_are_obeyed(void)
{
    wg_function_spec spec = vector_spec("add_one");
    wg_outcome outcome = -1;
    wrapped it = wrap_in(open_cache("policies", wg_policy_require_hit), &spec, add_one, NULL);
    FAILS(wg_call(it.function, wg_device_stream(g_device), it.args, 2, &outcome), wg_miss_forbidden,
          "policy require_hit");
    OK(wg_function_destroy(it.function));
    spec.name = "as_it_is";
    spec.policy = wg_policy_off;
    OK(wg_wrap(it.cache, g_device, &spec, add_one, NULL, &it.function));
    CHECK(call(&it) == wg_outcome_eager && holds(it.y, 1, 1));
    end(&it);

    char path[256];
    snprintf(path, sizeof path, "%s/a_file", g_folder);
    FILE* file = fopen(path, "w");
    CHECK(file != NULL && fclose(file) == 0);
    wg_cache* cache = open_cache("a_file", wg_policy_read_write);
    CHECK(strlen(wg_cache_disabled_reason(cache)) > 0);
    CHECK(call_add_one(cache) == wg_outcome_eager);
    OK(wg_cache_close(cache));
}

/* Calls add_one once in a new cache with these keys. Returns the outcome, and the number of untrusted entries. */
static wg_outcome outcome_with(const char* sign_with, const char* const* accept, uint64_t accept_count,
                               uint64_t* untrusted)
{
    wg_cache_options options = cache_options("signed", wg_policy_read_write);
    options.sign_with = sign_with;
    options.accept_keys = accept;
    options.accept_key_count = accept_count;
    options.require_signed = sign_with != NULL || accept_count != 0;
    wg_cache* cache = open_with(options);
    const wg_outcome outcome = call_add_one(cache);
    wg_statistics statistics = {.size = sizeof statistics};
    OK(wg_cache_statistics(cache, &statistics));
    *untrusted = statistics.untrusted;
    OK(wg_cache_close(cache));
    return outcome;
}

void signatures_are_required_on_demand(void)
{
    static const char key[] = "c:hmac-sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    static const char other[] = "d:hmac-sha256:ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    const char* const accepted[] = {other, key};
    uint64_t untrusted = 9;
    CHECK(outcome_with(NULL, NULL, 0, &untrusted) == wg_outcome_recorded && untrusted == 0);
    CHECK(outcome_with(NULL, accepted, 2, &untrusted) == wg_outcome_eager && untrusted == 1);
    CHECK(outcome_with(key, NULL, 0, &untrusted) == wg_outcome_recorded && untrusted == 1);
    CHECK(outcome_with(NULL, accepted, 2, &untrusted) == wg_outcome_replayed && untrusted == 0);
    CHECK(outcome_with(NULL, accepted, 1, &untrusted) == wg_outcome_eager && untrusted == 1);
}
