/* Shares what one cache recorded with a cache of another folder: through a remote, and through callbacks. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"

static const char k_key[] = "c:hmac-sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

enum { k_most_objects = 64 };

/* A store in memory. */
typedef struct shelf {
    pthread_mutex_t mutex;
    struct {
        char name[1024];
        void* bytes;
        uint64_t size;
    } objects[k_most_objects];
    int count, released;
} shelf;

static int index_of(const shelf* it, const char* name)
{
    for (int i = 0; i < it->count; ++i)
        if (strcmp(it->objects[i].name, name) == 0) return i;
    return -1;
}

static wg_status get(void* user, const char* name, uint64_t offset, void* bytes, uint64_t capacity, uint64_t* size)
{
    shelf* it = user;
    pthread_mutex_lock(&it->mutex);
    const int i = index_of(it, name);
    if (i >= 0) {
        *size = it->objects[i].size;
        const uint64_t begin = offset < *size ? offset : *size, rest = *size - begin;
        if (capacity != 0) memcpy(bytes, (char*)it->objects[i].bytes + begin, rest < capacity ? rest : capacity);
    }
    pthread_mutex_unlock(&it->mutex);
    return i >= 0 ? wg_ok : wg_not_found;
}

static wg_status put(void* user, const char* name, const void* bytes, uint64_t size, int32_t create_only)
{
    shelf* it = user;
    pthread_mutex_lock(&it->mutex);
    int i = index_of(it, name);
    const int stays = i >= 0 && create_only;
    if (i < 0 && it->count < k_most_objects) {
        i = it->count++;
        snprintf(it->objects[i].name, sizeof it->objects[i].name, "%s", name);
    }
    if (i >= 0 && !stays) {
        free(it->objects[i].bytes);
        it->objects[i].bytes = malloc(size + 1);
        memcpy(it->objects[i].bytes, bytes, size);
        it->objects[i].size = size;
    }
    pthread_mutex_unlock(&it->mutex);
    return i >= 0 ? wg_ok : wg_no_space;
}

static wg_status drop(void* user, const char* name)
{
    (void)user;
    (void)name;
    return wg_not_found;
}

static wg_status list(void* user, const char* prefix, wg_tier_take take, void* to)
{
    shelf* it = user;
    pthread_mutex_lock(&it->mutex);
    for (int i = 0; i < it->count; ++i)
        if (strncmp(it->objects[i].name, prefix, strlen(prefix)) == 0) take(to, it->objects[i].name);
    pthread_mutex_unlock(&it->mutex);
    return wg_ok;
}

static void released(void* user) { ++((shelf*)user)->released; }

static wg_tier tier_of(shelf* it)
{
    const wg_tier tier = {"shelf", it, get, put, drop, list, released, 0, 0};
    return tier;
}

/* Options of a cache that signs, that has no remote of the environment, and that waits for what it sends. */
static wg_cache_options signing(const char* name, wg_policy policy)
{
    static const char* const k_none[] = {NULL};
    wg_cache_options options = cache_options(name, policy);
    options.sign_with = k_key;
    options.remotes = k_none;
    options.remote_deadline_ms = 60000;
    return options;
}

/* Calls add_one() in a cache with these options. Its counters of remotes are written to `json`. */
static wg_outcome call_with(wg_cache_options options, char* json, uint64_t capacity)
{
    wg_cache* cache = open_with(options);
    const wg_outcome outcome = call_add_one(cache);
    OK(wg_cache_remote_statistics(cache, json, capacity, NULL));
    OK(wg_cache_close(cache));
    return outcome;
}

void a_remote_folder_is_shared_by_two_folders(void)
{
    char url[600], label[700], json[2048];
    snprintf(url, sizeof url, "file://%s/shared", g_folder);
    snprintf(label, sizeof label, "\"label\":\"%s\"", url);
    const char* const urls[] = {url};
    wg_cache_options options = signing("remote_a", wg_policy_read_write);
    CHECK(call_with(options, json, sizeof json) == wg_outcome_recorded && strcmp(json, "[]") == 0);
    options = signing("remote_b", wg_policy_read_write);
    options.remotes = urls, options.remote_count = 1;
    CHECK(call_with(options, json, sizeof json) == wg_outcome_recorded);
    CHECK(contains(json, label) && contains(json, "\"hits\":0,") && contains(json, "\"errors\":{}"));
    options = signing("remote_c", wg_policy_require_hit);
    options.remotes = urls, options.remote_count = 1;
    CHECK(call_with(options, json, sizeof json) == wg_outcome_replayed);
    CHECK(contains(json, label) && !contains(json, "\"hits\":0,") && contains(json, "\"puts\":0,"));
}

void a_tier_of_callbacks_is_shared_by_two_folders(void)
{
    shelf it = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    char json[2048];
    const wg_tier tier = tier_of(&it);
    wg_cache_options options = signing("tier_a", wg_policy_read_write);
    options.tiers = &tier, options.tier_count = 1;
    CHECK(call_with(options, json, sizeof json) == wg_outcome_recorded);
    CHECK(it.count > 1 && it.released == 1);
    options = signing("tier_b", wg_policy_require_hit);
    options.tiers = &tier, options.tier_count = 1;
    CHECK(call_with(options, json, sizeof json) == wg_outcome_replayed);
    CHECK(contains(json, "\"label\":\"shelf\"") && !contains(json, "\"hits\":0,") && it.released == 2);
    for (int i = 0; i < it.count; ++i) free(it.objects[i].bytes);
}

static wg_status fail_get(void* user, const char* name, uint64_t offset, void* bytes, uint64_t capacity, uint64_t* size)
{
    (void)user, (void)name, (void)offset, (void)bytes, (void)capacity, (void)size;
    return wg_io_failed;
}

static wg_status fail_put(void* user, const char* name, const void* bytes, uint64_t size, int32_t create_only)
{
    (void)user, (void)name, (void)bytes, (void)size, (void)create_only;
    return 99;
}

void a_failing_tier_costs_nothing(void)
{
    const wg_tier tier = {"broken", NULL, fail_get, fail_put, drop, list, NULL, 0, 1};
    char json[2048];
    wg_cache_options options = signing("tier_broken", wg_policy_read_write);
    options.tiers = &tier, options.tier_count = 1;
    CHECK(call_with(options, json, sizeof json) == wg_outcome_recorded);
    CHECK(contains(json, "\"io_failed\":"));
}

void tags_keep_caches_apart(void)
{
    char json[64];
    wg_cache_options options = signing("tags", wg_policy_read_write);
    CHECK(call_with(options, json, sizeof json) == wg_outcome_recorded);
    options.cache_key_tag = "blue";
    CHECK(call_with(options, json, sizeof json) == wg_outcome_recorded);
    CHECK(call_with(options, json, sizeof json) == wg_outcome_replayed);
    options.cache_key_tag = NULL;
    CHECK(call_with(options, json, sizeof json) == wg_outcome_replayed);
}

void wrong_remotes_and_tiers_are_refused(void)
{
    shelf it = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    const char* const wrong[] = {"gopher://user:hunter2@host"};
    const char* const null[] = {NULL};
    const wg_cache_options plain = signing("wrong_remotes", wg_policy_read_write);
    wg_cache_options options = plain;
    wg_cache* cache = NULL;
    wg_tier tier = tier_of(&it);

#define OPEN_FAILS(part) FAILS(wg_cache_open(&options, &cache), wg_invalid_argument, (part)), options = plain
    options.remotes = wrong, options.remote_count = 1, OPEN_FAILS("gopher");
    CHECK(!contains(wg_last_error(), "hunter2"));
    options.remotes = null, options.remote_count = 1, OPEN_FAILS("remote is null");
    options.remotes = NULL, options.remote_count = 1, OPEN_FAILS("remotes is null with 1 elements");
    options.tier_count = 1, OPEN_FAILS("tiers is null with 1 elements");
    options.cache_key_tag = "\n", OPEN_FAILS("printable ASCII");
    tier.label = NULL, options.tiers = &tier, options.tier_count = 1, OPEN_FAILS("a tier's label is null");
    tier.label = "no/name", options.tiers = &tier, options.tier_count = 1, OPEN_FAILS("no/name");
    tier = tier_of(&it), tier.list = NULL;
    options.tiers = &tier, options.tier_count = 1, OPEN_FAILS("a callback of tier 'shelf' is null");
#undef OPEN_FAILS
    FAILS(wg_cache_remote_statistics(NULL, NULL, 0, NULL), wg_invalid_argument, "cache is null");
    CHECK(it.released == 0);
}
