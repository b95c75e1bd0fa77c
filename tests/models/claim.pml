/* A model of the claims by which several servers work off one queue (docs/design/claims.md), for the model checker Spin.
 *
 * One job and SERVERS lives of servers. The database is the `live` row and the `ended` row; each `atomic` or `d_step` block that
 * touches them is one transaction. Between two blocks anything may happen elsewhere: that is how a server that stands still and
 * goes on later is modelled. After a commit the server may not hear the answer (`heard`), so it asks the database what became of it.
 *
 * Checked in every state: the job ends at most once; the files that the ended row names were published by the claim that
 * ended it; nobody but the holder of the claim appends events; a stop that was accepted ends as CANCELLED. Checked of every
 * run in which some server stays: the job ends.
 */
#ifndef SERVERS
#define SERVERS 3
#endif
#ifndef CLAIMS
#define CLAIMS 3  /* claims that are ever made; the ATTEMPTS-th lost one ends the job as FAILED */
#endif
#define ATTEMPTS 2
#define NOBODY 255

mtype = { QUEUED, RUNNING, COMPLETED, FAILED, CANCELLED };

/* The row of the job while it has not ended. */
bool is_live = true;
mtype state = QUEUED;
byte claim = NOBODY;     /* the fence: a new value for each attempt */
byte holder = NOBODY;    /* the server that made the claim */
byte sequence = 0;       /* number of events, without those that a claim may append twice */
bool stop = false;
byte lost_attempts = 0;

/* The row of the ended job. */
mtype end_state;
byte winner = NOBODY;
byte ends = 0;

/* The other rows and the object store. */
bool gone[SERVERS];      /* whether the keeper has declared the server's life over */
bool published[CLAIMS];  /* whether the files are under the claim's own prefix */
byte next_claim = 0;

bool stop_accepted = false;

/* The test leaves out one guard at a time and expects an error. */
#ifdef WITHOUT_FENCE
#define IS_MINE is_live
#else
#define IS_MINE (is_live && claim == mine)
#endif
#ifdef WITHOUT_STOP
#define IS_STOPPED false
#else
#define IS_STOPPED stop
#endif

#define MAY_CLAIM(me) (is_live && state == QUEUED && !stop && !gone[me] && next_claim < CLAIMS)

inline End(how, by) {
  assert(ends == 0);
  is_live = false; end_state = how; winner = by; ends++;
  assert(!stop_accepted || how == CANCELLED)
}

/* A worker: claims the job, appends an event, publishes the files and finishes. It never looks at a clock, and it does not
 * know that it was declared gone until the database refuses it. */
proctype Worker(byte me) {
  byte mine, seen, before;
  bool won, told_to_stop;
waiting:
  if
  :: atomic { MAY_CLAIM(me) ->
       mine = next_claim; next_claim++;  /* random in the server: never the same twice */
       state = RUNNING; claim = mine; holder = me; seen = sequence }
  :: !is_live -> goto over
  :: gone[me] -> goto over  /* a new life has another number */
  fi;
  told_to_stop = false;

  /* Append: compared with the claim and with the events that the worker knows. */
  if
  :: atomic { (IS_MINE && sequence == seen) ->
       assert(holder == me); before = sequence; sequence++; told_to_stop = stop;
       assert(sequence == before + 1) }
     if
     :: seen++        /* the answer came */
     :: skip ->       /* the answer was lost: the repeated statement matches no row, so the worker reads the row */
        if
        :: atomic { (is_live && claim == mine && sequence == seen) -> assert(false) }
        :: atomic { (is_live && claim == mine && sequence == seen + 1) -> seen++ }
        :: atomic { (!is_live || claim != mine) -> goto lost }
        fi
     fi
  :: atomic { (!is_live || claim != mine) -> goto lost }
  fi;

  /* The worker may also give the job back, as a drained server does. */
  if
  :: atomic { (is_live && claim == mine && next_claim < CLAIMS && !told_to_stop) ->
       state = QUEUED; claim = NOBODY; holder = NOBODY;
       if
       :: stop -> End(CANCELLED, NOBODY)
       :: else -> skip
       fi }
     goto waiting
  :: skip
  fi;

#ifndef WITHOUT_PUBLISHING
  published[mine] = true;
#endif

finish:
  won = false;
  if
  :: atomic { (IS_MINE && sequence == seen && !IS_STOPPED) ->
       assert(holder == me); End(COMPLETED, mine) }
     if
     :: won = true
     :: skip  /* the answer was lost */
     fi
  :: atomic { (is_live && claim == mine && sequence == seen && stop) -> End(CANCELLED, mine) }
     goto over
  :: atomic { (!is_live || claim != mine) -> skip }
  fi;
  if
  :: won
#ifndef WITHOUT_LOOKING
  :: !won && !is_live && winner == mine  /* repeating found no row; the ended row names this claim */
#endif
#ifdef WITHOUT_LOOKING
  :: !won -> goto lost
#else
  :: !won && (is_live || winner != mine) -> goto lost
#endif
  fi;
  goto over;

lost:
  /* The files of a lost claim are under a prefix that no other claim uses. */
  published[mine] = false;
  goto waiting;

over:
  skip
}

/* The keeper believes that a server is dead, rightly or not, and puts its job back. Two keepers do no harm. */
proctype Keeper() {
  byte seen_claim, seen_holder, server;
  do
  :: !is_live -> break
  :: is_live ->
     /* A worker that has been declared gone and lives is a zombie. One server stays. */
     if
     :: server = 1
#if SERVERS > 2
     :: server = 2
#endif
     :: server = NOBODY
     fi;
     if
     :: server != NOBODY -> gone[server] = true
     :: else -> skip
     fi;
     d_step { seen_claim = claim; seen_holder = holder }
     if
     :: atomic { (is_live && state == RUNNING && claim == seen_claim && seen_holder != NOBODY && gone[seen_holder]) ->
          lost_attempts++; claim = NOBODY; holder = NOBODY; state = QUEUED;
          if
          :: stop -> End(CANCELLED, NOBODY)
          :: !stop && (lost_attempts == ATTEMPTS || next_claim == CLAIMS) -> End(FAILED, NOBODY)
          :: else -> skip
          fi }
     :: skip
     fi
  od
}

/* A caller cancels once, at any time or never. */
proctype Caller() {
  if
  :: atomic { is_live && !stop ->
       stop_accepted = true;
       if
       :: state == QUEUED -> End(CANCELLED, NOBODY)
       :: else -> stop = true
       fi }
  :: skip
  fi
}

init {
  byte i;
  atomic {
    i = 0;
    do
    :: i < SERVERS -> run Worker(i); i++
    :: else -> break
    od;
    run Keeper(); run Caller()
  }
}

ltl files { [] (ends == 0 || end_state != COMPLETED || (winner != NOBODY && published[winner])) }
