/* The C interface, used from C11 as a program would: records, replays, and fails with code and text. */
#include <stdio.h>

#include "checks.h"

struct test {
    const char* name;
    void (*run)(void);
};

#define TEST_OF(function) {#function, function}

int main(void)
{
    static const struct test tests[] = {
        TEST_OF(names_are_readable),
        TEST_OF(log_lines_reach_the_host),
        TEST_OF(a_second_cache_replays_what_the_first_recorded),
        TEST_OF(a_function_outlives_its_cache_and_device_handles),
        TEST_OF(a_function_may_be_destroyed_by_its_own_callback),
        TEST_OF(scalars_are_patched_at_every_call),
        TEST_OF(forks_scratch_copies_and_fills_are_replayed),
        TEST_OF(events_order_streams),
        TEST_OF(states_move_and_tensors_change_shape),
        TEST_OF(layouts_say_more_than_declarations),
        TEST_OF(misses_are_recorded_on_demand),
        TEST_OF(entries_are_shown_and_cleared),
        TEST_OF(policies_and_unusable_folders_are_obeyed),
        TEST_OF(signatures_are_required_on_demand),
        TEST_OF(loaded_functions_replay_and_say_why_they_miss),
        TEST_OF(entries_are_preloaded),
        TEST_OF(calls_that_their_caller_refuses_are_counted),
        TEST_OF(a_watch_sees_nothing_here),
        TEST_OF(graphs_of_others_are_refused_here),
        TEST_OF(launch_options_reach_the_kernel),
        TEST_OF(pointers_streams_and_host_functions_have_their_place),
        TEST_OF(restored_graphs_are_verified_on_demand),
        TEST_OF(structs_of_older_callers_are_taken),
        TEST_OF(constants_come_with_the_entry),
        TEST_OF(strict_refuses_words_that_nobody_wrote),
        TEST_OF(events_of_dictionaries_are_counted),
        TEST_OF(tensors_are_there_until_one_moves),
        TEST_OF(tensors_that_look_otherwise_are_told),
        TEST_OF(tensors_are_looked_at),
        TEST_OF(objects_are_looked_at_where_there_is_python),
        TEST_OF(entries_tell_what_loading_them_needs),
        TEST_OF(artifacts_are_carried_to_another_folder),
        TEST_OF(what_pytorch_compiled_is_kept_and_given_under_a_key),
        TEST_OF(pairs_are_recorded_together),
        TEST_OF(wrong_pairs_are_refused),
        TEST_OF(sizes_are_padded_and_recorded_ahead),
        TEST_OF(profiles_are_switched_off),
        TEST_OF(wrong_buckets_are_refused),
        TEST_OF(the_last_error_belongs_to_its_thread),
        TEST_OF(null_handles_are_refused),
        TEST_OF(null_arguments_are_refused),
        TEST_OF(null_elements_are_refused),
        TEST_OF(wrong_options_are_refused),
        TEST_OF(wrong_specs_are_refused),
        TEST_OF(wrong_calls_are_refused),
        TEST_OF(wrong_recorder_calls_keep_their_text),
        TEST_OF(a_compile_error_has_the_log),
        TEST_OF(a_failing_callback_fails_the_call),
        TEST_OF(a_callback_gives_its_own_reason),
        TEST_OF(a_refused_recording_still_runs),
    };
    setvbuf(stdout, NULL, _IOLBF, 0);
    check(wg_last_error()[0] == '\0', "no error text before the first failure", __LINE__, __FILE__);
    set_up();
    for (size_t i = 0; i < sizeof tests / sizeof *tests; ++i) {
        const int before = failures();
        tests[i].run();
        printf("%s %s\n", failures() == before ? "passed" : "FAILED", tests[i].name);
    }
    tear_down();
    return failures() != 0;
}
