/* Lists stored entries for a program that knows only the name of a function. */
#include <string.h>

#include "checks.h"

/* Copies the text that follows `"name":"`, up to the next quote. */
static const char* text_of(const char* json, const char* name, char* out, size_t capacity)
{
    char begin[64] = "\"";
    strcat(strcat(begin, name), "\":\"");
    const char* from = strstr(json, begin);
    CHECK(from != NULL);
    if (from == NULL) return "";
    from += strlen(begin);
    const size_t length = strcspn(from, "\"");
    CHECK(length < capacity);
    memcpy(out, from, length);
    out[length] = '\0';
    return out;
}

void entries_tell_what_loading_them_needs(void)
{
    wg_function_spec spec = vector_spec("add_one");
    spec.metadata = "mine";
    wrapped it = wrap_in(open_cache("entries", wg_policy_read_write), &spec, add_one, NULL);
    CHECK(call(&it) == wg_outcome_recorded);
    OK(wg_device_synchronize(g_device));
    end(&it);

    wg_cache* cache = open_cache("entries", wg_policy_require_hit);
    const char* const names[] = {"add_one", "other"};
    wg_preload_options by_name = {.size = sizeof by_name, .wait = wg_preload_all};
    by_name.functions = names, by_name.function_count = 2, by_name.device = g_device;
    wg_preload* preload = NULL;
    OK(wg_cache_preload(cache, &by_name, &preload));
    wg_preload_progress progress = {.size = sizeof progress};
    OK(wg_preload_progress_of(preload, &progress));
    CHECK(progress.loaded == 1 && progress.failed == 0 && progress.total == 1);
    OK(wg_preload_destroy(preload));
    char json[4096] = "", build_id[256], program[256];
    uint64_t length = 0;
    OK(wg_cache_entries(cache, g_device, "other", NULL, json, sizeof json, &length));
    CHECK(length == 2 && strcmp(json, "[]") == 0);
    OK(wg_cache_entries(cache, g_device, "add_one", NULL, json, sizeof json, &length));
    CHECK(length == strlen(json));
    CHECK(contains(json, "\"inputs\":[{\"dtype\":\"f32\",\"name\":\"x\",\"sizes\":[64],\"strides\":[1]}]"));
    CHECK(contains(json, "\"metadata\":\"mine\"") && contains(json, "\"misfit\":\"\""));

    wg_entry_query query = {.size = sizeof query, .spec = &spec, .most = 1, .metadata_only = 1};
    spec.version = "other", spec.metadata = NULL;
    char label[512] = "";
    OK(wg_cache_entries(cache, g_device, "add_one", &query, label, sizeof label, &length));
    CHECK(strcmp(label, "[]") == 0);
    spec.version = NULL;
    FAILS(wg_cache_entries(cache, g_device, "add_one", &query, label, sizeof label, &length), wg_invalid_argument,
          "version");
    query.spec = NULL;
    OK(wg_cache_entries(cache, g_device, "add_one", &query, label, sizeof label, &length));
    CHECK(contains(label, "\"metadata\":\"mine\"") && !contains(label, "inputs"));
    query.size = 4;
    FAILS(wg_cache_entries(cache, g_device, "add_one", &query, label, sizeof label, &length), wg_invalid_argument,
          "wg_entry_query");

    const wg_key_value code[] = {{"code.build_id", text_of(json, "code.build_id", build_id, sizeof build_id)},
                                 {"program.small", text_of(json, "program.small", program, sizeof program)}};
    spec.code = NULL, spec.code_count = 0;
    spec.recorded_code = code, spec.recorded_code_count = 2;
    it = load_from(cache, &spec);
    CHECK(call(&it) == wg_outcome_replayed && holds(it.y, 1, 1));

    by_name.device = NULL;
    FAILS(wg_cache_preload(cache, &by_name, &preload), wg_invalid_argument, "preloaded without a device");
    by_name.function_count = 1, by_name.functions = (const char* const[]){NULL};
    FAILS(wg_cache_preload(cache, &by_name, &preload), wg_invalid_argument, "a name in functions is null");
    CHECK(preload == NULL);
    FAILS(wg_cache_entries(NULL, g_device, "add_one", NULL, json, sizeof json, &length), wg_invalid_argument,
          "cache is null");
    FAILS(wg_cache_entries(cache, NULL, "add_one", NULL, json, sizeof json, &length), wg_invalid_argument,
          "device is null");
    FAILS(wg_cache_entries(cache, g_device, NULL, NULL, json, sizeof json, &length), wg_invalid_argument,
          "function name is null");
    end(&it);
}
