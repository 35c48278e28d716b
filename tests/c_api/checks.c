#define _XOPEN_SOURCE 700 /* for mkdtemp and nftw */

#include "checks.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const uint32_t k_grid[3] = {4, 1, 1}, k_block[3] = {16, 1, 1};
wg_device* g_device;
wg_program* g_program;
char g_folder[] = "/tmp/warmgraph-test-XXXXXX";

static const char k_kernels[] =
    "__kernel void add_one(__global const float* x, __global float* y) { size_t i = get_global_id(0); y[i] = x[i] + "
    "1.0f; }\n"
    "__kernel void scale(__global const float* x, __global float* y, float f) { size_t i = get_global_id(0); y[i] = "
    "x[i] * f; }\n"
    "__kernel void add_int(__global const float* x, __global float* y, int n) { size_t i = get_global_id(0); y[i] = "
    "x[i] + n; }\n"
    "__kernel void add_first(__global const float* x, __global float* y, int2 n) { size_t i = get_global_id(0); y[i] = "
    "x[i] + n.x; }\n"
    "__kernel void add(__global const float* a, __global const float* b, __global float* y)\n"
    "{ size_t i = get_global_id(0); y[i] = a[i] + b[i]; }\n"
    "__kernel void accumulate(__global float* s, __global const float* x) { size_t i = get_global_id(0); s[i] += x[i]; "
    "}\n";

static int s_failures;

int failures(void) { return s_failures; }

void check(int holds, const char* what, int line, const char* file)
{
    if (holds) return;
    ++s_failures;
    printf("%s:%d: expected %s; last error: %s\n", file, line, what, wg_last_error());
}

void check_status(wg_status got, wg_status expected, const char* part, const char* what, int line, const char* file)
{
    if (got != expected) {
        ++s_failures;
        printf("%s:%d: %s is %s, expected %s; last error: %s\n", file, line, what, wg_status_name(got),
               wg_status_name(expected), wg_last_error());
    } else if (part != NULL && !contains(wg_last_error(), part)) {
        ++s_failures;
        printf("%s:%d: %s says '%s', expected '%s' in it\n", file, line, what, wg_last_error(), part);
    }
}

int contains(const char* text, const char* part) { return text != NULL && strstr(text, part) != NULL; }

wg_cache_options cache_options(const char* name, wg_policy policy)
{
    static char folder[512];
    snprintf(folder, sizeof folder, "%s/%s", g_folder, name);
    wg_cache_options options;
    OK(wg_cache_options_init(&options, sizeof options));
    options.model = "toy";
    options.cache_dir = folder;
    options.policy = policy;
    options.world_size = 1;
    options.global_rank = 0;
    return options;
}

wg_cache* open_with(wg_cache_options options)
{
    wg_cache* cache = NULL;
    OK(wg_cache_open(&options, &cache));
    return cache;
}

wg_cache* open_cache(const char* name, wg_policy policy) { return open_with(cache_options(name, policy)); }

wg_buffer* floats(float first)
{
    float values[k_count];
    for (int i = 0; i < k_count; ++i) values[i] = first + (float)i;
    wg_buffer* buffer = room();
    OK(wg_buffer_upload(buffer, values, k_bytes, 0));
    return buffer;
}

wg_buffer* room(void)
{
    wg_buffer* buffer = NULL;
    OK(wg_buffer_create(g_device, k_bytes, &buffer));
    return buffer;
}

void destroy_buffers(wg_buffer* const* buffers, size_t count)
{
    for (size_t i = 0; i < count; ++i) OK(wg_buffer_destroy(buffers[i]));
}

int holds(wg_buffer* buffer, float first, float step)
{
    float values[k_count] = {0};
    OK(wg_device_synchronize(g_device));
    OK(wg_buffer_download(buffer, values, k_bytes, 0));
    for (int i = 0; i < k_count; ++i) {
        const float expected = first + step * (float)i;
        if (values[i] == expected) continue;
        printf("element %d is %g, expected %g\n", i, (double)values[i], (double)expected);
        return 0;
    }
    return 1;
}

wg_arg memory_arg(const char* name, const wg_buffer* buffer)
{
    wg_arg arg = {0};
    arg.name = name;
    arg.memory = wg_buffer_memory(buffer);
    return arg;
}

wg_kernel_arg at(wg_address address)
{
    wg_kernel_arg arg = {0};
    arg.kind = wg_kernel_arg_memory;
    arg.address = address;
    return arg;
}

wg_status launch(wg_stream* stream, const char* kernel, const wg_kernel_arg* args, uint64_t count)
{
    return wg_launch(stream, g_program, kernel, k_grid, k_block, args, count);
}

wg_function_spec vector_spec(const char* name)
{
    static const int64_t sizes[] = {k_count};
    static const wg_tensor_decl input = {"x", wg_f32, 1, sizes}, output = {"y", wg_f32, 1, sizes};
    static const wg_program* code[1];
    code[0] = g_program;
    wg_function_spec spec = {0};
    spec.size = sizeof spec;
    spec.name = name;
    spec.inputs = &input;
    spec.input_count = 1;
    spec.outputs = &output;
    spec.output_count = 1;
    spec.code = code;
    spec.code_count = 1;
    return spec;
}

int add_one(wg_recorder* recorder, void* user)
{
    wg_address x, y;
    if (user != NULL) ++*(int*)user;
    if (wg_recorder_address(recorder, "x", &x) != wg_ok || wg_recorder_address(recorder, "y", &y) != wg_ok) return 1;
    const wg_kernel_arg args[] = {at(x), at(y)};
    return launch(wg_recorder_stream(recorder), "add_one", args, 2) != wg_ok;
}

static wrapped with_memory(wg_cache* cache)
{
    wrapped it = {.cache = cache, .x = floats(0), .y = room()};
    it.args[0] = memory_arg("x", it.x);
    it.args[1] = memory_arg("y", it.y);
    return it;
}

wrapped wrap_in(wg_cache* cache, const wg_function_spec* spec, wg_callback callback, void* user)
{
    wrapped it = with_memory(cache);
    OK(wg_wrap(cache, g_device, spec, callback, user, &it.function));
    return it;
}

wrapped load_from(wg_cache* cache, const wg_function_spec* spec)
{
    wrapped it = with_memory(cache);
    OK(wg_cache_load(cache, g_device, spec, &it.function));
    return it;
}

wg_outcome call(const wrapped* it)
{
    wg_outcome outcome = -1;
    OK(wg_call(it->function, wg_device_stream(g_device), it->args, 2, &outcome));
    return outcome;
}

int reason_contains(const wg_function* function, const char* part)
{
    wg_report* report = NULL;
    OK(wg_function_report(function, &report));
    const int result = contains(wg_report_reason(report), part);
    OK(wg_report_destroy(report));
    return result;
}

void end(const wrapped* it)
{
    OK(wg_function_destroy(it->function));
    OK(wg_cache_close(it->cache));
    DESTROY_BUFFERS(it->x, it->y);
}

wg_outcome call_add_one(wg_cache* cache)
{
    const wg_function_spec spec = vector_spec("add_one");
    wrapped it = wrap_in(cache, &spec, add_one, NULL);
    const wg_outcome outcome = call(&it);
    CHECK(holds(it.y, 1, 1));
    it.cache = NULL; /* the caller owns the cache */
    end(&it);
    return outcome;
}

void set_up(void)
{
    if (mkdtemp(g_folder) == NULL) {
        perror("mkdtemp");
        exit(1);
    }
    OK(wg_device_open("opencl", &g_device));
    OK(wg_program_create(g_device, "small", k_kernels, NULL, &g_program));
    if (g_device == NULL) exit(1);
}

static int remove_one(const char* path, const struct stat* status, int type, struct FTW* walk)
{
    (void)status, (void)type, (void)walk;
    return remove(path);
}

void tear_down(void)
{
    OK(wg_program_destroy(g_program));
    OK(wg_device_close(g_device));
    nftw(g_folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
