/* Tests memory contents in an entry: constants, and bytes that were never written (`strict`). */
#include <string.h>

#include "checks.h"

/* A callback that computes y = x + table. */
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

void constants_come_with_the_entry(void)
{
    wg_buffer *table = floats(100), *other = floats(200);
    wg_constant_decl constant = {"table", wg_buffer_memory(table)};
    wg_function_spec spec = vector_spec("add_table");
    spec.version = "1";
    spec.constants = &constant, spec.constant_count = 1;
    wrapped it = wrap_in(open_cache("constants", wg_policy_read_write), &spec, add_table, NULL);
    CHECK(call(&it) == wg_outcome_recorded && holds(it.y, 100, 2));
    end(&it);

    constant.memory = wg_buffer_memory(other);
    spec.name = "add_other", spec.max_constant_bytes = k_bytes - 1;
    it = wrap_in(open_cache("constants", wg_policy_read_write), &spec, add_table, NULL);
    CHECK(call(&it) == wg_outcome_refused && holds(it.y, 200, 2));
    CHECK(reason_contains(it.function, "its constants have 256 bytes, expected at most 255"));
    end(&it);

    spec.name = "add_table", spec.max_constant_bytes = 0;
    memset(&constant.memory, 0, sizeof constant.memory); /* no memory is given, because the entry has the contents */
    it = load_from(open_cache("constants", wg_policy_require_hit), &spec);
    CHECK(call(&it) == wg_outcome_replayed && holds(it.y, 100, 2));
    end(&it);

    constant.memory = wg_buffer_memory(other);
    it = wrap_in(open_cache("constants", wg_policy_read_write), &spec, add_table, NULL);
    CHECK(call(&it) == wg_outcome_refused && holds(it.y, 200, 2));
    CHECK(reason_contains(it.function, "the constant 'table' has other contents"));
    OK(wg_function_destroy(it.function));
    constant.name = NULL;
    FAILS(wg_wrap(it.cache, g_device, &spec, add_table, NULL, &it.function), wg_invalid_argument,
          "a name in constants is null");
    spec.constants = NULL;
    FAILS(wg_wrap(it.cache, g_device, &spec, add_table, NULL, &it.function), wg_invalid_argument,
          "constants is null with 1 elements");
    end(&it);
    DESTROY_BUFFERS(table, other);
}

#ifndef __SANITIZE_ADDRESS__ /* AddressSanitizer keeps local variables on stacks of its own */

/* Copies two ints from the stack, of which only the first was set. */
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
    for (int strict = 0; strict < 2; ++strict) {
        wg_function_spec spec = vector_spec(strict ? "strict" : "lenient");
        spec.strict = strict;
        const wrapped it = wrap_in(open_cache("strict", wg_policy_read_write), &spec, add_first_of_two, NULL);
        CHECK(call(&it) == (strict ? wg_outcome_refused : wg_outcome_recorded) && holds(it.y, 3, 1));
        CHECK(!strict || reason_contains(it.function, "Spec::strict refuses that"));
        end(&it);
    }
}

#else

void strict_refuses_words_that_nobody_wrote(void) {}

#endif
