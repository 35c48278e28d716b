/* What the tests of the C interface share: checks that name their line, a folder, a device and a program. */
#ifndef WARMGRAPH_TESTS_CHECKS_H
#define WARMGRAPH_TESTS_CHECKS_H

#include <stddef.h>

#include "warmgraph/warmgraph.h"

enum { k_count = 64, k_bytes = k_count * 4 };

extern const uint32_t k_grid[3], k_block[3]; /* k_count work-items */
extern wg_device* g_device;
extern wg_program* g_program; /* add_one, scale, add_int, add_first, add, accumulate */
extern char g_folder[];       /* removed at the end */

int failures(void);
void check(int holds, const char* what, int line, const char* file);
void check_status(wg_status got, wg_status expected, const char* part, const char* what, int line, const char* file);

#define CHECK(holds) check((holds) != 0, #holds, __LINE__, __FILE__)
#define OK(call) check_status((call), wg_ok, NULL, #call, __LINE__, __FILE__)
/* The call fails with this code and with a text that contains `part`. */
#define FAILS(call, code, part) check_status((call), (code), (part), #call, __LINE__, __FILE__)

int contains(const char* text, const char* part);

/* Of the cache `name` below g_folder. The folder's name is valid until the next call. */
wg_cache_options cache_options(const char* name, wg_policy policy);
wg_cache* open_with(wg_cache_options options);
/* Opens the cache `name` below g_folder. */
wg_cache* open_cache(const char* name, wg_policy policy);
/* first, first + 1, ... */
wg_buffer* floats(float first);
wg_buffer* room(void);
void destroy_buffers(wg_buffer* const* buffers, size_t count);
#define DESTROY_BUFFERS(...)                                                                                           \
    destroy_buffers((wg_buffer*[]){__VA_ARGS__}, sizeof((wg_buffer*[]){__VA_ARGS__}) / sizeof(wg_buffer*))
/* Every element is first + step * i. */
int holds(wg_buffer* buffer, float first, float step);
wg_arg memory_arg(const char* name, const wg_buffer* buffer);
wg_kernel_arg at(wg_address address);
/* Launches a kernel of g_program over k_count work-items. */
wg_status launch(wg_stream* stream, const char* kernel, const wg_kernel_arg* args, uint64_t count);
/* x and y of k_count floats, g_program as code. Valid until the next call. */
wg_function_spec vector_spec(const char* name);
/* y = x + 1; `user`, when there is one, is an int that counts the runs. */
int add_one(wg_recorder* recorder, void* user);
/* Calls it once, wrapped in the cache, with memory of its own. */
wg_outcome call_add_one(wg_cache* cache);

void set_up(void);
void tear_down(void);

/* functions.c */
void names_are_readable(void);
void log_lines_reach_the_host(void);
void a_second_cache_replays_what_the_first_recorded(void);
void a_function_outlives_its_cache_and_device_handles(void);
void a_function_may_be_destroyed_by_its_own_callback(void);
void scalars_are_patched_at_every_call(void);
void forks_scratch_copies_and_fills_are_replayed(void);
void events_order_streams(void);
void states_move_and_tensors_change_shape(void);
void misses_are_recorded_on_demand(void);
void entries_are_shown_and_cleared(void);
void policies_and_unusable_folders_are_obeyed(void);
void signatures_are_required_on_demand(void);

/* ahead.c */
void layouts_say_more_than_declarations(void);
void loaded_functions_replay_and_say_why_they_miss(void);
void entries_are_preloaded(void);
void calls_that_their_caller_refuses_are_counted(void);
void a_watch_sees_nothing_here(void);
void graphs_of_others_are_refused_here(void);
void launch_options_reach_the_kernel(void);
void pointers_streams_and_host_functions_have_their_place(void);
void restored_graphs_are_verified_on_demand(void);
void structs_of_older_callers_are_taken(void);

/* contents.c */
void constants_come_with_the_entry(void);
void strict_refuses_words_that_nobody_wrote(void);

/* objects.c */
void events_of_dictionaries_are_counted(void);
void tensors_are_there_until_one_moves(void);
void tensors_that_look_otherwise_are_told(void);
void tensors_are_looked_at(void);
void objects_are_looked_at_where_there_is_python(void);

/* entries.c */
void entries_tell_what_loading_them_needs(void);

/* artifacts.c */
void artifacts_are_carried_to_another_folder(void);
void what_pytorch_compiled_is_kept_and_given_under_a_key(void);

/* pairs.c */
void pairs_are_recorded_together(void);
void wrong_pairs_are_refused(void);

/* profile.c */
void sizes_are_padded_and_recorded_ahead(void);
void profiles_are_switched_off(void);
void wrong_buckets_are_refused(void);

/* errors.c */
void the_last_error_belongs_to_its_thread(void);
void null_handles_are_refused(void);
void null_arguments_are_refused(void);
void null_elements_are_refused(void);
void wrong_options_are_refused(void);
void wrong_specs_are_refused(void);
void wrong_calls_are_refused(void);

/* callback_errors.c */
void wrong_recorder_calls_keep_their_text(void);
void a_compile_error_has_the_log(void);
void a_failing_callback_fails_the_call(void);
void a_callback_gives_its_own_reason(void);
void a_refused_recording_still_runs(void);

#endif
