/* Tests errors inside a callback: the call must return their code and text. */
#include <stdio.h>
#include <string.h>

#include "checks.h"

/* Wraps the callback with the policy "off", so that it runs only once, and calls the function. */
static wg_status run_once(wg_callback callback, void* user)
{
    static int number; /* makes a new cache for each function, because a name is unique in its cache */
    char name[32];
    snprintf(name, sizeof name, "once%d", number++);
    wg_function_spec spec = vector_spec("once");
    spec.policy = wg_policy_off;
    const wrapped it = wrap_in(open_cache(name, wg_policy_read_write), &spec, callback, user);
    const wg_status status = wg_call(it.function, wg_device_stream(g_device), it.args, 2, NULL);
    end(&it);
    return status;
}

static int refuses_everything(wg_recorder* recorder, void* user)
{
    (void)user;
    wg_address place;
    wg_stream* forked = NULL;
    const int64_t* sizes = NULL;
    uint64_t rank = 0;
    wg_dtype dtype = 0;
    int32_t n = 0;
    FAILS(wg_recorder_fork(NULL, &forked), wg_invalid_argument, "recorder is null");
    FAILS(wg_recorder_fork(recorder, NULL), wg_invalid_argument, "out is null");
    FAILS(wg_recorder_join(NULL, forked), wg_invalid_argument, "recorder is null");
    FAILS(wg_recorder_join(recorder, NULL), wg_invalid_argument, "forked is null");
    FAILS(wg_recorder_join(recorder, wg_recorder_stream(recorder)), wg_invalid_argument, "join needs a stream");
    FAILS(wg_recorder_address(NULL, "x", &place), wg_invalid_argument, "recorder is null");
    FAILS(wg_recorder_address(recorder, NULL, &place), wg_invalid_argument, "name is null");
    FAILS(wg_recorder_address(recorder, "x", NULL), wg_invalid_argument, "out is null");
    FAILS(wg_recorder_alloc(NULL, "s", 4, &place), wg_invalid_argument, "recorder is null");
    FAILS(wg_recorder_alloc(recorder, NULL, 4, &place), wg_invalid_argument, "scratch name is null");
    FAILS(wg_recorder_alloc(recorder, "s", 4, NULL), wg_invalid_argument, "out is null");
    FAILS(wg_recorder_alloc(recorder, "s", 0, &place), wg_invalid_argument, "scratch 's' has no bytes");
    FAILS(wg_recorder_alloc(recorder, "x", 4, &place), wg_invalid_argument, "choose another");
    FAILS(wg_recorder_scalar(NULL, "n", wg_i32, &n), wg_invalid_argument, "recorder is null");
    FAILS(wg_recorder_scalar(recorder, NULL, wg_i32, &n), wg_invalid_argument, "scalar name is null");
    FAILS(wg_recorder_scalar(recorder, "n", wg_i32, NULL), wg_invalid_argument, "out is null");
    FAILS(wg_recorder_scalar(recorder, "n", wg_i32, &n), wg_invalid_argument,
          "asks for the scalar 'n', which is not declared");
    FAILS(wg_recorder_scalar(recorder, "n", wg_bf16, &n), wg_invalid_argument, "requested as bf16");
    FAILS(wg_recorder_scalar(recorder, "n", 55, &n), wg_invalid_argument, "'n' has the type 55");
    FAILS(wg_recorder_sizes(NULL, "x", &sizes, &rank), wg_invalid_argument, "recorder is null");
    FAILS(wg_recorder_sizes(recorder, NULL, &sizes, &rank), wg_invalid_argument, "name is null");
    FAILS(wg_recorder_sizes(recorder, "x", NULL, &rank), wg_invalid_argument, "sizes is null");
    FAILS(wg_recorder_sizes(recorder, "x", &sizes, NULL), wg_invalid_argument, "rank is null");
    FAILS(wg_recorder_dtype(NULL, "x", &dtype), wg_invalid_argument, "recorder is null");
    FAILS(wg_recorder_dtype(recorder, NULL, &dtype), wg_invalid_argument, "name is null");
    FAILS(wg_recorder_dtype(recorder, "x", NULL), wg_invalid_argument, "out is null");
    FAILS(wg_recorder_fail(NULL, wg_stale, "old"), wg_invalid_argument, "recorder is null");
    FAILS(wg_recorder_fail(recorder, wg_ok, "well"), wg_invalid_argument, "status is 0, expected 1 to 17");
    FAILS(wg_recorder_fail(recorder, wg_stale, NULL), wg_invalid_argument, "reason is null");
    FAILS(wg_stream_destroy(wg_recorder_stream(recorder)), wg_invalid_argument, "the stream belongs to a recorder");
    FAILS(wg_recorder_address(recorder, "weights", &place), wg_invalid_argument, "declared are x, y");
    return 0;
}

void wrong_recorder_calls_keep_their_text(void)
{
    /* The callback returns 0 without some work that it could not enqueue. So the call must fail. */
    FAILS(run_once(refuses_everything, NULL), wg_invalid_argument, "'once' asks for 'weights', which is not declared");
}

static int launches_from(wg_recorder* recorder, void* user)
{
    return wg_launch(wg_recorder_stream(recorder), user, "broken", k_grid, k_block, NULL, 0) != wg_ok;
}

void a_compile_error_has_the_log(void)
{
    wg_program* program = NULL;
    OK(wg_program_create(g_device, "wrong", "__kernel void broken() { no_such_variable = 1; }", "", &program));
    FAILS(launch(wg_device_stream(g_device), "no_such_kernel", NULL, 0), wg_invalid_argument, "no_such_kernel");
    FAILS(wg_launch(wg_device_stream(g_device), program, "broken", k_grid, k_block, NULL, 0), wg_compile_failed,
          "no_such_variable");
    FAILS(run_once(launches_from, program), wg_compile_failed, "no_such_variable");
    CHECK(contains(wg_last_error(), "program 'wrong'"));
    const wg_kernel_arg odd = {.kind = 9};
    FAILS(launch(wg_device_stream(g_device), "add_one", &odd, 1), wg_invalid_argument,
          "kernel argument 0 has the kind 9");
    OK(wg_program_destroy(program));
}

static int returns(wg_recorder* recorder, void* user)
{
    (void)recorder;
    return *(int*)user;
}

void a_failing_callback_fails_the_call(void)
{
    int seven = 7;
    FAILS(run_once(returns, &seven), wg_invalid_argument, "the callback of 'once' returned 7, expected 0");

    const wg_function_spec spec = vector_spec("fails");
    const wrapped it = wrap_in(open_cache("fails", wg_policy_read_write), &spec, returns, &seven);
    for (int i = 0; i < 2; ++i)
        FAILS(wg_call(it.function, wg_device_stream(g_device), it.args, 2, NULL), wg_invalid_argument,
              "the callback of 'fails' returned 7");
    end(&it);
}

static int waits(wg_recorder* recorder, void* user)
{
    if (add_one(recorder, user) != 0) return 1;
    return wg_stream_synchronize(wg_recorder_stream(recorder)) != wg_ok;
}

static int says_why(wg_recorder* recorder, void* user)
{
    int* runs = user;
    if (add_one(recorder, NULL) != 0) return 1;
    if (++*runs == 1) return 0;
    wg_recorder_fail(recorder, wg_not_recordable, "it counts its runs");
    return 1;
}

void a_callback_gives_its_own_reason(void)
{
    int runs = 1;
    FAILS(run_once(says_why, &runs), wg_not_recordable, "it counts its runs");

    const wg_function_spec spec = vector_spec("says_why");
    const wrapped it = wrap_in(open_cache("says_why", wg_policy_read_write), &spec, says_why, &runs);
    wg_report* report = NULL;
    runs = 0; /* the eager run succeeds, then the first capture fails */
    CHECK(call(&it) == wg_outcome_refused && holds(it.y, 1, 1));
    OK(wg_function_report(it.function, &report));
    CHECK(strcmp(wg_report_reason(report), "it counts its runs") == 0);
    OK(wg_report_destroy(report));
    end(&it);
}

void a_refused_recording_still_runs(void)
{
    const wg_function_spec spec = vector_spec("waits");
    const wrapped it = wrap_in(open_cache("waits", wg_policy_read_write), &spec, waits, NULL);
    wg_report* report = NULL;
    CHECK(call(&it) == wg_outcome_refused && holds(it.y, 1, 1));
    OK(wg_function_report(it.function, &report));
    CHECK(wg_report_outcome(report) == wg_outcome_refused);
    CHECK(contains(wg_report_reason(report), "Stream::synchronize while it is being captured"));
    OK(wg_report_destroy(report));
    end(&it);
}
