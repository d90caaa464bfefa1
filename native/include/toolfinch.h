/* Toolfinch's C ABI: the only door into the native core, for Node and for every other language.
 *
 * Conventions
 *   - Every function that can fail returns a finch_status. On failure nothing has changed, outputs are untouched, and
 *     finch_last_error() on the same thread says what was wrong, what was expected and how to mend it.
 *   - Option structs begin with `size`, set by the caller to sizeof(the struct): new fields are appended, and a caller
 *     compiled against an older header keeps working. Zero in a field means its documented default. A NULL options
 *     pointer means all defaults, where the function says it may be NULL.
 *   - Handles are opaque and reference counted: *_create/_open gives one reference, *_retain adds one, *_release drops
 * one (NULL is accepted). Every function may be called from any thread at any time, on shared handles too.
 *   - Strings are UTF-8 bytes with a length, not NUL terminated, unless typed `const char*`. Ids are opaque bytes,
 *     compared byte for byte, 1 to FINCH_MAX_ID_BYTES long.
 *   - Vectors are float32, row-major, any alignment. Times (`now`) are in the caller's unit, normally Unix
 * milliseconds.
 *   - No function throws, aborts, prints or calls back on another thread, unless it says so.
 */
#ifndef TOOLFINCH_H
#define TOOLFINCH_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#if defined(FINCH_BUILD)
#define FINCH_API __declspec(dllexport)
#else
#define FINCH_API __declspec(dllimport)
#endif
#else
#define FINCH_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when a function changes meaning or a struct changes layout; adding functions or trailing fields does not. */
#define FINCH_ABI_VERSION 1u
#define FINCH_MAX_ID_BYTES 4096u
#define FINCH_MAX_DIMENSION 65536u
#define FINCH_MAX_K 65536u
/* No key: finch_snapshot_find's answer for an id that is not there. Real keys are 1 ... 2^53 - 1. */
#define FINCH_NO_KEY 0u

/* ---------------------------------------------------------------------------------------------------------------
 * Status and errors. Values are stable; names are the codes of FinchError in every language.
 * ------------------------------------------------------------------------------------------------------------ */

typedef int32_t finch_status;
enum {
  FINCH_OK = 0,
  FINCH_DIMENSION = 1,        /* a vector's length is not the index's (or another's) dimension */
  FINCH_NOT_FINITE = 2,       /* NaN or infinity where a finite number is needed */
  FINCH_ZERO_VECTOR = 3,      /* a vector without direction */
  FINCH_DUPLICATE_ID = 4,     /* the same id twice in one call */
  FINCH_UNKNOWN_ID = 5,       /* an id or key that is not there */
  FINCH_INVALID_ARGUMENT = 6, /* any other argument outside its documented range */
  FINCH_CLOSED = 7,           /* the handle was closed */
  FINCH_CORRUPT = 8,          /* a file or buffer fails its checksum or structure */
  FINCH_VERSION = 9,          /* a file or buffer of a format this build does not read */
  FINCH_IO = 10,              /* the operating system refused a read, write, open or load */
  FINCH_NO_MEMORY = 11,
  FINCH_DEVICE = 12,  /* a device or the model runtime is missing or failed */
  FINCH_ABORTED = 13, /* cancelled by the caller */
  FINCH_INTERNAL = 14 /* a fault of Toolfinch's own; please report it */
};

/* The ABI version of the library: compare with FINCH_ABI_VERSION before anything else. */
FINCH_API uint32_t finch_abi_version(void);
/* The library's release, "major.minor.patch"; static storage. */
FINCH_API const char* finch_version(void);
/* "FINCH_DIMENSION" and so on; "FINCH_INTERNAL" for a value that is no status. Static storage. */
FINCH_API const char* finch_status_name(finch_status status);
/* The message of the last failed call on this thread; "" before any. Valid until the next failing call on this thread.
 */
FINCH_API const char* finch_last_error(void);

typedef struct finch_string {
  const char* data;
  size_t size;
} finch_string;

/* The instruction-set level in use: "portable"; "avx2", "avx512", "avx512vnni", "avx512bf16", "amx"; "neon", "neondot",
 * "neoni8mm", "neonbf16"; each holds those before it. Static storage. TOOLFINCH_ISA=<name> forces a
 * level at the first call; a level this machine lacks is ignored, and finch_isa_reason() says so. */
FINCH_API const char* finch_isa(void);
FINCH_API const char* finch_isa_reason(void);

/* ---------------------------------------------------------------------------------------------------------------
 * Work: the process-wide thread pool, and cancellation.
 * ------------------------------------------------------------------------------------------------------------ */

/* Threads of the pool. Sized from the process's CPU affinity and cgroup quota, or TOOLFINCH_THREADS, at its first use.
 */
FINCH_API uint32_t finch_pool_threads(void);
/* Queues task(argument) on the pool (first in, first out). The task must not throw and must not wait for another task.
 */
FINCH_API finch_status finch_pool_run(void (*task)(void*), void* argument);

/* Ends the use of the model runtime, for good: running encodes are terminated, later ones are FINCH_CLOSED, and the
 * call waits (10 s at most; opening a model takes its time) until no thread is inside. Call it before exit() while
 * encoders may be at work or being opened: exit() destroys onnxruntime's static objects, some of them before any exit
 * hook of ours. Everything else goes on. Twice is fine. */
FINCH_API void finch_shutdown(void);

/* A flag that long calls poll between blocks. Signal it from any thread; the call then returns FINCH_ABORTED. */
typedef struct finch_cancel finch_cancel;
FINCH_API finch_status finch_cancel_create(finch_cancel** out);
FINCH_API void finch_cancel_signal(finch_cancel* cancel);
FINCH_API void finch_cancel_retain(finch_cancel* cancel);
FINCH_API void finch_cancel_release(finch_cancel* cancel);

/* ---------------------------------------------------------------------------------------------------------------
 * Index: unit vectors by id (SPEC: cosine scoring). Writers replace an immutable snapshot; readers hold one and are
 * never blocked.
 * ------------------------------------------------------------------------------------------------------------ */

typedef struct finch_index finch_index;
/* One consistent state of an index. Keys, ids and vectors read through it stay valid until it is released. */
typedef struct finch_snapshot finch_snapshot;
/* A set of ids that may be returned, bound to the snapshot it was made from. */
typedef struct finch_allow finch_allow;

/* What exact search reads. Every index keeps its vectors as float32; the others add a smaller copy that is scanned in
 * their place, and what it finds is rescored from float32. */
typedef int32_t finch_storage;
enum {
  FINCH_STORAGE_F32 = 0,
  FINCH_STORAGE_BF16 = 1, /* bfloat16, rounded to nearest even */
  FINCH_STORAGE_F16 = 2,  /* IEEE half precision, rounded to nearest even */
  FINCH_STORAGE_I8 = 3    /* round(x / s) with s = max |x| / 127 per vector */
};

typedef struct finch_index_options {
  size_t size;
  uint32_t dimension; /* 1 ... FINCH_MAX_DIMENSION; required */
  finch_storage storage;
} finch_index_options;

FINCH_API finch_status finch_index_create(const finch_index_options* options, finch_index** out);
FINCH_API void finch_index_retain(finch_index* index);
FINCH_API void finch_index_release(finch_index* index);

/* Adds or replaces `count` rows; visible to new snapshots all at once. Vectors (count x dimension) are normalised here.
 * A replaced id keeps its key, so its place among ties; a new id gets the next key. `priors` (count, in [0, 1]; RATED's
 * static prior) may be NULL: then 0.5 for new ids and unchanged for replaced ones. `keys` (count) may be NULL.
 * Errors: FINCH_NOT_FINITE, FINCH_ZERO_VECTOR, FINCH_DUPLICATE_ID, FINCH_INVALID_ARGUMENT (id length, prior),
 * FINCH_NO_MEMORY. */
FINCH_API finch_status finch_index_upsert(finch_index* index, const finch_string* ids, const float* vectors,
                                          size_t count, const float* priors, uint64_t* keys);
/* Replaces priors alone. Errors: FINCH_UNKNOWN_ID, FINCH_DUPLICATE_ID, FINCH_INVALID_ARGUMENT. */
FINCH_API finch_status finch_index_set_priors(finch_index* index, const finch_string* ids, const float* priors,
                                              size_t count);
/* Removes all the ids or, on FINCH_UNKNOWN_ID / FINCH_DUPLICATE_ID, none. Their slots are reused; their keys never are.
 */
FINCH_API finch_status finch_index_remove(finch_index* index, const finch_string* ids, size_t count);

typedef struct finch_index_info {
  size_t size;
  uint64_t count;        /* rows */
  uint64_t slots;        /* rows with room reserved, removed ones included */
  uint64_t version;      /* raised by every change */
  uint64_t vector_bytes; /* resident bytes of vectors */
  uint64_t ann_bytes;    /* resident bytes of the ANN graph, 0 without one */
  uint64_t ann_count;    /* entries in the graph, tombstones included */
  uint32_t dimension;
  finch_storage storage;
  uint64_t code_bytes;   /* resident bytes of the copy in `storage`, 0 for float32 */
  uint64_t mapped_bytes; /* bytes of vectors and codes in a mapped file, beside the resident ones */
} finch_index_info;
FINCH_API finch_status finch_index_inspect(const finch_index* index, finch_index_info* out);

/* Builds an HNSW graph (usearch) over the present rows, beside readers and writers; later upserts and removes keep it
 * up. Takes seconds for tens of thousands of rows: call it from a pool thread. Calling again rebuilds and compacts.
 * `options` may be NULL. Errors: FINCH_ABORTED, FINCH_NO_MEMORY, FINCH_INVALID_ARGUMENT. */
typedef struct finch_ann_options {
  size_t size;
  uint32_t connectivity;     /* M; default 16 */
  uint32_t expansion_add;    /* efConstruction; default 128 */
  uint32_t expansion_search; /* ef; default 96 */
} finch_ann_options;
FINCH_API finch_status finch_index_build_ann(finch_index* index, const finch_ann_options* options,
                                             const finch_cancel* cancel);
/* Drops the graph. */
FINCH_API finch_status finch_index_drop_ann(finch_index* index);

/* Index file (docs/index-format.md): written beside `path`, synced and renamed. Blobs are the caller's own named
 * sections (names: 1 ... 63 bytes, unique), stored and checksummed with the vectors. */
typedef struct finch_blob {
  finch_string name;
  const void* data;
  size_t size;
} finch_blob;
/* Errors: FINCH_IO, FINCH_INVALID_ARGUMENT, FINCH_NO_MEMORY. */
FINCH_API finch_status finch_index_save(const finch_index* index, const char* path, const finch_blob* blobs,
                                        size_t count);
typedef struct finch_open_options {
  size_t size;
  /* 1: vectors (and codes) stay in the file, mapped read-only: opening copies none of them, processes that map the same
   * file share its pages, and the system takes and gives back their memory as it needs. Changes are made in memory as
   * ever; a changed stretch of rows is copied. The mapping is of the file that was opened: one renamed over it (as
   * finch_index_save does) changes nothing. The file must not be shortened or written in place meanwhile: reading a
   * page that is gone ends the process with SIGBUS. Windows refuses to replace a file while it is mapped. */
  uint32_t map;
  /* 1, with map: the checksums and lengths of vectors and codes are not verified, so opening does not read them and
   * takes the time of the ids alone. For files that were verified before: damaged vectors give wrong scores, NaN
   * among them, and results may be missing. */
  uint32_t unverified;
} finch_open_options;
/* options may be NULL. Errors: FINCH_IO, FINCH_CORRUPT, FINCH_VERSION, FINCH_INVALID_ARGUMENT, FINCH_NO_MEMORY. */
FINCH_API finch_status finch_index_open(const char* path, const finch_open_options* options, finch_index** out);
/* A section of the file the index was opened from; valid until the index is released. FINCH_UNKNOWN_ID: no such
 * section. */
FINCH_API finch_status finch_index_blob(const finch_index* index, finch_string name, const void** data, size_t* size);

/* The present state. Cheap (a reference count). Release it soon: it keeps replaced rows in memory. */
FINCH_API finch_status finch_index_snapshot(const finch_index* index, finch_snapshot** out);
FINCH_API void finch_snapshot_retain(finch_snapshot* snapshot);
FINCH_API void finch_snapshot_release(finch_snapshot* snapshot);
FINCH_API uint64_t finch_snapshot_version(const finch_snapshot* snapshot);
FINCH_API uint64_t finch_snapshot_count(const finch_snapshot* snapshot);
/* Keys in insertion order. `keys` has room for `capacity`; *count is how many rows there are. */
FINCH_API finch_status finch_snapshot_keys(const finch_snapshot* snapshot, uint64_t* keys, size_t capacity,
                                           size_t* count);
/* Keys of ids, FINCH_NO_KEY where an id is not in the snapshot. */
FINCH_API finch_status finch_snapshot_find(const finch_snapshot* snapshot, const finch_string* ids, size_t count,
                                           uint64_t* keys);
/* Ids of keys (pointers into the snapshot), stored vectors (count x dimension, unit) and priors; any output may be
 * NULL. Errors: FINCH_UNKNOWN_ID. */
FINCH_API finch_status finch_snapshot_rows(const finch_snapshot* snapshot, const uint64_t* keys, size_t count,
                                           finch_string* ids, float* vectors, float* priors);

/* Ids not in the snapshot are ignored: they could not be returned. *matched (may be NULL) is how many were found.
 * An empty set is valid and allows nothing. Immutable; may be shared by threads. */
FINCH_API finch_status finch_allow_create(const finch_snapshot* snapshot, const finch_string* ids, size_t count,
                                          finch_allow** out, size_t* matched);
FINCH_API void finch_allow_release(finch_allow* allow);

typedef int32_t finch_search_mode;
enum {
  FINCH_SEARCH_AUTO = 0, /* the ANN graph when there is one, else exact */
  FINCH_SEARCH_EXACT = 1,
  FINCH_SEARCH_ANN = 2 /* FINCH_INVALID_ARGUMENT without a graph; candidates are rescored exactly */
};

typedef struct finch_search_options {
  size_t size;
  uint32_t k; /* 1 ... FINCH_MAX_K; required */
  finch_search_mode mode;
  const finch_allow* allow;   /* NULL: all rows. Of another snapshot version: FINCH_INVALID_ARGUMENT */
  const finch_cancel* cancel; /* may be NULL */
  /* Threads that may work on this call, the calling one included. 0: as many as the pool has where the work is large
   * enough to share (~100 us), else the calling one alone. */
  uint32_t threads;
  /* Storage other than float32: how many candidates of the scan are rescored, k at least.
   * 0: at most k + k / 16 + 16, for int8 k + k / 4 + 24, and of those the ones that score so near to the k-th that
   * rounding (6 standard deviations of it) could have put them behind it. */
  uint32_t overfetch;
  /* With the ANN graph: how many candidates a walk keeps (ef), k to 65,536. More find more of the true best and take
   * longer. 0: the graph's expansion_search, or k + k / 4 + 16 if that is more. */
  uint32_t expansion;
} finch_search_options;

/* For each of `queries` rows (count x dimension; normalised here): the k best rows by cosine, descending, ties by key.
 * keys and scores have room for count * k; counts[i] <= k is how many row i got (the rest of its part is untouched).
 * Results are the same bits for any number of threads, queries in the call and order of rows; scores are float32 dot
 * products whatever the storage. Exact with float32; with another storage a row is missed when its code is not among
 * those rescored (`overfetch`). Errors: FINCH_NOT_FINITE, FINCH_ZERO_VECTOR, FINCH_INVALID_ARGUMENT, FINCH_ABORTED,
 * FINCH_NO_MEMORY. */
FINCH_API finch_status finch_search(const finch_snapshot* snapshot, const float* queries, size_t count,
                                    const finch_search_options* options, uint64_t* keys, float* scores,
                                    uint32_t* counts);

/* Queues a search (queries copied) for the pool. Requests that wait for the same snapshot with the same options are
 * taken together as one batch: under load, many requests share one pass over the vectors; idle, a request starts at
 * once. `done` is called exactly once, on a pool thread, also after cancellation, but no more once the process is
 * exiting; keys, scores and counts are valid during the call (layout of finch_search), NULL on failure; message is the
 * error's. options->cancel is retained; options->allow must live until then. Arguments and queries are checked before
 * this returns; on an error `done` is not called. */
typedef void (*finch_search_done)(void* user, finch_status status, const char* message, const uint64_t* keys,
                                  const float* scores, const uint32_t* counts);
FINCH_API finch_status finch_search_submit(finch_snapshot* snapshot, const float* queries, size_t count,
                                           const finch_search_options* options, finch_search_done done, void* user);
/* How long a submitted search may wait for others to join its batch, in microseconds; 0 to 100,000; default 0: not at
 * all. Process-wide. */
FINCH_API finch_status finch_search_set_wait(uint32_t microseconds);

/* out[i] = cosine(a_i, b_i) for count pairs of rows. Errors: FINCH_NOT_FINITE, FINCH_ZERO_VECTOR, FINCH_DIMENSION (0 or
 * too large). */
FINCH_API finch_status finch_cosine(const float* a, const float* b, size_t count, uint32_t dimension, float* out);

/* ---------------------------------------------------------------------------------------------------------------
 * Truncate: dynamic top-k (MagicSelector, algorithm 2).
 * ------------------------------------------------------------------------------------------------------------ */

enum { FINCH_CUT_SCORE = 1, FINCH_CUT_SIMILARITY = 2 };

typedef struct finch_cut_options {
  size_t size;
  uint32_t min_k;   /* default 0: no lower bound beyond the rule's */
  uint32_t max_k;   /* default 0: none; at least min_k */
  uint32_t signals; /* FINCH_CUT_SCORE | FINCH_CUT_SIMILARITY (the default) or one alone */
  uint32_t after;   /* 0: cut after t_i, as the paper; 1: after t_(i+1), the last tool of the cluster */
} finch_cut_options;

typedef struct finch_cut {
  size_t size;
  uint32_t k;            /* how many to keep: 0 only when n = 0 */
  uint32_t k_score;      /* 1-based i of the largest score gap; 0 when n < 2 or the signal is off */
  uint32_t k_similarity; /* 1-based i of the largest similarity gap; 0 when n < 3 or the signal is off */
  uint32_t signal; /* which signal set k: FINCH_CUT_SCORE, FINCH_CUT_SIMILARITY, both bits when equal, 0 when min/max
                      did or there was no gap */
  float gap_score; /* s_i - s_(i+1) at k_score, at most FLT_MAX; 0 when there is none */
  float gap_similarity; /* sim_i - sim_(i+1) at k_similarity, 0 when there is none */
  uint32_t n;           /* how many were looked at: the length of the list; in finch_rank, of its healthy part */
} finch_cut;

/* scores (n, descending) and embeddings (n x dimension, in that order; any length, cosine is taken; may be NULL when
 * the similarity signal is off). similarities (n - 1) may be NULL. options may be NULL. One pass, O(n * dimension).
 * Errors: FINCH_NOT_FINITE, FINCH_ZERO_VECTOR, FINCH_INVALID_ARGUMENT (not sorted, options). */
FINCH_API finch_status finch_truncate(const float* scores, const float* embeddings, size_t n, uint32_t dimension,
                                      const finch_cut_options* options, finch_cut* out, float* similarities);
/* Ragged batch: list j is rows offsets[j] ... offsets[j + 1] - 1; offsets has lists + 1 entries, ascending from 0. */
FINCH_API finch_status finch_truncate_batch(const float* scores, const float* embeddings, const uint64_t* offsets,
                                            size_t lists, uint32_t dimension, const finch_cut_options* options,
                                            finch_cut* out);

/* ---------------------------------------------------------------------------------------------------------------
 * Reliability: discounted diagonal LinUCB (RATED), one arm per id with feedback; ids without feedback take no memory.
 * ------------------------------------------------------------------------------------------------------------ */

typedef struct finch_bandit finch_bandit;

typedef int32_t finch_bandit_form;
enum {
  FINCH_BANDIT_CALIBRATED = 0, /* SPEC 4: stays near [0, 1] */
  FINCH_BANDIT_LITERAL = 1,    /* the paper's words */
  FINCH_BANDIT_MEAN = 2        /* global MAB: one discounted mean and UCB bonus per tool, context ignored */
};

typedef struct finch_bandit_options {
  size_t size;
  uint32_t dimension; /* required */
  finch_bandit_form form;
  float lambda; /* > 0; default 1 */
  float gamma;  /* (0, 1]; default 0.95; effective memory 1 / (1 - gamma) updates */
  float alpha;  /* >= 0, FINCH_ALPHA_ZERO for none; default 0.1 */
  /* Availability: a context-free estimate beside the arm, quick to fall: a <- g a + (1 - g) y after each outcome,
   * starting at 1. Between outcomes it relaxes towards 1 with half-life h 2^(f - 1), f = failures in a row, at most
   * h_max: a tool that failed is tried again at growing intervals (half-open). */
  float availability_gamma;          /* g in (0, 1); default 0.5 */
  double availability_half_life;     /* h > 0 in the unit of `now`; default 30000 (30 s) */
  double availability_half_life_max; /* h_max >= h; default 3600000 (1 h) */
  /* Trials: a tool whose failures in a row are more than chance (its own success rate before them) is suspended: its
   * availability is below 0.5 until its trial is due, when it is 1. A trial is due once the relaxing availability is
   * 0.5 again and the bandit's budget of failed trials has room: every report adds this share to it, every h_max adds
   * 1, a failed trial takes 1, one that succeeds adds 2; it holds 3 at most. First trials and repeated ones have a
   * budget each. Tools that are not suspended have availability 1. INFINITY: no suspension and no budget, availability
   * is the relaxing estimate alone. */
  float trial_share; /* (0, 1], or INFINITY; default 0.0025 */
} finch_bandit_options;
/* alpha = 0 would mean "default": ask for no exploration with this. */
#define FINCH_ALPHA_ZERO (-1.0f)

FINCH_API finch_status finch_bandit_create(const finch_bandit_options* options, finch_bandit** out);
FINCH_API void finch_bandit_retain(finch_bandit* bandit);
FINCH_API void finch_bandit_release(finch_bandit* bandit);

typedef struct finch_arm_score {
  float mean;         /* theta . x (literal), r + mean_i(b_i x_i / A_i) (calibrated), discounted mean (mean form) */
  float bonus;        /* alpha times the uncertainty; 0 when explore is off */
  float availability; /* in [0, 1] at `now` */
  float last_outcome; /* y of the latest update, NaN without one */
  float contrast;     /* calibrated: cos(x, contexts it worked in) - cos(x, contexts it failed in), both since its first
                         failure, in [-2, 2]; NaN while there are not both. Below 0, and the contrast's record good, the
                         tool is taken to fail for x: availability is below 0.5 until a trial is due. It never raises
                         availability. */
  double evidence;    /* discounted number of updates */
  uint64_t updates;   /* all updates ever */
} finch_arm_score;

/* Scores `count` ids in the context x (dimension; normalised here). priors (count, in [0, 1]; NULL: 0.5) is r of an id
 * without feedback; an arm with feedback keeps the r it was made with. p = mean + bonus. Errors: FINCH_NOT_FINITE,
 * FINCH_ZERO_VECTOR, FINCH_INVALID_ARGUMENT. */
FINCH_API finch_status finch_bandit_score(const finch_bandit* bandit, const finch_string* ids, const float* priors,
                                          size_t count, const float* x, double now, int32_t explore,
                                          finch_arm_score* out);
/* finch_bandit_score for many contexts at once: list j is ids offsets[j] ... offsets[j + 1] - 1 (offsets has lists + 1
 * entries, ascending from 0), scored in row j of contexts (lists x dimension); `out` has room for offsets[lists]. All
 * lists see one state of the arms. The same bits as one call per list. */
FINCH_API finch_status finch_bandit_score_batch(const finch_bandit* bandit, const finch_string* ids,
                                                const float* priors, const uint64_t* offsets, size_t lists,
                                                const float* contexts, double now, int32_t explore,
                                                finch_arm_score* out);

typedef struct finch_outcome {
  finch_string id;
  const float* x; /* dimension; normalised here. NULL: an outcome without a context, such as a health check's: A and b
                     stay as they are */
  float prior;    /* r in [0, 1] */
  float y;        /* reward in [0, 1]: 1 worked, 0 failed */
  double now;
} finch_outcome;
/* Applies outcomes in order; all or, on an error, none. Deterministic: the same sequence gives the same bits, in one
 * call or in many, on every machine. Outcomes that follow one another with the same `x` pointer have it read once. */
FINCH_API finch_status finch_bandit_update(finch_bandit* bandit, const finch_outcome* outcomes, size_t count);
/* Forgets arms (removed or replaced tools); ids without an arm are ignored. */
FINCH_API finch_status finch_bandit_drop(finch_bandit* bandit, const finch_string* ids, size_t count);
FINCH_API finch_status finch_bandit_arms(const finch_bandit* bandit, uint64_t* count, uint64_t* bytes);

/* State as bytes (docs/bandit-state-format.md: versioned, checksummed, arms in byte order of ids, so equal states give
 * equal bytes). With buffer NULL only *size is set. A buffer that is too small: FINCH_INVALID_ARGUMENT, *size set. */
FINCH_API finch_status finch_bandit_serialize(const finch_bandit* bandit, void* buffer, size_t capacity, size_t* size);
/* Replaces all arms. FINCH_VERSION, FINCH_CORRUPT; FINCH_DIMENSION or FINCH_INVALID_ARGUMENT when made with other
 * options. */
FINCH_API finch_status finch_bandit_deserialize(finch_bandit* bandit, const void* buffer, size_t size);

/* ---------------------------------------------------------------------------------------------------------------
 * Fuse and select: RATED's fusion, and the hot path in one call.
 * ------------------------------------------------------------------------------------------------------------ */

typedef struct finch_weights {
  size_t size;
  float semantic; /* w1; with bandit and prior sums to 1 (within 1e-4). All three 0: 0.75, 0.15, 0.10 */
  float bandit;   /* w2 */
  float prior;    /* w3 */
  float outage;   /* beta in [0, 1]: how far an unavailable tool falls. 0: RATED's fusion as written */
  uint32_t clamp; /* 1: p is clipped to [0, 1] before it is weighted, so that feedback's influence is bounded by w2 */
} finch_weights;

/* S_i = w1 semantic_i + w2 p_i + w3 prior_i - outage (1 - availability_i), p_i clipped when asked. weights may be NULL.
 * p, prior and availability may be NULL: p_i = prior_i, prior_i = 0.5, availability_i = 1. Each element stands alone:
 * many lists are fused as one, one behind the other.
 * Errors: FINCH_NOT_FINITE, FINCH_INVALID_ARGUMENT. */
FINCH_API finch_status finch_fuse(const float* semantic, const float* p, const float* prior, const float* availability,
                                  size_t count, const finch_weights* weights, float* out);

typedef struct finch_candidate {
  uint64_t key;
  finch_string id; /* pointer into the snapshot */
  float semantic;
  float prior;
  finch_arm_score arm;
  float score;            /* fused */
  uint32_t semantic_rank; /* 0-based place before fusion */
} finch_candidate;

typedef struct finch_rank_options {
  size_t size;
  double now;
  int32_t explore;              /* 1: add the exploration bonus */
  const finch_weights* weights; /* may be NULL */
  const finch_cut_options* cut; /* may be NULL */
  /* Candidates less available than this, in [0, 1], go behind all others, and the cut does not see them: a failing tool
   * is not offered, nor is the gap it leaves taken for a cliff. When none is above, all count. Default 0: no such rule.
   */
  float min_availability;
} finch_rank_options;

/* From candidates to the cut: bandit and prior -> fuse -> sort (score descending, ties by key) -> truncate. keys
 * (count, distinct) with their semantic scores; x (dimension) is the context. bandit may be NULL: p = prior,
 * availability 1. The same bits as finch_snapshot_rows, finch_bandit_score, finch_fuse and finch_truncate called one by
 * one. candidates has room for count. `similarities` (room for count - 1; cut->n - 1 are written, of neighbours in
 * fused order) may be NULL. */
FINCH_API finch_status finch_rank(const finch_snapshot* snapshot, const finch_bandit* bandit, const uint64_t* keys,
                                  const float* semantic, size_t count, const float* x,
                                  const finch_rank_options* options, finch_candidate* candidates, finch_cut* cut,
                                  float* similarities);
/* finch_search for one query, then finch_rank on what it found. candidates has room for search->k. */
FINCH_API finch_status finch_select(const finch_snapshot* snapshot, const finch_bandit* bandit, const float* query,
                                    const finch_search_options* search, const finch_rank_options* rank,
                                    finch_candidate* candidates, size_t* count, finch_cut* cut, float* similarities);

/* ---------------------------------------------------------------------------------------------------------------
 * Encode: WordPiece and ONNX sessions. onnxruntime is opened at run time from the path given.
 * ------------------------------------------------------------------------------------------------------------ */

typedef struct finch_tokenizer finch_tokenizer;
typedef struct finch_tokenizer_options {
  size_t size;
  const char* vocab_path; /* one token a line; required */
  uint32_t lowercase;
  uint32_t strip_accents;
  uint32_t chinese_characters;
  uint32_t max_word_characters;                        /* default 100 */
  finch_string unknown, start, end, pad, continuation; /* defaults [UNK] [CLS] [SEP] [PAD] ## */
} finch_tokenizer_options;
/* Errors: FINCH_IO, FINCH_CORRUPT (a special token is missing, a token twice, not UTF-8). */
FINCH_API finch_status finch_tokenizer_open(const finch_tokenizer_options* options, finch_tokenizer** out);
FINCH_API void finch_tokenizer_retain(finch_tokenizer* tokenizer);
FINCH_API void finch_tokenizer_release(finch_tokenizer* tokenizer);
/* BERT's tokenisation: start, word pieces, end; cut to max_tokens (>= 3) including both. Invalid UTF-8 becomes U+FFFD.
 * *count is how many; at most max_tokens. `ids` has room for max_tokens. */
FINCH_API finch_status finch_tokenize(const finch_tokenizer* tokenizer, finch_string text, uint32_t max_tokens,
                                      int32_t* ids, size_t* count);

/* Which text of a pair gives way when both do not fit. LONGEST_FIRST takes tokens one by one from the longer text, as
 * most cross-encoders are trained. DOCUMENT_FIRST takes them from the document alone; a query that would leave it
 * nothing is cut longest first. */
typedef int32_t finch_truncation;
enum { FINCH_TRUNCATE_LONGEST_FIRST = 0, FINCH_TRUNCATE_DOCUMENT_FIRST = 1 };
/* A pair as a cross-encoder reads it: start, query, end, document, end; at most max_tokens (>= 5). *document_at is the
 * place of the first id of the document's part, whose segment is 1. `ids` has room for max_tokens. */
FINCH_API finch_status finch_tokenize_pair(const finch_tokenizer* tokenizer, finch_string query, finch_string document,
                                           uint32_t max_tokens, finch_truncation truncation, int32_t* ids,
                                           size_t* count, size_t* document_at);

typedef struct finch_encoder finch_encoder;
typedef int32_t finch_pooling;
enum { FINCH_POOL_NONE = 0 /* the output is [batch, dimension] */, FINCH_POOL_MEAN = 1, FINCH_POOL_CLS = 2 };

typedef struct finch_encoder_options {
  size_t size;
  const char* runtime_path;   /* libonnxruntime; required */
  const char* model_path;     /* required */
  finch_tokenizer* tokenizer; /* required; retained */
  const char* output_name;    /* required */
  uint32_t dimension;         /* required; checked against the model */
  uint32_t max_tokens;        /* 3 to 65536; default 256 */
  finch_pooling pooling;
  uint32_t batch_size; /* 1 to 256 texts of equal token length per run; default 1: a text's bits never depend on its
                          batch mates */
} finch_encoder_options;
/* Takes up to seconds. Errors: FINCH_IO (files), FINCH_DEVICE (runtime: missing, too old, refused the model),
 * FINCH_DIMENSION. */
FINCH_API finch_status finch_encoder_open(const finch_encoder_options* options, finch_encoder** out);
FINCH_API void finch_encoder_retain(finch_encoder* encoder);
FINCH_API void finch_encoder_release(finch_encoder* encoder);
/* onnxruntime's own version string; valid while the encoder is. */
FINCH_API const char* finch_encoder_runtime(const finch_encoder* encoder);

/* Encodes on the calling thread: out is count x dimension, unit vectors. */
FINCH_API finch_status finch_encode(finch_encoder* encoder, const finch_string* texts, size_t count, float* out,
                                    const finch_cancel* cancel);
/* Queues texts (copied) for the pool; waiting requests share the threads fairly, text by text. `done` is called exactly
 * once, on a pool thread, also after cancellation, but no more once the process is exiting; vectors (count x dimension)
 * is valid during the call, NULL on failure; message is the error's. */
typedef void (*finch_encode_done)(void* user, finch_status status, const char* message, const float* vectors,
                                  size_t count);
FINCH_API finch_status finch_encode_submit(finch_encoder* encoder, const finch_string* texts, size_t count,
                                           finch_cancel* cancel, finch_encode_done done, void* user);

/* ---------------------------------------------------------------------------------------------------------------
 * Rerank: cross-encoders. A pair (query, document) in, one logit out; the higher, the better the document fits.
 * ------------------------------------------------------------------------------------------------------------ */

/* Where a model runs. CUDA and COREML are strict: FINCH_DEVICE when onnxruntime's build or this machine cannot. AUTO
 * takes the first of CUDA, COREML, CPU that opens the model and runs a trial pair. onnxruntime itself leaves operators
 * that a device lacks to the CPU. */
typedef int32_t finch_provider;
enum { FINCH_PROVIDER_CPU = 0, FINCH_PROVIDER_CUDA = 1, FINCH_PROVIDER_COREML = 2, FINCH_PROVIDER_AUTO = 3 };

typedef struct finch_reranker finch_reranker;
typedef struct finch_reranker_options {
  size_t size;
  const char* runtime_path;   /* libonnxruntime; required */
  const char* model_path;     /* required; one float32 logit a pair, [batch, 1] or [batch] */
  finch_tokenizer* tokenizer; /* required; retained */
  const char* output_name;    /* required */
  uint32_t max_tokens;        /* of a pair, 5 to 65536; default 256 */
  finch_truncation truncation;
  finch_provider provider;
  uint32_t batch_size; /* 1 to 256 pairs of equal length per run; default 1 on the CPU (a pair's bits never depend on
                          its batch mates, and larger runs are no faster there), 32 on a device, where pairs are padded
                          to a multiple of 32 tokens */
} finch_reranker_options;
/* Takes up to seconds. Errors: FINCH_IO (files), FINCH_DEVICE (runtime or provider), FINCH_DIMENSION (more than one
 * number a pair). */
FINCH_API finch_status finch_reranker_open(const finch_reranker_options* options, finch_reranker** out);
FINCH_API void finch_reranker_retain(finch_reranker* reranker);
FINCH_API void finch_reranker_release(finch_reranker* reranker);
/* onnxruntime's own version string; valid while the reranker is. */
FINCH_API const char* finch_reranker_runtime(const finch_reranker* reranker);
/* The provider that was taken (never AUTO), and why, in words: "asked for", or what was wrong with those before it. */
FINCH_API finch_provider finch_reranker_provider(const finch_reranker* reranker);
FINCH_API const char* finch_reranker_provider_reason(const finch_reranker* reranker);

/* Scores on the calling thread, in the documents' order: logits has room for count. Documents whose run did not begin
 * within budget_us microseconds (0: no limit) get NaN, which no scored pair has. */
FINCH_API finch_status finch_rerank(finch_reranker* reranker, finch_string query, const finch_string* documents,
                                    size_t count, uint64_t budget_us, float* logits, const finch_cancel* cancel);
/* Queues the pairs (copied) for the pool; waiting requests share the threads fairly, pair by pair, each beginning with
 * its first document; equal pairs are run once. The budget counts from this call; pairs whose run has not begun by then
 * come back as NaN, at the latest one run after it. `done` is called as finch_encode_submit's; logits holds count
 * numbers. */
typedef void (*finch_rerank_done)(void* user, finch_status status, const char* message, const float* logits,
                                  size_t count);
FINCH_API finch_status finch_rerank_submit(finch_reranker* reranker, finch_string query, const finch_string* documents,
                                           size_t count, uint64_t budget_us, finch_cancel* cancel,
                                           finch_rerank_done done, void* user);

#ifdef __cplusplus
}
#endif
#endif /* TOOLFINCH_H */
