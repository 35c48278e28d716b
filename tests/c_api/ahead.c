/* Tests functions without a callback, preloaded entries, foreign graphs, and functions that only some devices have. */
#include <string.h>

#include "checks.h"

static wg_function_spec versioned_spec(const char* name)
{
    wg_function_spec spec = vector_spec(name);
    spec.version = "1";
    return spec;
}

/* Records add_one under each of these names. */
static void record(const char* folder, const char* const* names, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        const wg_function_spec spec = versioned_spec(names[i]);
        const wrapped it = wrap_in(open_cache(folder, wg_policy_read_write), &spec, add_one, NULL);
        CHECK(call(&it) == wg_outcome_recorded);
        end(&it);
    }
}

void layouts_say_more_than_declarations(void)
{
    static const int64_t sizes[] = {k_count / 2, 2}, strides[] = {1, k_count / 2};
    wg_function_spec spec = versioned_spec("f");
    wg_buffer* kept = floats(0);
    const wg_state_decl states[] = {{"kept", wg_buffer_memory(kept), wg_access_read_write}};
    wg_layout layouts[] = {
        {"x", wg_f32, 2, sizes, strides}, {"kept", wg_f16, 0, NULL, NULL}, {"y", wg_f32, 2, sizes, NULL}};
    spec.states = states, spec.state_count = 1;
    spec.layouts = layouts, spec.layout_count = 3;
    char text[8192];
    wrapped it = wrap_in(open_cache("layouts", wg_policy_read_write), &spec, add_one, NULL);
    CHECK(call(&it) == wg_outcome_recorded);
    OK(wg_cache_readable(it.cache, "f", text, sizeof text, NULL));
    CHECK(contains(text, "f32[32,2] strides 1,32") && contains(text, "f16[128]"));
    OK(wg_function_destroy(it.function));

#define WRAP_FAILS(part)                                                                                               \
    FAILS(wg_wrap(it.cache, g_device, &spec, add_one, NULL, &it.function), wg_invalid_argument, (part))
    layouts[0].dtype = 99, WRAP_FAILS("'x'");
    layouts[0].dtype = wg_f32, layouts[0].sizes = NULL, WRAP_FAILS("the sizes of 'x' are null");
    layouts[0].name = "z", WRAP_FAILS("layouts names 'z'");
    layouts[0].name = NULL, WRAP_FAILS("a name in layouts is null");
    spec.layouts = NULL, WRAP_FAILS("layouts is null with 3 elements");
#undef WRAP_FAILS
    end(&it);
    OK(wg_buffer_destroy(kept));
}

void loaded_functions_replay_and_say_why_they_miss(void)
{
    static const char* const names[] = {"f"};
    record("load", names, 1);
    wg_cache* cache = open_cache("load", wg_policy_read_write);
    wg_function_spec spec = versioned_spec("f"), other = versioned_spec("f");
    const wrapped it = load_from(cache, &spec);
    CHECK(call(&it) == wg_outcome_replayed && holds(it.y, 1, 1));
    OK(wg_function_destroy(it.function));
    wg_function* function = NULL;
    other.version = "2";
    OK(wg_cache_load(cache, g_device, &other, &function));
    FAILS(wg_call(function, wg_device_stream(g_device), it.args, 2, NULL), wg_miss_forbidden, "code.version");
    OK(wg_function_destroy(function));

    spec.version = NULL;
    FAILS(wg_cache_load(cache, g_device, &spec, &function), wg_invalid_argument, "Spec::version");
    CHECK(function == NULL);
    FAILS(wg_cache_load(NULL, g_device, &spec, &function), wg_invalid_argument, "cache is null");
    FAILS(wg_cache_load(cache, NULL, &spec, &function), wg_invalid_argument, "device is null");
    FAILS(wg_cache_load(cache, g_device, NULL, &function), wg_invalid_argument, "spec is null");
    FAILS(wg_cache_load(cache, g_device, &spec, NULL), wg_invalid_argument, "out is null");
    OK(wg_cache_close(cache));
    DESTROY_BUFFERS(it.x, it.y);
}

struct seen {
    int calls;
    uint64_t loaded;
    char order[8];
};

static int32_t last_name_first(const char* function, const wg_tensor_decl* inputs, uint64_t count, void* user)
{
    (void)user;
    CHECK(count == 1 && strcmp(inputs[0].name, "x") == 0 && inputs[0].rank == 1 && inputs[0].sizes[0] == k_count);
    return function[0];
}

static void note(const wg_preload_progress* progress, const char* function, void* user)
{
    struct seen* seen = user;
    seen->order[seen->calls++] = function[0];
    seen->loaded = progress->loaded;
    CHECK(progress->size == sizeof *progress && progress->total == 3 && progress->elapsed_ms >= 0);
}

void entries_are_preloaded(void)
{
    static const char* const names[] = {"a", "c", "b"};
    record("open", names, 3);
    wg_cache* cache = open_cache("open", wg_policy_require_hit);
    wg_function* functions[3] = {NULL, NULL, NULL};
    for (int i = 0; i < 3; ++i) {
        const wg_function_spec spec = versioned_spec(names[i]);
        OK(wg_cache_load(cache, g_device, &spec, &functions[i]));
    }
    struct seen seen = {0};
    wg_preload_options options = {.size = sizeof options};
    options.threads = 1; /* one thread, because several threads report in the order in which they finish */
    options.urgency = last_name_first;
    options.progress = note;
    options.user = &seen;
    wg_preload* preload = NULL;
    OK(wg_cache_preload(cache, &options, &preload));
    OK(wg_preload_wait(preload));
    wg_preload_progress progress = {.size = sizeof progress};
    OK(wg_preload_progress_of(preload, &progress));
    CHECK(progress.size == sizeof progress && progress.loaded == 3 && progress.failed == 0 && progress.total == 3);
    CHECK(seen.calls == 3 && seen.loaded == 3 && strcmp(seen.order, "cba") == 0);

    struct {
        wg_preload_progress known;
        uint64_t further;
    } newer = {{.size = sizeof newer}, 7};
    OK(wg_preload_progress_of(preload, &newer.known));
    CHECK(newer.known.total == 3 && newer.further == 0);
    progress.size = 8;
    FAILS(wg_preload_progress_of(preload, &progress), wg_invalid_argument, "wg_preload_progress has the size 8");
    FAILS(wg_preload_progress_of(preload, NULL), wg_invalid_argument, "out is null");
    OK(wg_preload_destroy(preload));

    wg_buffer *x = floats(1), *y = room();
    const wg_arg args[] = {memory_arg("x", x), memory_arg("y", y)};
    wg_outcome outcome = -1;
    for (int i = 0; i < 3; ++i) {
        OK(wg_call(functions[i], wg_device_stream(g_device), args, 2, &outcome));
        CHECK(outcome == wg_outcome_replayed);
        CHECK(holds(y, 2, 1));
        OK(wg_function_destroy(functions[i]));
    }
    OK(wg_cache_preload(cache, NULL, &preload)); /* all functions are preloaded already */
    OK(wg_preload_destroy(preload));
    OK(wg_preload_destroy(NULL));
    FAILS(wg_cache_preload(NULL, NULL, &preload), wg_invalid_argument, "cache is null");
    CHECK(preload == NULL);
    OK(wg_cache_preload(cache, NULL, NULL)); /* no object is returned, so the preload continues in the background */
    options.wait = 9;
    FAILS(wg_cache_preload(cache, &options, &preload), wg_invalid_argument, "wait is 9");
    options.size = 4;
    FAILS(wg_cache_preload(cache, &options, &preload), wg_invalid_argument, "wg_preload_options has the size 4");
    FAILS(wg_preload_wait(NULL), wg_invalid_argument, "preload is null");
    OK(wg_cache_close(cache));
    DESTROY_BUFFERS(x, y);
}

void calls_that_their_caller_refuses_are_counted(void)
{
    wg_cache* cache = open_cache("refused", wg_policy_read_write);
    wg_refusal refusal = {
        .size = sizeof refusal, .word = "a_counter", .text = "a counter changes: pass it", .calls = 3};
    wg_kind_statistics statistics = {.size = sizeof statistics};
    OK(wg_cache_note_refusal(cache, g_device, "f", &refusal));
    refusal.calls = 2;
    OK(wg_cache_note_refusal(cache, g_device, "f", &refusal));
    OK(wg_cache_kind_statistics(cache, wg_kind_entries, &statistics));
    CHECK(statistics.refused == 5);
    FAILS(wg_cache_note_refusal(cache, g_device, "../f", &refusal), wg_invalid_argument, "function name");
    refusal.text = "";
    FAILS(wg_cache_note_refusal(cache, g_device, "f", &refusal), wg_invalid_argument, "is empty");
    refusal.text = NULL;
    FAILS(wg_cache_note_refusal(cache, g_device, "f", &refusal), wg_invalid_argument, "text is null");
    refusal.size = 0;
    FAILS(wg_cache_note_refusal(cache, g_device, "f", &refusal), wg_invalid_argument, "wg_refusal has the size 0");
    FAILS(wg_cache_note_refusal(cache, g_device, "f", NULL), wg_invalid_argument, "refusal is null");
    FAILS(wg_cache_note_refusal(NULL, g_device, "f", &refusal), wg_invalid_argument, "cache is null");
    OK(wg_cache_close(cache));
}

void a_watch_sees_nothing_here(void)
{
    wg_stream* stream = NULL;
    wg_watch* watch = NULL;
    char text[64] = "?";
    OK(wg_stream_create(g_device, &stream));
    OK(wg_stream_watch(stream, &watch));
    OK(wg_watch_stray(watch, text, sizeof text, NULL));
    CHECK(text[0] == '\0');
    OK(wg_watch_destroy(watch));
    OK(wg_watch_destroy(NULL));
    FAILS(wg_stream_watch(NULL, &watch), wg_invalid_argument, "stream is null");
    FAILS(wg_watch_stray(NULL, text, sizeof text, NULL), wg_invalid_argument, "watch is null");
    OK(wg_stream_destroy(stream));
}

void graphs_of_others_are_refused_here(void)
{
    wg_cache* cache = open_cache("adopt", wg_policy_read_write);
    const wg_function_spec spec = versioned_spec("f");
    int graph = 0;
    const wg_named_memory regions[] = {{"x", 4096, k_bytes}, {"y", 8192, k_bytes}}, nameless = {NULL, 4096, k_bytes};
    wg_native_capture capture = {.size = sizeof capture, .graph = &graph, .regions = regions, .region_count = 2};
    const wg_named_number value = {"layers", wg_f16, 0};
    wg_adoption adoption = {.size = sizeof adoption, .first = &capture};
    wg_function* function = NULL;
    FAILS(wg_cache_adopt(cache, g_device, &spec, &adoption, &function), wg_unsupported, "'f' cannot be adopted");
    CHECK(function == NULL);
    FAILS(wg_capture_write(cache, g_device, &spec, &adoption), wg_unsupported, "'f' cannot be adopted");
    adoption.captures = "captures", adoption.second = &capture;
    FAILS(wg_cache_adopt(cache, g_device, &spec, &adoption, &function), wg_invalid_argument, "give only one of them");
    adoption.captures = NULL, adoption.second = NULL;
    FAILS(wg_capture_write(NULL, g_device, &spec, &adoption), wg_invalid_argument, "cache is null");
    const wg_adopted_part part = {1, 2, 2};
    adoption.part = &part;
    FAILS(wg_cache_adopt(cache, g_device, &spec, &adoption, &function), wg_invalid_argument, "half is 2");
    adoption.part = NULL;
    adoption.values = &value, adoption.value_count = 1;
    FAILS(wg_cache_adopt(cache, g_device, &spec, &adoption, &function), wg_invalid_argument, "'layers' is a number");
    adoption.values = NULL;
    FAILS(wg_cache_adopt(cache, g_device, &spec, &adoption, &function), wg_invalid_argument,
          "the adoption's values is null with 1 elements");
    adoption.value_count = 0, capture.scratch = &nameless, capture.scratch_count = 1;
    FAILS(wg_cache_adopt(cache, g_device, &spec, &adoption, &function), wg_invalid_argument,
          "a name in the capture's scratch is null");
    capture.scratch_count = 0, capture.free_block_count = 1;
    FAILS(wg_cache_adopt(cache, g_device, &spec, &adoption, &function), wg_invalid_argument,
          "the capture's free blocks is null with 1 elements");
    capture.free_block_count = 0, capture.graph = NULL;
    FAILS(wg_cache_adopt(cache, g_device, &spec, &adoption, &function), wg_invalid_argument, "graph of 'f' is null");
    capture.size = 0;
    FAILS(wg_cache_adopt(cache, g_device, &spec, &adoption, &function), wg_invalid_argument,
          "wg_native_capture has the size 0");
    adoption.first = NULL;
    FAILS(wg_cache_adopt(cache, g_device, &spec, &adoption, &function), wg_invalid_argument, "first capture is null");
    FAILS(wg_cache_adopt(cache, g_device, &spec, NULL, &function), wg_invalid_argument, "adoption is null");
    FAILS(wg_cache_adopt(NULL, g_device, &spec, &adoption, &function), wg_invalid_argument, "cache is null");
    OK(wg_cache_close(cache));
}

static int launch_with_options(wg_recorder* recorder, void* user)
{
    wg_address x, y;
    if (wg_recorder_address(recorder, "x", &x) != wg_ok || wg_recorder_address(recorder, "y", &y) != wg_ok) return 1;
    const wg_kernel_arg args[] = {at(x), at(y)};
    return wg_launch_with(wg_recorder_stream(recorder), g_program, "add_one", user, args, 2) != wg_ok;
}

void launch_options_reach_the_kernel(void)
{
    wg_cache* cache = open_cache("launch", wg_policy_read_write);
    wg_launch_options options = {.size = sizeof options, .grid = {4, 1, 1}, .block = {16, 1, 1}};
    const wg_function_spec spec = versioned_spec("f");
    wg_stream* stream = wg_device_stream(g_device);
    const wrapped it = wrap_in(cache, &spec, launch_with_options, &options);
    CHECK(call(&it) == wg_outcome_recorded && holds(it.y, 1, 1));
    const wg_kernel_arg plain[] = {at(wg_buffer_memory(it.x).address), at(wg_buffer_memory(it.y).address)};
#define LAUNCH() wg_launch_with(stream, g_program, "add_one", &options, plain, 2)
    options.shared_bytes = 64;
    FAILS(LAUNCH(), wg_unsupported, "64 bytes of dynamic shared memory");
    options.shared_bytes = 0, options.cooperative = 1;
    FAILS(LAUNCH(), wg_unsupported, "launch attribute 2");
    options.cooperative = 0, options.cluster[0] = 2;
    FAILS(LAUNCH(), wg_unsupported, "launch attribute 4");
    options.cluster[0] = 0, options.dependent = 1;
    FAILS(LAUNCH(), wg_unsupported, "launch attribute 6");
    options.size = 1;
    FAILS(LAUNCH(), wg_invalid_argument, "wg_launch_options has the size 1");
#undef LAUNCH
    FAILS(wg_launch_with(stream, g_program, "add_one", NULL, plain, 2), wg_invalid_argument, "options is null");
    end(&it);
}

static void nothing(void* data) { (void)data; }

void pointers_streams_and_host_functions_have_their_place(void)
{
    wg_buffer *buffer = room(), *host = buffer;
    const wg_memory memory = wg_memory_from_pointer(4096, 64), null = wg_memory_from_pointer(0, 64);
    CHECK(memory.address.base + memory.address.offset == 4096 && memory.address.base != 0 && memory.size == 64);
    CHECK(null.address.base == 0 && null.address.offset == 0);
    CHECK(wg_buffer_pointer(buffer) == 0); /* OpenCL memory has no pointer */
    CHECK(wg_buffer_pointer(NULL) == 0 && contains(wg_last_error(), "buffer is null"));
    CHECK(wg_stream_native(wg_device_stream(g_device)) == NULL && wg_stream_native(NULL) == NULL);
    FAILS(wg_buffer_create_host(g_device, 64, &host), wg_unsupported, "page-locked");
    CHECK(host == NULL);
    FAILS(wg_buffer_create_host(NULL, 64, &host), wg_invalid_argument, "device is null");
    OK(wg_prepare_recording(g_device));
    FAILS(wg_prepare_recording(NULL), wg_invalid_argument, "device is null");
    OK(wg_device_warm_up(g_device));
    FAILS(wg_device_warm_up(NULL), wg_invalid_argument, "device is null");
    FAILS(wg_register_module(NULL, &host, &host, 8), wg_invalid_argument, "device is null");
    FAILS(wg_register_module(g_device, &host, NULL, 8), wg_invalid_argument, "image is null");
    FAILS(wg_register_module(g_device, &host, &host, 8), wg_unsupported, "cannot wrap modules that the driver loaded");
    OK(wg_register_host_function("c_api.nothing", nothing, NULL));
    FAILS(wg_register_host_function("c_api.nothing", nothing, &host), wg_invalid_argument, "c_api.nothing");
    FAILS(wg_register_host_function(NULL, nothing, NULL), wg_invalid_argument, "host function name is null");

    wg_cache* cache = open_cache("pointers", wg_policy_read_write);
    const wg_function_spec spec = versioned_spec("f");
    wg_function* function = NULL;
    OK(wg_wrap(cache, g_device, &spec, add_one, NULL, &function));
    const wg_arg args[] = {{.name = "x", .memory = {memory.address, k_bytes}}, memory_arg("y", buffer)};
    FAILS(wg_call(function, wg_device_stream(g_device), args, 2, NULL), wg_invalid_argument, "'x' is at base 0x100");
    OK(wg_function_destroy(function));
    OK(wg_cache_close(cache));
    OK(wg_buffer_destroy(buffer));
}

void restored_graphs_are_verified_on_demand(void)
{
    static const char* const names[] = {"f"};
    record("verify", names, 1);
    wg_cache_options options = cache_options("verify", wg_policy_read_write);
    CHECK(options.verify_on_load == 0);
    options.verify_on_load = 1;
    const wg_function_spec spec = versioned_spec("f");
    int runs = 0;
    const wrapped it = wrap_in(open_with(options), &spec, add_one, &runs);
    CHECK(call(&it) == wg_outcome_replayed && runs > 0);
    CHECK(holds(it.y, 1, 1));
    end(&it);
}

/* The structs are those of a program that was compiled with the first headers of version 0.1.0. */
void structs_of_older_callers_are_taken(void)
{
    enum { k_old_spec = 160, k_old_options = 80 };
    wg_cache_options options;
    memset(&options, 0xEE, sizeof options);
    OK(wg_cache_options_init(&options, k_old_options));
    options.model = "toy";
    options.cache_dir = g_folder;
    options.world_size = 1;
    options.global_rank = 0;
    wg_cache* cache = NULL;
    OK(wg_cache_open(&options, &cache));
    wg_function_spec spec;
    memset(&spec, 0xEE, sizeof spec);
    const wg_function_spec known = versioned_spec("older");
    memcpy(&spec, &known, k_old_spec);
    spec.size = k_old_spec;
    wg_function* function = NULL;
    OK(wg_cache_load(cache, g_device, &spec, &function));
    OK(wg_function_destroy(function));
    const wg_named_event nameless = {NULL, NULL}, twice[] = {{"done", NULL}, {"done", NULL}};
    spec = known;
    spec.events = &nameless, spec.event_count = 1;
    FAILS(wg_cache_load(cache, g_device, &spec, &function), wg_invalid_argument, "a name in events is null");
    spec.events = twice, spec.event_count = 2;
    FAILS(wg_cache_load(cache, g_device, &spec, &function), wg_invalid_argument, "event 'done' is given twice");
    const wg_named_semaphore unnamed = {NULL, NULL}, both[] = {{"shown", NULL}, {"shown", NULL}};
    spec = known;
    spec.semaphores = &unnamed, spec.semaphore_count = 1;
    FAILS(wg_cache_load(cache, g_device, &spec, &function), wg_invalid_argument, "a name in semaphores is null");
    spec.semaphores = both, spec.semaphore_count = 2;
    FAILS(wg_cache_load(cache, g_device, &spec, &function), wg_invalid_argument, "semaphore 'shown' is given twice");
    OK(wg_cache_close(cache));
}
