/* Events of a service's stages, stamped by the service itself, into a file that says what its stages are called.
 *
 * The README says how to build and link. A thread that stamps has a ring of its own: an event is a few stores, without a lock,
 * without an allocation, without a system call. Times are nanoseconds of CLOCK_MONOTONIC, so that a service may give readings
 * of its own; one that lies beyond what the clock can say counts as the last that it can. Sums by stage end at 2^64 - 1. No
 * number that is given ends the program. Nothing here may be called with a ring from two threads at once. A null pointer for a
 * sampler or a ring is refused, and does nothing. */
#ifndef SAMPLER_H
#define SAMPLER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sampler sampler;
typedef struct sampler_ring sampler_ring;

/* Begins the file `path` of what `node` does at `count` stages of these names (1 to 64). Null if it cannot, or if another
 * sampler writes the file. */
sampler *sampler_open(const char *path, const char *node, const char *const *stages, size_t count);

/* A ring for a thread. Null if the sampler is. */
sampler_ring *sampler_ring_new(const sampler *of);

/* Now, in nanoseconds of CLOCK_MONOTONIC; 0 if the ring is null. */
uint64_t sampler_now(const sampler_ring *ring);

/* Something was done to `count` transactions at a stage (0 = the first), begun at `from`, done at `to`; 0, or -1 where there
 * is no such stage. */
int sampler_event(sampler_ring *ring, uint8_t stage, uint64_t from, uint64_t to, uint64_t count);

/* The same, done now. Gives the time, or 0 where there is no such stage. */
uint64_t sampler_done(sampler_ring *ring, uint8_t stage, uint64_t from, uint64_t count);

/* The time of one transaction, which `key` names, in a stage; it is in no count. */
int sampler_span(sampler_ring *ring, uint8_t stage, uint64_t from, uint64_t to, uint64_t key);

/* The thread stamps no more. The ring is gone. */
void sampler_ring_free(sampler_ring *ring);

/* Writes what there is and ends the file; all rings are to be freed before. Gives how many records were lost (0), or -1 if
 * something could not be written. The sampler is gone. */
int64_t sampler_close(sampler *of);

#ifdef __cplusplus
}
#endif
#endif
