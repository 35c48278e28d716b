/* Tests the sizes to which calls are padded, the variants recorded ahead for them, and the profile that stores them. */
#include <stdio.h>
#include <string.h>

#include "checks.h"

/* A callback that computes y = x + 1 for any number of elements that is a multiple of 16. */
static int add_one_to_any(wg_recorder* recorder, void* user)
{
    (void)user;
    wg_address x, y;
    const int64_t* sizes = NULL;
    uint64_t rank = 0;
    if (wg_recorder_address(recorder, "x", &x) != wg_ok || wg_recorder_address(recorder, "y", &y) != wg_ok) return 1;
    if (wg_recorder_sizes(recorder, "x", &sizes, &rank) != wg_ok || rank != 1) return 1;
    const wg_kernel_arg args[] = {at(x), at(y)};
    const uint32_t grid[3] = {(uint32_t)(sizes[0] / 16), 1, 1}, block[3] = {16, 1, 1};
    return wg_launch(wg_recorder_stream(recorder), g_program, "add_one", grid, block, args, 2) == wg_ok ? 0 : 1;
}

static const wg_padded_dimension k_dimensions[] = {{"x", 0, 0}, {"y", 0, 0}};

static wg_buckets learnt(void)
{
    wg_buckets buckets;
    memset(&buckets, 0, sizeof buckets);
    buckets.dimensions = k_dimensions;
    buckets.dimension_count = 2;
    buckets.rule = wg_buckets_learnt;
    buckets.most = 2;
    buckets.multiple_of = 16;
    return buckets;
}

static wg_outcome call_with(wg_function* function, int64_t count)
{
    wg_buffer *x = floats(0), *y = room();
    wg_arg args[] = {memory_arg("x", x), memory_arg("y", y)};
    for (int i = 0; i < 2; ++i) {
        args[i].kind = wg_arg_tensor;
        args[i].dtype = wg_f32;
        args[i].rank = 1;
        args[i].sizes = &count;
    }
    wg_outcome outcome = -1;
    OK(wg_call(function, wg_device_stream(g_device), args, 2, &outcome));
    float result[k_count];
    OK(wg_device_synchronize(g_device));
    OK(wg_buffer_download(y, result, k_bytes, 0));
    CHECK(result[0] == 1 && result[count - 1] == (float)count);
    DESTROY_BUFFERS(x, y);
    return outcome;
}

typedef struct made {
    wg_buffer *x, *y;
    int gives_none, fails;
} made;

static int make(wg_profiled_call* call, void* user)
{
    made* memory = user;
    if (memory->fails) return 7;
    if (memory->gives_none) return 0;
    const int64_t* sizes = NULL;
    uint64_t rank = 0;
    OK(wg_profiled_call_sizes(call, "x", &sizes, &rank));
    CHECK(rank == 1 && sizes[0] % 16 == 0);
    wg_arg args[] = {memory_arg("x", memory->x), memory_arg("y", memory->y)};
    for (int i = 0; i < 2; ++i) {
        args[i].kind = wg_arg_tensor;
        args[i].dtype = wg_f32;
        args[i].rank = rank;
        args[i].sizes = sizes;
    }
    return wg_profiled_call_args(call, args, 2) == wg_ok ? 0 : 1;
}

void sizes_are_padded_and_recorded_ahead(void)
{
    wg_cache* cache = open_cache("profile", wg_policy_read_write);
    const wg_buckets buckets = learnt();
    wg_function_spec spec = vector_spec("add_one");
    spec.buckets = &buckets;
    spec.bucket_count = 1;
    wg_function* function = NULL;
    OK(wg_wrap(cache, g_device, &spec, add_one_to_any, NULL, &function));
    const int64_t sizes[] = {3, 17, 40, 64, 5};
    for (int i = 0; i < 5; ++i) CHECK(call_with(function, sizes[i]) == wg_outcome_eager);
    made memory = {floats(0), room(), 0, 0};
    uint64_t recorded = 9, replayed = 9, length = 0;
    char text[4096];
    OK(wg_record_profile(cache, function, make, &memory, 0, &recorded, &replayed, text, sizeof text, &length));
    CHECK(recorded == 2 && replayed == 0 && length == 0);
    for (int i = 0; i < 5; ++i) CHECK(call_with(function, sizes[i]) == wg_outcome_replayed);
    OK(wg_function_buckets(function, text, sizeof text, &length));
    CHECK(length == strlen(text) && contains(text, "64]]"));
    FAILS(wg_function_buckets(NULL, text, sizeof text, NULL), wg_invalid_argument, "function is null");
    OK(wg_function_shapes(function, text, sizeof text, &length));
    CHECK(length == strlen(text) && contains(text, "\"sizes\":{\"x\":[3],\"y\":[3]}") && contains(text, "\"calls\":1"));

    memory.gives_none = 1;
    FAILS(wg_record_profile(cache, function, make, &memory, 0, NULL, NULL, NULL, 0, NULL), wg_invalid_argument,
          "wg_profiled_call_args");
    memory.fails = 1;
    FAILS(wg_record_profile(cache, function, make, &memory, 0, NULL, NULL, NULL, 0, NULL), wg_invalid_argument,
          "returned 7");
    FAILS(wg_record_profile(NULL, function, make, &memory, 0, NULL, NULL, NULL, 0, NULL), wg_invalid_argument,
          "cache is null");
    FAILS(wg_record_profile(cache, NULL, make, &memory, 0, NULL, NULL, NULL, 0, NULL), wg_invalid_argument,
          "function is null");
    FAILS(wg_record_profile(cache, function, NULL, &memory, 0, NULL, NULL, NULL, 0, NULL), wg_invalid_argument,
          "arguments is null");
    DESTROY_BUFFERS(memory.x, memory.y);
    OK(wg_function_destroy(function));
    OK(wg_cache_close(cache));

    cache = open_cache("profile", wg_policy_require_hit);
    OK(wg_wrap(cache, g_device, &spec, add_one_to_any, NULL, &function));
    for (int i = 0; i < 5; ++i) CHECK(call_with(function, sizes[i]) == wg_outcome_replayed);
    OK(wg_function_destroy(function));
    OK(wg_cache_close(cache));
}

void profiles_are_switched_off(void)
{
    char path[512], text[256];
    uint64_t length = 0;
    snprintf(path, sizeof path, "%s/no_profile", g_folder);
    wg_cache_options options;
    OK(wg_cache_options_init(&options, sizeof options));
    CHECK(options.profile == 0);
    options.model = "toy";
    options.cache_dir = path;
    options.world_size = 1;
    options.global_rank = 0;
    options.profile = 2;
    wg_cache* cache = NULL;
    FAILS(wg_cache_open(&options, &cache), wg_invalid_argument, "profile is 2");
    options.profile = 0;
    const wg_artifact_kind images[] = {wg_kind_images}, unknown[] = {8},
                           others[] = {wg_kind_entries, wg_kind_compiled, wg_kind_tuned};
    options.kinds = images;
    options.kind_count = 1;
    FAILS(wg_cache_open(&options, &cache), wg_invalid_argument,
          "the kind 'images': expected entries, compiled, tuned or profiles");
    options.kinds = unknown;
    FAILS(wg_cache_open(&options, &cache), wg_invalid_argument, "the kind is 8");
    options.kinds = NULL;
    FAILS(wg_cache_open(&options, &cache), wg_invalid_argument, "kinds is null");
    options.kinds = others;
    options.kind_count = 3;
    OK(wg_cache_open(&options, &cache));
    OK(wg_cache_close(cache));
    options.kinds = NULL;
    options.kind_count = 0;
    options.profile = -1;
    OK(wg_cache_open(&options, &cache));
    const wg_buckets buckets = learnt();
    wg_function_spec spec = vector_spec("add_one");
    spec.buckets = &buckets;
    spec.bucket_count = 1;
    wg_function* function = NULL;
    OK(wg_wrap(cache, g_device, &spec, add_one_to_any, NULL, &function));
    CHECK(call_with(function, 17) == wg_outcome_recorded);
    OK(wg_function_shapes(function, text, sizeof text, &length));
    CHECK(strcmp(text, "[]") == 0);
    OK(wg_record_profile(cache, function, make, NULL, 0, NULL, NULL, text, sizeof text, &length));
    CHECK(contains(text, "no profile is kept"));
    OK(wg_function_destroy(function));
    OK(wg_cache_close(cache));
}

void wrong_buckets_are_refused(void)
{
    wg_cache* cache = open_cache("wrong_buckets", wg_policy_read_write);
    wg_buckets buckets = learnt();
    wg_function_spec spec = vector_spec("add_one");
    wg_function* function = NULL;
    spec.bucket_count = 1;
    FAILS(wg_wrap(cache, g_device, &spec, add_one_to_any, NULL, &function), wg_invalid_argument, "buckets is null");
    spec.buckets = &buckets;
    buckets.rule = 3;
    FAILS(wg_wrap(cache, g_device, &spec, add_one_to_any, NULL, &function), wg_invalid_argument, "wg_bucket_rule");
    buckets = learnt();
    buckets.dimensions = NULL;
    FAILS(wg_wrap(cache, g_device, &spec, add_one_to_any, NULL, &function), wg_invalid_argument,
          "padded dimensions is null");
    buckets = learnt();
    buckets.size_count = 2;
    FAILS(wg_wrap(cache, g_device, &spec, add_one_to_any, NULL, &function), wg_invalid_argument,
          "bucket sizes is null");
    const wg_padded_dimension other = {"z", 0, 0};
    buckets = learnt();
    buckets.dimensions = &other;
    buckets.dimension_count = 1;
    FAILS(wg_wrap(cache, g_device, &spec, add_one_to_any, NULL, &function), wg_invalid_argument, "'z'");
    OK(wg_cache_close(cache));
}
