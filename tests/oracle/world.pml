/* The world of jobslab/lab/world.py once more, written from DESIGN and not from the code: an outside oracle.

   Spin counts its states for each contract (tests/oracle/counts.py), and they must be as many as the explorer's when
   that looks at every state.  One client sends one intent at most twice; SWEEPERS is 1; a job may be tried twice.

   Flags, 0 or 1:     K idempotency_key  P persistence  L leases  C conditional_updates  F attempt_fencing
   Bounds:            WORKERS 1 or 2, FAULTS, CANCELS 0 or 1
   Reports, 0 or 1:   RENEW  PROGRESS  RETRY  (a worker can always succeed), LATE a progress report may be under way */

#define ATTEMPTS  2
#define QUEUED    1
#define RUNNING   2
#define SUCCEEDED 3
#define FAILED    4
#define CANCELLED 5

#define IDLE      0
#define PICKED    1
#define WORKING   2

typedef Row { byte id; byte state; byte attempt; byte lease; bit asked }
typedef Worker { byte does; byte job; byte attempt; bit live; bit must_fail; bit must_stop }

Row row[3];            /* in the order of the queue; row[2] stays empty: it is what a search for nobody finds */
byte rows;
byte sent, told;       /* the client: submits that it had no answer to, the job that it knows */
Worker worker[2];
byte seen, seen_attempt;
bit seen_left;         /* the sweeper: the job that it saw, and whether an attempt was left */
byte late, late_attempt;
byte faults = FAULTS;

hidden byte n, y;      /* for d_steps alone; no part of the state */

#define MAX(x) if :: x > y -> y = x :: else -> skip fi
#define LANDS(a) (row[n].id != 0 && (!C || row[n].state == RUNNING) && (!F || row[n].attempt == a))
#define OVERDUE(i) (L && row[i].state == RUNNING && row[i].lease == 0)
#define WAITS (row[0].state == QUEUED || row[1].state == QUEUED)

inline find(wanted) { n = 0; do :: n < 2 && row[n].id != wanted -> n++ :: else -> break od }

inline fresh() {
  y = 0;
  MAX(row[0].id); MAX(row[1].id); MAX(told); MAX(worker[0].job); MAX(worker[1].job); MAX(seen); MAX(late);
  y++
}

inline submit() {
  if
  :: K && rows > 0 -> y = row[0].id
  :: else -> fresh(); row[rows].id = y; row[rows].state = QUEUED; rows++
  fi
}

inline cancel() {
  find(told);
  if
  :: row[n].id != 0 && (!C || row[n].state == QUEUED) -> row[n].state = CANCELLED; row[n].asked = 1
  :: row[n].id != 0 && C && row[n].state == RUNNING -> row[n].asked = 1
  :: else -> skip
  fi
}

inline back_to_the_queue() {
  if
  :: row[n].asked -> row[n].state = CANCELLED
  :: else -> row[n].state = QUEUED
  fi
}

inline last_in_the_queue() {   /* row n, of two, is queued anew */
  if
  :: n == 0 && rows == 2 ->
     row[2].id = row[0].id; row[2].state = row[0].state; row[2].attempt = row[0].attempt;
     row[2].lease = row[0].lease; row[2].asked = row[0].asked;
     row[0].id = row[1].id; row[0].state = row[1].state; row[0].attempt = row[1].attempt;
     row[0].lease = row[1].lease; row[0].asked = row[1].asked;
     row[1].id = row[2].id; row[1].state = row[2].state; row[1].attempt = row[2].attempt;
     row[1].lease = row[2].lease; row[1].asked = row[2].asked;
     row[2].id = 0; row[2].state = 0; row[2].attempt = 0; row[2].lease = 0; row[2].asked = 0
  :: else -> skip
  fi
}

inline idle(w) {
  worker[w].does = IDLE; worker[w].job = 0; worker[w].attempt = 0;
  worker[w].live = 0; worker[w].must_fail = 0; worker[w].must_stop = 0
}

inline pick(w) {
  if
  :: row[0].state == QUEUED -> n = 0
  :: else -> n = 1
  fi;
  worker[w].does = PICKED; worker[w].job = row[n].id
}

inline claim(w) {
  find(worker[w].job);
  if
  :: row[n].id != 0 && (!C || row[n].state == QUEUED) ->
     row[n].state = RUNNING; row[n].attempt++; row[n].lease = L;
     worker[w].does = WORKING; worker[w].attempt = row[n].attempt; worker[w].live = 1
  :: else -> idle(w)
  fi
}

inline renew(w) {
  find(worker[w].job);
  if
  :: LANDS(worker[w].attempt) -> row[n].lease = L; worker[w].live = 1; worker[w].must_stop = row[n].asked
  :: else -> idle(w)
  fi
}

inline progress(w) {
  find(worker[w].job);
  if
  :: LANDS(worker[w].attempt) -> row[n].state = RUNNING; worker[w].must_stop = row[n].asked
  :: else -> idle(w)
  fi
}

inline ends_as(w, state_) {
  find(worker[w].job);
  if
  :: LANDS(worker[w].attempt) -> row[n].state = state_
  :: else -> skip
  fi;
  idle(w)
}

inline retry(w) {
  find(worker[w].job);
  if
  :: LANDS(worker[w].attempt) && row[n].attempt < ATTEMPTS -> back_to_the_queue(); last_in_the_queue(); idle(w)
  :: LANDS(worker[w].attempt) && row[n].attempt >= ATTEMPTS -> worker[w].must_fail = 1
  :: else -> idle(w)
  fi
}

inline look(i) { seen = row[i].id; seen_attempt = row[i].attempt; seen_left = (row[i].attempt < ATTEMPTS) }

inline sweep() {
  find(seen);
  if
  :: row[n].id != 0 && (!C || OVERDUE(n)) && (!F || row[n].attempt == seen_attempt) ->
     if
     :: seen_left && row[n].attempt < ATTEMPTS -> back_to_the_queue()
     :: !seen_left && row[n].attempt >= ATTEMPTS -> row[n].state = FAILED
     :: else -> skip
     fi
  :: else -> skip
  fi;
  seen = 0; seen_attempt = 0; seen_left = 0
}

inline arrives() {
  find(late);
  if
  :: LANDS(late_attempt) -> row[n].state = RUNNING
  :: else -> skip
  fi
}

inline restart() {
  if
  :: !P ->
     row[0].id = 0; row[0].state = 0; row[0].attempt = 0; row[0].lease = 0; row[0].asked = 0;
     row[1].id = 0; row[1].state = 0; row[1].attempt = 0; row[1].lease = 0; row[1].asked = 0;
     rows = 0
  :: else -> skip
  fi;
  idle(0); idle(1); seen = 0; seen_attempt = 0; seen_left = 0
}

#define BUSY(w) (worker[w].does == WORKING && !worker[w].must_fail)
#define ON(w) (BUSY(w) && !worker[w].must_stop)

#define WORKER(w) \
  :: d_step { worker[w].does != WORKING && WAITS -> pick(w) } \
  :: d_step { worker[w].does == PICKED -> claim(w) } \
  :: d_step { RENEW && ON(w) -> renew(w) } \
  :: d_step { PROGRESS && ON(w) -> progress(w) } \
  :: d_step { BUSY(w) && worker[w].must_stop -> ends_as(w, CANCELLED) } \
  :: d_step { BUSY(w) -> ends_as(w, SUCCEEDED) } \
  :: d_step { RETRY && BUSY(w) -> retry(w) } \
  :: d_step { worker[w].must_fail -> ends_as(w, FAILED) } \
  :: d_step { LATE && PROGRESS && ON(w) -> late = worker[w].job; late_attempt = worker[w].attempt } \
  :: d_step { worker[w].does != IDLE && faults > 0 -> idle(w); faults-- }

active proctype world() {
  do
  :: d_step { told == 0 && sent < 2 -> submit(); told = y; sent = 0 }
  :: d_step { told == 0 && sent < 2 && faults > 0 -> submit(); sent++; faults-- }
  :: d_step { CANCELS && told != 0 -> cancel(); told = 0; sent = 2 }
  WORKER(0)
#if WORKERS > 1
  WORKER(1)
#endif
  :: d_step { OVERDUE(0) -> look(0) }
  :: d_step { OVERDUE(1) -> look(1) }
  :: d_step { seen != 0 -> sweep() }
  :: d_step { late != 0 -> arrives(); late = 0; late_attempt = 0 }
  :: d_step { late != 0 && faults > 0 -> arrives(); faults-- }
  :: d_step { faults > 0 -> restart(); faults-- }
  :: d_step { L && (row[0].lease + row[1].lease + worker[0].live + worker[1].live > 0) ->
       row[0].lease = 0; row[1].lease = 0; worker[0].live = 0; worker[1].live = 0 }
  od
}
