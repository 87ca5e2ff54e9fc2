/* A module that breaks into calls: whenever a key has expired, it keeps a copy of the key `open` and deletes that.
 *
 * Servers advise modules against it, as it is told of the key within the command that found it expired.
 */
#include <string.h>

static int (*subscribe)(void *, int, int (*)(void *, int, const char *, void *));
static void *(*call)(void *, const char *, const char *, ...);
static void (*free_reply)(void *);

static int expired(void *context, int type, const char *event, void *key) {
    (void)type, (void)key;
    if (strcmp(event, "expired") != 0) return 0;
    free_reply(call(context, "COPY", "cc", "open", "kept"));
    free_reply(call(context, "DEL", "c", "open"));
    /* Whoever still writes to the memory of the key writes to one of these. */
    free_reply(call(context, "COPY", "cc", "kept", "copy"));
    free_reply(call(context, "COPY", "cc", "kept", "another"));
    return 0;
}

int RedisModule_OnLoad(void *context, void **arguments, int count) {
    (void)arguments, (void)count;
    int (*get)(const char *, void *) = ((void **)context)[0];
    void (*set_attributes)(void *, const char *, int, int);
    if (get("RedisModule_SetModuleAttribs", &set_attributes) != 0) return 1;
    if (get("RedisModule_SubscribeToKeyspaceEvents", &subscribe) != 0) return 1;
    if (get("RedisModule_Call", &call) != 0 || get("RedisModule_FreeCallReply", &free_reply) != 0) return 1;
    set_attributes(context, "meddler", 1, 1);
    return subscribe(context, 1 << 8, expired);
}
