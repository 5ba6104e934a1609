-- The whole schema of a store, with the slots that the contract and the database fill (see contract.render).
-- This file never changes once it is released: what comes later is the next file.

CREATE TABLE jobslab (
  schema_version INTEGER NOT NULL,
  contract TEXT NOT NULL
);

-- The CHECKs refuse rows that no contract can mean, and admit every row that a broken one can write (a finished job
-- brought back to RUNNING, say): else the database would teach another lesson than the flag.  So a RUNNING job need have
-- no attempt and no lease: its id may be an older job's, whose late report nothing refuses.

CREATE TABLE jobs (
  id TEXT{binary} PRIMARY KEY NOT NULL,
  kind TEXT NOT NULL,
  params TEXT NOT NULL,
  owner TEXT NOT NULL,
  idempotency_key TEXT,
  fingerprint TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('QUEUED', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED')),
  attempt INTEGER NOT NULL CHECK (attempt >= 0),
  max_attempts INTEGER NOT NULL CHECK (max_attempts >= 1),
  run_at DOUBLE PRECISION NOT NULL,
  lease_until DOUBLE PRECISION,
  worker TEXT,
  progress DOUBLE PRECISION CHECK (progress BETWEEN 0 AND 1),
  cancel_requested INTEGER NOT NULL DEFAULT 0 CHECK (cancel_requested IN (0, 1)),
  result TEXT,
  error TEXT,
  correlation_id TEXT,
  rerun_of TEXT,
  created_at DOUBLE PRECISION NOT NULL,
  started_at DOUBLE PRECISION,
  updated_at DOUBLE PRECISION NOT NULL,
  finished_at DOUBLE PRECISION,
  expires_at DOUBLE PRECISION,
  CHECK (state NOT IN ('SUCCEEDED', 'FAILED', 'CANCELLED') OR (finished_at IS NOT NULL AND expires_at IS NOT NULL))
);

CREATE UNIQUE INDEX one_job_per_key ON jobs (owner, idempotency_key) WHERE {deduplicated};

-- It serves both `pick` and `stuck`, and holds only what is not over: it stays small beside a million finished jobs,
-- and a claim or a report costs it one page.

CREATE INDEX unfinished_jobs ON jobs (state, run_at, created_at, id) WHERE state = 'QUEUED' OR state = 'RUNNING';

-- One serves a page of an owner's jobs, the other a purge: without them each reads a million finished jobs to find
-- none, and the purge keeps the writers waiting meanwhile.

CREATE INDEX newest_jobs ON jobs (owner, created_at, id);

CREATE INDEX finished_jobs ON jobs (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE events (
  n {counted} PRIMARY KEY,
  at DOUBLE PRECISION NOT NULL,
  job_id TEXT NOT NULL,
  actor TEXT,
  verb TEXT NOT NULL,
  attempt INTEGER,
  accepted INTEGER NOT NULL CHECK (accepted IN (0, 1)),
  refused_by TEXT,
  state_before TEXT,
  state_after TEXT,
  correlation_id TEXT
);

CREATE TABLE expired (
  id TEXT{binary} PRIMARY KEY NOT NULL,
  owner TEXT NOT NULL,
  expired_at DOUBLE PRECISION NOT NULL
);
