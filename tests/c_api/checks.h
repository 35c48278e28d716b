/* Helpers for the tests of the C interface: checks that print the line of a failure, a folder, a device, a program. */
#ifndef WARMGRAPH_TESTS_CHECKS_H
#define WARMGRAPH_TESTS_CHECKS_H

#include <stddef.h>

#include "warmgraph/warmgraph.h"

enum { k_count = 64, k_bytes = k_count * 4 };

extern const uint32_t k_grid[3], k_block[3]; /* a launch of k_count work-items */
extern wg_device* g_device;
extern wg_program* g_program; /* has the kernels add_one, scale, add_int, add_first, add and accumulate */
extern char g_folder[];       /* the folder of all caches; removed at the end */

int failures(void);
void check(int holds, const char* what, int line, const char* file);
void check_status(wg_status got, wg_status expected, const char* part, const char* what, int line, const char* file);

#define CHECK(holds) check((holds) != 0, #holds, __LINE__, __FILE__)
#define OK(call) check_status((call), wg_ok, NULL, #call, __LINE__, __FILE__)
/* Expects that the call fails with this code, and with a text that contains `part`. */
#define FAILS(call, code, part) check_status((call), (code), (part), #call, __LINE__, __FILE__)

int contains(const char* text, const char* part);

/* Options for the cache `name` below g_folder. The name of the folder in them is valid until the next call. */
wg_cache_options cache_options(const char* name, wg_policy policy);
wg_cache* open_with(wg_cache_options options);
/* Opens the cache `name` below g_folder. */
wg_cache* open_cache(const char* name, wg_policy policy);
/* A buffer with the values first, first + 1, ... */
wg_buffer* floats(float first);
wg_buffer* room(void);
void destroy_buffers(wg_buffer* const* buffers, size_t count);
#define DESTROY_BUFFERS(...)                                                                                           \
    destroy_buffers((wg_buffer*[]){__VA_ARGS__}, sizeof((wg_buffer*[]){__VA_ARGS__}) / sizeof(wg_buffer*))
/* Whether each element i has the value first + step * i. */
int holds(wg_buffer* buffer, float first, float step);
wg_arg memory_arg(const char* name, const wg_buffer* buffer);
wg_kernel_arg at(wg_address address);
/* Launches a kernel of g_program over k_count work-items. */
wg_status launch(wg_stream* stream, const char* kernel, const wg_kernel_arg* args, uint64_t count);
/* The spec of a function with x and y of k_count floats and with g_program as code. Valid until the next call. */
wg_function_spec vector_spec(const char* name);
/* A callback that computes y = x + 1. `user` is NULL, or points to an int that counts the runs. */
int add_one(wg_recorder* recorder, void* user);
/* A function with its cache, and with memory for the x and y of vector_spec(). x has the values 0, 1, ... */
typedef struct wrapped {
    wg_cache* cache;
    wg_function* function;
    wg_buffer *x, *y;
    wg_arg args[2];
} wrapped;
/* Wraps a function. The result owns the cache. */
wrapped wrap_in(wg_cache* cache, const wg_function_spec* spec, wg_callback callback, void* user);
wrapped load_from(wg_cache* cache, const wg_function_spec* spec);
/* Calls the function with its x and y in the device's stream. */
wg_outcome call(const wrapped* it);
int reason_contains(const wg_function* function, const char* part);
/* Destroys the function and its memory, and closes its cache. */
void end(const wrapped* it);
/* Wraps add_one() in the cache, and calls it once with new memory. */
wg_outcome call_add_one(wg_cache* cache);

void set_up(void);
void tear_down(void);

#endif
