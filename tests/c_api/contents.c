/* What an entry carries of memory and of bytes that nobody wrote: constants, and `strict`. */
#include <string.h>

#include "checks.h"

/* y = x + table */
static int add_table(wg_recorder* recorder, void* user)
{
    (void)user;
    wg_address x, y, table;
    if (wg_recorder_address(recorder, "x", &x) != wg_ok || wg_recorder_address(recorder, "y", &y) != wg_ok ||
        wg_recorder_address(recorder, "table", &table) != wg_ok)
        return 1;
    const wg_kernel_arg args[] = {at(x), at(table), at(y)};
    return launch(wg_recorder_stream(recorder), "add", args, 3) != wg_ok;
}

static wg_outcome outcome_of(wg_function* function, const wg_buffer* x, const wg_buffer* y)
{
    const wg_arg args[] = {memory_arg("x", x), memory_arg("y", y)};
    wg_outcome outcome = -1;
    OK(wg_call(function, wg_device_stream(g_device), args, 2, &outcome));
    return outcome;
}

static int reason_contains(const wg_function* function, const char* part)
{
    wg_report* report = NULL;
    OK(wg_function_report(function, &report));
    const int result = contains(wg_report_reason(report), part);
    OK(wg_report_destroy(report));
    return result;
}

void constants_come_with_the_entry(void)
{
    wg_buffer *x = floats(0), *y = room(), *table = floats(100), *other = floats(200);
    wg_constant_decl constant = {"table", wg_buffer_memory(table)};
    wg_function_spec spec = vector_spec("add_table");
    spec.version = "1";
    spec.constants = &constant, spec.constant_count = 1;
    wg_cache* cache = open_cache("constants", wg_policy_read_write);
    wg_function* function = NULL;
    OK(wg_wrap(cache, g_device, &spec, add_table, NULL, &function));
    CHECK(outcome_of(function, x, y) == wg_outcome_recorded && holds(y, 100, 2));
    OK(wg_function_destroy(function));

    constant.memory = wg_buffer_memory(other);
    spec.name = "add_other", spec.max_constant_bytes = k_bytes - 1;
    OK(wg_wrap(cache, g_device, &spec, add_table, NULL, &function));
    CHECK(outcome_of(function, x, y) == wg_outcome_refused && holds(y, 200, 2));
    CHECK(reason_contains(function, "its constants have 256 bytes, at most 255 are kept"));
    OK(wg_function_destroy(function));
    OK(wg_cache_close(cache));

    spec.name = "add_table", spec.max_constant_bytes = 0;
    memset(&constant.memory, 0, sizeof constant.memory); /* none here */
    cache = open_cache("constants", wg_policy_require_hit);
    OK(wg_cache_load(cache, g_device, &spec, &function));
    CHECK(outcome_of(function, x, y) == wg_outcome_replayed && holds(y, 100, 2));
    OK(wg_function_destroy(function));
    OK(wg_cache_close(cache));

    cache = open_cache("constants", wg_policy_read_write);
    constant.memory = wg_buffer_memory(other);
    OK(wg_wrap(cache, g_device, &spec, add_table, NULL, &function));
    CHECK(outcome_of(function, x, y) == wg_outcome_refused && holds(y, 200, 2));
    CHECK(reason_contains(function, "the constant 'table' holds something else"));
    OK(wg_function_destroy(function));
    constant.name = NULL;
    FAILS(wg_wrap(cache, g_device, &spec, add_table, NULL, &function), wg_invalid_argument,
          "a name in constants is null");
    spec.constants = NULL;
    FAILS(wg_wrap(cache, g_device, &spec, add_table, NULL, &function), wg_invalid_argument,
          "constants is null with 1 elements");
    OK(wg_cache_close(cache));
    DESTROY_BUFFERS(x, y, table, other);
}

#ifndef __SANITIZE_ADDRESS__ /* which keeps locals on stacks of its own */

/* Two ints on the stack, of which the first is set. */
__attribute__((noinline)) static void half_initialised(unsigned char* to)
{
    volatile unsigned char fields[8];
    const volatile unsigned char* from = fields;
    for (int i = 0; i < 4; ++i) fields[i] = i == 0 ? 3 : 0;
    __asm__ volatile("" : "+r"(from) : : "memory");
    for (int i = 0; i < 8; ++i) to[i] = from[i];
}

static int add_first_of_two(wg_recorder* recorder, void* user)
{
    (void)user;
    wg_address x, y;
    unsigned char numbers[8];
    half_initialised(numbers);
    if (wg_recorder_address(recorder, "x", &x) != wg_ok || wg_recorder_address(recorder, "y", &y) != wg_ok) return 1;
    const wg_kernel_arg args[] = {
        at(x), at(y), {.kind = wg_kernel_arg_value, .value = numbers, .bytes = sizeof numbers}};
    return launch(wg_recorder_stream(recorder), "add_first", args, 3) != wg_ok;
}

void strict_refuses_words_that_nobody_wrote(void)
{
    wg_buffer *x = floats(0), *y = room();
    wg_cache* cache = open_cache("strict", wg_policy_read_write);
    for (int strict = 0; strict < 2; ++strict) {
        wg_function_spec spec = vector_spec(strict ? "strict" : "lenient");
        spec.strict = strict;
        wg_function* function = NULL;
        OK(wg_wrap(cache, g_device, &spec, add_first_of_two, NULL, &function));
        CHECK(outcome_of(function, x, y) == (strict ? wg_outcome_refused : wg_outcome_recorded) && holds(y, 3, 1));
        CHECK(!strict || reason_contains(function, "Spec::strict refuses that"));
        OK(wg_function_destroy(function));
    }
    OK(wg_cache_close(cache));
    DESTROY_BUFFERS(x, y);
}

#else

void strict_refuses_words_that_nobody_wrote(void) {}

#endif
