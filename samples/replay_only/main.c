/* A service that only replays, with libwarmgraph_replay alone: it runs the function that `warmgraph_hello` recorded.
 *   warmgraph_replay_only [DEVICE [MODEL FUNCTION]]
 * Each region gets memory (filled with 7 for type f32, else with 0), and each number is 6. It prints the begin of the first output. */
#include <stdio.h>
#include <stdlib.h>

#include <warmgraph/replay.h>

static void check(wgr_status status, const char* doing)
{
    if (status == wgr_ok) return;
    fprintf(stderr, "warmgraph_replay_only: %s: %s\n", doing, wgr_last_error());
    exit(1);
}

/* Memory for a region: filled with 7 for type f32, else with 0. */
static wgr_tensor memory_for(wgr_device* device, const wgr_region* region)
{
    wgr_tensor tensor = {0};
    float* contents = calloc(1, region->bytes);
    if (contents == NULL) exit(1);
    if (region->dtype == wgr_f32)
        for (uint64_t i = 0; i < region->bytes / sizeof(float); ++i) contents[i] = 7;
    check(wgr_memory_create(device, region->bytes, &tensor.memory), "allocate");
    check(wgr_upload(device, tensor.memory, contents, region->bytes), "upload");
    free(contents);
    return tensor; /* without sizes, the library uses the recorded layout */
}

int main(int argc, char** argv)
{
    const char* device_name = argc > 1 ? argv[1] : "opencl";
    const char* function_name = argc > 3 ? argv[3] : "scale";
    wgr_cache_options options = WGR_CACHE_OPTIONS; /* the folder is $WARMGRAPH_CACHE_DIR, else .warmgraph_cache */
    options.model = argc > 3 ? argv[2] : "hello";

    wgr_device* device = NULL;
    wgr_cache* cache = NULL;
    wgr_function* function = NULL;
    check(wgr_device_open(device_name, &device), "open the device");
    check(wgr_cache_open(&options, &cache), "open the cache");
    check(wgr_load(cache, device, function_name, NULL, &function), "load");

    uint64_t region_count = 0, number_count = 0;
    const wgr_region* regions = wgr_regions(function, &region_count);
    const wgr_number_decl* declared = wgr_numbers(function, &number_count);
    wgr_tensor* tensors = calloc(region_count + 1, sizeof *tensors);
    wgr_number* numbers = calloc(number_count + 1, sizeof *numbers);
    if (tensors == NULL || numbers == NULL) return 1;
    for (uint64_t i = 0; i < region_count; ++i) tensors[i] = memory_for(device, &regions[i]);
    for (uint64_t i = 0; i < number_count; ++i) {
        const wgr_number six = {wgr_i32, 6}, only = {declared[i].dtype, declared[i].low};
        numbers[i] = declared[i].fixed ? only : six;
    }
    check(wgr_launch(function, NULL, tensors, region_count, numbers, number_count), "launch");
    check(wgr_device_synchronize(device, NULL), "synchronize");

    for (uint64_t i = 0; i < region_count; ++i) {
        if (regions[i].kind != wgr_output || regions[i].dtype != wgr_f32 || regions[i].bytes < sizeof(float)) continue;
        float first = 0;
        check(wgr_download(device, tensors[i].memory, &first, sizeof first), "download");
        printf("%s begins with %g, replayed\n", regions[i].name, first);
        break;
    }
    for (uint64_t i = 0; i < region_count; ++i) check(wgr_memory_destroy(device, tensors[i].memory), "free");
    free(tensors);
    free(numbers);
    check(wgr_function_destroy(function), "destroy");
    check(wgr_cache_close(cache), "close the cache");
    check(wgr_device_close(device), "close the device");
    return 0;
}
