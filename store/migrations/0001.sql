-- Version 1: everything an agent owns. Tables whose name begins with "_" are
-- Satchel's own and closed to the SQL endpoint. Times are TEXT, RFC 3339 UTC
-- with milliseconds; lists and objects are JSON text. Types and CHECKs keep what
-- is written by SQL in the form that the program reads.

CREATE TABLE _agent (
  id          TEXT PRIMARY KEY NOT NULL,  -- with folder: whose file this is, to tell a copy
  folder      TEXT NOT NULL,
  name        TEXT NOT NULL,
  description TEXT NOT NULL DEFAULT '',
  status      TEXT NOT NULL DEFAULT 'active',
  owner_email TEXT NOT NULL DEFAULT '',
  settings    TEXT NOT NULL DEFAULT '{}',
  settings_at TEXT NOT NULL,
  woken       INTEGER NOT NULL DEFAULT 0,  -- the newest event when it became active last
  created_at  TEXT NOT NULL,
  updated_at  TEXT NOT NULL
);

CREATE TABLE _admins (
  id         TEXT PRIMARY KEY NOT NULL,
  email      TEXT NOT NULL UNIQUE,
  name       TEXT NOT NULL DEFAULT '',
  role       TEXT NOT NULL,
  created_at TEXT NOT NULL
);

CREATE TABLE _keys (  -- used in the default agent's file only
  id         TEXT PRIMARY KEY NOT NULL,
  name       TEXT NOT NULL,
  prefix     TEXT NOT NULL,
  hash       TEXT NOT NULL UNIQUE,
  role       TEXT NOT NULL,
  agents     TEXT NOT NULL,
  maker      TEXT NOT NULL DEFAULT '',
  created_at TEXT NOT NULL,
  expires_at TEXT,
  revoked_at TEXT
);

CREATE TABLE _secrets (  -- sealed credentials: owner is "settings" or a record's id
  owner      TEXT NOT NULL,
  field      TEXT NOT NULL,
  key_id     TEXT NOT NULL,
  sealed     BLOB NOT NULL,
  updated_at TEXT NOT NULL,
  PRIMARY KEY (owner, field)
) WITHOUT ROWID;

CREATE TABLE _events (  -- the outbox: written with what it tells, delivered after the commit
  seq        INTEGER PRIMARY KEY,  -- only grows, for the newest event is never deleted
  id         TEXT NOT NULL DEFAULT ('event-' || lower(hex(randomblob(10)))),
  type       TEXT NOT NULL,
  data       TEXT NOT NULL,
  depth      INTEGER NOT NULL DEFAULT 0,
  created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now'))
);

CREATE TABLE _cursors (  -- how far each consumer of the outbox has come
  consumer TEXT PRIMARY KEY NOT NULL,
  seq      INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
INSERT INTO _cursors(consumer) VALUES ('webhooks'),('workflows'),('answers');

CREATE TABLE _counts (name TEXT PRIMARY KEY NOT NULL, n INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO _counts VALUES ('contacts',0),('conversations',0),('messages',0),('workflows',0),('executions',0),('schedules',0),('tasks',0),('logs',0),('sources',0),('webhooks',0),('gateways',0),('tools',0),('mcp_servers',0);

-- Contacts. The indexes on expressions say when two contacts are the same.
CREATE TABLE contacts (
  id            TEXT PRIMARY KEY NOT NULL DEFAULT ('contact-' || lower(hex(randomblob(10)))),
  name          TEXT NOT NULL,
  email         TEXT NOT NULL DEFAULT '',
  phone         TEXT NOT NULL DEFAULT '',
  chatbot_a     TEXT NOT NULL DEFAULT '',
  chatbot_b     TEXT NOT NULL DEFAULT '',
  social_handle TEXT NOT NULL DEFAULT '',
  external_id   TEXT NOT NULL DEFAULT '',
  notes         TEXT NOT NULL DEFAULT '',
  tags          TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(tags) AND json_type(tags) = 'array'),
  metadata      TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(metadata) AND json_type(metadata) = 'object'),
  created_at    TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')) CHECK (created_at IS strftime('%Y-%m-%dT%H:%M:%fZ',created_at)),
  updated_at    TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')) CHECK (updated_at = created_at OR updated_at IS strftime('%Y-%m-%dT%H:%M:%fZ',updated_at))
) STRICT;
CREATE UNIQUE INDEX contacts_email ON contacts(lower(trim(email))) WHERE email <> '';
CREATE UNIQUE INDEX contacts_phone ON contacts(
  replace(replace(replace(replace(replace(replace(replace(replace(phone,' ',''),'-',''),'(',''),')',''),'+',''),'.',''),'/',''),char(160),'')
) WHERE phone <> '';
CREATE UNIQUE INDEX contacts_chatbot_a ON contacts(ltrim(lower(trim(chatbot_a)),'@')) WHERE chatbot_a <> '';
CREATE UNIQUE INDEX contacts_chatbot_b ON contacts(chatbot_b) WHERE chatbot_b <> '';
CREATE UNIQUE INDEX contacts_external_id ON contacts(external_id) WHERE external_id <> '';
CREATE INDEX contacts_created ON contacts(created_at, id);

CREATE TABLE _contact_tags (
  tag        TEXT NOT NULL,
  contact_id TEXT NOT NULL,
  PRIMARY KEY (tag, contact_id)
) WITHOUT ROWID;
CREATE INDEX _contact_tags_contact ON _contact_tags(contact_id);

CREATE TABLE conversations (
  id                 TEXT PRIMARY KEY NOT NULL DEFAULT ('conversation-' || lower(hex(randomblob(10)))),
  contact_id         TEXT NOT NULL DEFAULT '',
  gateway_id         TEXT NOT NULL DEFAULT '',
  external_thread_id TEXT NOT NULL DEFAULT '',
  muted              INTEGER NOT NULL DEFAULT 0 CHECK (muted IN (0,1)),
  metadata           TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(metadata) AND json_type(metadata) = 'object'),
  created_at         TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')) CHECK (created_at IS strftime('%Y-%m-%dT%H:%M:%fZ',created_at)),
  updated_at         TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')) CHECK (updated_at = created_at OR updated_at IS strftime('%Y-%m-%dT%H:%M:%fZ',updated_at))
) STRICT;
CREATE UNIQUE INDEX conversations_thread ON conversations(gateway_id, external_thread_id) WHERE external_thread_id <> '';
CREATE INDEX conversations_contact ON conversations(contact_id, created_at);
CREATE INDEX conversations_created ON conversations(created_at, id);

CREATE TABLE messages (
  id              INTEGER PRIMARY KEY AUTOINCREMENT,
  conversation_id TEXT NOT NULL REFERENCES conversations(id) ON DELETE CASCADE,
  role            TEXT NOT NULL CHECK (role IN ('user','assistant','system','tool')),
  content         TEXT NOT NULL,
  metadata        TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(metadata) AND json_type(metadata) = 'object'),
  created_at      TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')) CHECK (created_at IS strftime('%Y-%m-%dT%H:%M:%fZ',created_at))
) STRICT;
CREATE INDEX messages_conversation ON messages(conversation_id, id);
CREATE INDEX messages_asked ON messages(metadata ->> '$.run_id') WHERE metadata ->> '$.run_id' IS NOT NULL;  -- prompts of runs
CREATE INDEX messages_answered ON messages(metadata ->> '$.key') WHERE metadata ->> '$.key' IS NOT NULL;     -- answers to what may be asked again

-- Knowledge. A chunk's text is found by full text at once, by meaning once its
-- vector (same rowid in _chunk_vectors) has been made.
CREATE TABLE sources (
  seq             INTEGER PRIMARY KEY AUTOINCREMENT,
  id              TEXT NOT NULL UNIQUE DEFAULT ('source-' || lower(hex(randomblob(10)))),
  type            TEXT NOT NULL CHECK (type IN ('file','url','crawl','database','api')),
  name            TEXT NOT NULL,
  status          TEXT NOT NULL CHECK (status IN ('processing','crawling','updating','ready','error')),
  chunks          INTEGER NOT NULL DEFAULT 0,
  file_path       TEXT NOT NULL DEFAULT '',
  config          TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(config)),
  embedding_model TEXT NOT NULL DEFAULT '',
  error_code      TEXT NOT NULL DEFAULT '',
  error_message   TEXT NOT NULL DEFAULT '',
  chunked         INTEGER NOT NULL DEFAULT 0,  -- the text has been cut, or the site walked; vectors may still be missing
  attempts        INTEGER NOT NULL DEFAULT 0,  -- how often reading it began: a file that kills its reader is given up
  created_at      TEXT NOT NULL CHECK (created_at IS strftime('%Y-%m-%dT%H:%M:%fZ',created_at)),
  updated_at      TEXT NOT NULL CHECK (updated_at = created_at OR updated_at IS strftime('%Y-%m-%dT%H:%M:%fZ',updated_at))
) STRICT;
CREATE INDEX sources_created ON sources(created_at, id);
CREATE INDEX sources_working ON sources(status) WHERE status NOT IN ('ready','error');

CREATE TABLE chunks (  -- those of a deleted source go in the background, by way of _purge
  seq       INTEGER PRIMARY KEY AUTOINCREMENT,
  id        TEXT NOT NULL UNIQUE,
  source_id TEXT NOT NULL,
  position  INTEGER NOT NULL,
  content   TEXT NOT NULL,
  section   TEXT NOT NULL DEFAULT '',
  page      INTEGER NOT NULL DEFAULT 0,
  url       TEXT NOT NULL DEFAULT '',
  record    INTEGER NOT NULL DEFAULT 0,  -- seq of the record that it is of, see _records; 0 for other sources
  embedded  INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX chunks_position ON chunks(source_id, position);
CREATE INDEX chunks_record ON chunks(record) WHERE record <> 0;
CREATE INDEX chunks_unembedded ON chunks(source_id, position) WHERE embedded = 0;

CREATE TABLE _purge (source_id TEXT PRIMARY KEY NOT NULL) WITHOUT ROWID;
CREATE TRIGGER _sources_deleted AFTER DELETE ON sources BEGIN
  INSERT OR IGNORE INTO _purge VALUES (old.id);
  DELETE FROM _feeds WHERE source_id = old.id;
  DELETE FROM _secrets WHERE owner = old.id;
END;

-- Sources of type database and api are read record by record: rows of a query,
-- items of an API. What a record said is kept as a hash, so that reading it
-- again touches only what changed. Records of a deleted source go by _purge.
CREATE TABLE _feeds (  -- how far a source has been read
  source_id TEXT PRIMARY KEY NOT NULL,
  run       INTEGER NOT NULL DEFAULT 0,  -- counts the readings
  page      INTEGER NOT NULL DEFAULT 0,  -- pages of this reading that are done
  next      TEXT NOT NULL DEFAULT ''     -- where the next page is
) WITHOUT ROWID;
CREATE TABLE _records (
  seq       INTEGER PRIMARY KEY AUTOINCREMENT,
  source_id TEXT NOT NULL,
  id        TEXT NOT NULL,
  hash      TEXT NOT NULL,               -- SHA-256 of its title and text; '' while its chunks are replaced
  run       INTEGER NOT NULL,            -- the reading that met it last
  changed   INTEGER NOT NULL DEFAULT 0,  -- the reading that found it new or changed last
  UNIQUE (source_id, id)
);

-- The addresses that a crawl has met, one row each. What a page said stays for
-- the next crawl, which asks for changes only and compares hashes. The states
-- indexed and earlier are words of one length: a row that goes from one to the
-- other and is otherwise the same is changed in its place.
CREATE TABLE _pages (
  seq           INTEGER PRIMARY KEY AUTOINCREMENT,
  source_id     TEXT NOT NULL REFERENCES sources(id) ON DELETE CASCADE,
  url           TEXT NOT NULL,
  state         TEXT NOT NULL CHECK (state IN ('queued','indexed','failed','skipped','alias','earlier')),  -- earlier: of the crawl before, not met yet by this one
  depth         INTEGER NOT NULL,
  turn          INTEGER NOT NULL,             -- place in the frontier
  target        TEXT NOT NULL DEFAULT '',     -- of an alias: the address it led to
  status        INTEGER NOT NULL DEFAULT 0,   -- of HTTP; 0 without an answer
  error_code    TEXT NOT NULL DEFAULT '',
  error_message TEXT NOT NULL DEFAULT '',
  etag          TEXT NOT NULL DEFAULT '',
  last_modified TEXT NOT NULL DEFAULT '',
  hash          TEXT NOT NULL DEFAULT '',     -- of text; '' for an address without a page
  title         TEXT NOT NULL DEFAULT '',
  changed       INTEGER NOT NULL DEFAULT 0,   -- new or modified in this crawl
  pending       TEXT NOT NULL DEFAULT '' CHECK (pending IN ('','cut','drop')),  -- what is to be done to its chunks
  links         TEXT NOT NULL DEFAULT '[]',
  text          TEXT NOT NULL DEFAULT '',     -- last, so that the rest is read without it
  UNIQUE (source_id, url)
);
CREATE INDEX _pages_frontier ON _pages(source_id, state, depth, turn);
CREATE INDEX _pages_pending ON _pages(source_id, seq) WHERE pending <> '';

CREATE TABLE _files (
  source_id  TEXT PRIMARY KEY NOT NULL REFERENCES sources(id) ON DELETE CASCADE,
  upload     TEXT NOT NULL UNIQUE,  -- names its parts
  name       TEXT NOT NULL,
  media_type TEXT NOT NULL,
  size       INTEGER NOT NULL,
  sha256     TEXT NOT NULL
);
CREATE TABLE _file_parts (  -- written as they arrive, before the source exists
  upload     TEXT NOT NULL,
  n          INTEGER NOT NULL,
  data       BLOB NOT NULL,
  PRIMARY KEY (upload, n)
);
CREATE TRIGGER _files_deleted AFTER DELETE ON _files BEGIN
  DELETE FROM _file_parts WHERE upload = old.upload;
END;

CREATE TABLE downloads (  -- of browser sessions; their bytes lie in _file_parts
  id         TEXT PRIMARY KEY NOT NULL,
  session_id TEXT NOT NULL,
  name       TEXT NOT NULL,
  url        TEXT NOT NULL,
  size       INTEGER NOT NULL,
  status     TEXT NOT NULL CHECK (status IN ('done','failed')),
  error      TEXT NOT NULL,
  created_at TEXT NOT NULL,
  upload     TEXT NOT NULL  -- names its parts; '' for none
) STRICT;
CREATE INDEX downloads_created ON downloads(created_at, id);
CREATE INDEX downloads_upload ON downloads(upload);
CREATE TRIGGER _downloads_deleted AFTER DELETE ON downloads WHEN old.upload <> '' BEGIN
  DELETE FROM _file_parts WHERE upload = old.upload;
END;

-- Full text sees what the program's function separate_words makes of a text:
-- scripts without spaces in pieces.
CREATE VIRTUAL TABLE _chunk_text USING fts5(section, content, content='', tokenize="porter unicode61 remove_diacritics 2 categories 'L* N* Mn Mc Co'");
CREATE VIRTUAL TABLE _chunk_terms USING fts5vocab('_chunk_text', 'row');
CREATE VIRTUAL TABLE _chunk_vectors USING vec0(source INTEGER, embedding float[512] distance_metric=cosine, chunk_size=256);
-- One bit a dimension of every vector, many records to a row, for the search
-- index in memory. Rows never change and their ids are random, so that a copy in
-- memory is good for every file and moment that lists it.
CREATE TABLE _vector_segments (
  id   INTEGER PRIMARY KEY,
  dims INTEGER NOT NULL,
  n    INTEGER NOT NULL,  -- records
  data BLOB NOT NULL
);
CREATE INDEX _vector_segments_sizes ON _vector_segments(dims, n);
INSERT INTO _counts VALUES ('vectors_gone', 0);  -- records of deleted chunks
CREATE TRIGGER _chunks_inserted AFTER INSERT ON chunks BEGIN
  INSERT INTO _chunk_text(rowid, section, content) VALUES (new.seq, separate_words(new.section), separate_words(new.content));
END;
CREATE TRIGGER _chunks_deleted AFTER DELETE ON chunks BEGIN
  INSERT INTO _chunk_text(_chunk_text, rowid, section, content) VALUES ('delete', old.seq, separate_words(old.section), separate_words(old.content));
  DELETE FROM _chunk_vectors WHERE rowid = old.seq;
  UPDATE _counts SET n = n + 1 WHERE name = 'vectors_gone' AND old.embedded;
END;

CREATE TABLE logs (
  id         TEXT NOT NULL DEFAULT ('log-' || lower(hex(randomblob(10)))),
  level      TEXT NOT NULL,
  source     TEXT NOT NULL,
  message    TEXT NOT NULL,
  data       TEXT NOT NULL DEFAULT '{}',  -- not checked: SQL users only read the log
  created_at TEXT NOT NULL,
  PRIMARY KEY (created_at, id)
) WITHOUT ROWID, STRICT;

-- Automation. A version is a workflow's graph as it was once saved; executions
-- go by the version that they started with.
CREATE TABLE workflows (
  id          TEXT PRIMARY KEY NOT NULL DEFAULT ('workflow-' || lower(hex(randomblob(10)))),
  name        TEXT NOT NULL,
  description TEXT NOT NULL DEFAULT '',
  nodes       TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(nodes) AND json_type(nodes) = 'array'),
  edges       TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(edges) AND json_type(edges) = 'array'),
  settings    TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(settings) AND json_type(settings) = 'object'),
  status      TEXT NOT NULL DEFAULT 'draft' CHECK (status IN ('draft','active','paused','archived')),
  version     INTEGER NOT NULL DEFAULT 1,
  created_at  TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')) CHECK (created_at IS strftime('%Y-%m-%dT%H:%M:%fZ',created_at)),
  updated_at  TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')) CHECK (updated_at IS strftime('%Y-%m-%dT%H:%M:%fZ',updated_at))
) STRICT;
CREATE INDEX workflows_created ON workflows(created_at, id);

CREATE TABLE _workflow_versions (
  workflow_id TEXT NOT NULL REFERENCES workflows(id) ON DELETE CASCADE,
  version     INTEGER NOT NULL,
  nodes       TEXT NOT NULL,
  edges       TEXT NOT NULL,
  settings    TEXT NOT NULL,
  created_at  TEXT NOT NULL,
  PRIMARY KEY (workflow_id, version)
);

CREATE TABLE _triggers (  -- of active workflows
  workflow_id TEXT NOT NULL REFERENCES workflows(id) ON DELETE CASCADE,
  node_id     TEXT NOT NULL,
  event       TEXT NOT NULL,  -- a name, or a pattern such as workflow.*
  place       INTEGER NOT NULL,  -- among the nodes of its workflow
  auth        TEXT,  -- who may start it by its hook
  since       INTEGER NOT NULL,  -- the newest event of before it listened
  PRIMARY KEY (workflow_id, node_id)
) WITHOUT ROWID;
CREATE INDEX _triggers_event ON _triggers(event);

CREATE TRIGGER _workflows_created AFTER INSERT ON workflows BEGIN
  INSERT OR REPLACE INTO _workflow_versions VALUES (new.id, new.version, new.nodes, new.edges, new.settings, new.created_at);
  INSERT OR IGNORE INTO _triggers SELECT new.id, value ->> '$.id', coalesce(value ->> '$.data.event', 'manual'), key, value -> '$.data.auth', (SELECT coalesce(max(seq), 0) FROM _events)
    FROM json_each(new.nodes)
    WHERE new.status = 'active' AND type = 'object' AND value ->> '$.type' = 'trigger' AND value ->> '$.id' IS NOT NULL AND NOT coalesce(value ->> '$.data.disabled', 0);
END;
CREATE TRIGGER _workflows_versioned AFTER UPDATE OF nodes, edges, settings ON workflows
WHEN new.nodes IS NOT old.nodes OR new.edges IS NOT old.edges OR new.settings IS NOT old.settings BEGIN
  UPDATE workflows SET version = old.version + 1 WHERE id = new.id;
  INSERT OR REPLACE INTO _workflow_versions VALUES (new.id, old.version + 1, new.nodes, new.edges, new.settings, new.updated_at);
END;
CREATE TRIGGER _workflows_triggered AFTER UPDATE OF nodes, status ON workflows BEGIN
  DELETE FROM _triggers WHERE workflow_id = old.id AND (new.status <> 'active' OR node_id NOT IN (SELECT value ->> '$.id' FROM json_each(new.nodes)
    WHERE type = 'object' AND value ->> '$.type' = 'trigger' AND value ->> '$.id' IS NOT NULL AND NOT coalesce(value ->> '$.data.disabled', 0)));
  INSERT INTO _triggers SELECT new.id, value ->> '$.id', coalesce(value ->> '$.data.event', 'manual'), key, value -> '$.data.auth', (SELECT coalesce(max(seq), 0) FROM _events)
    FROM json_each(new.nodes)
    WHERE new.status = 'active' AND type = 'object' AND value ->> '$.type' = 'trigger' AND value ->> '$.id' IS NOT NULL AND NOT coalesce(value ->> '$.data.disabled', 0)
    ON CONFLICT DO UPDATE SET since = iif(event = excluded.event, since, excluded.since), event = excluded.event, place = excluded.place, auth = excluded.auth;
END;

-- Credentials in nodes, as agent/nodesecret.go knows them, never lie here in
-- clear, whoever writes. A name that comes twice counts each time.
CREATE TRIGGER _workflows_sealed AFTER INSERT ON workflows WHEN EXISTS (
  SELECT 1 FROM json_each(new.nodes) n, json_each(iif(n.type = 'object', n.value, '{}')) d, json_each(iif(d.type = 'object', d.value, '{}')) f, json_each(iif(f.type = 'object', f.value, '{}')) s
  WHERE d.key = 'data' AND f.key IN ('auth','headers') AND s.type = 'text' AND s.value NOT IN ('','********') AND instr(s.value, '{{') = 0
  AND EXISTS (SELECT 1 FROM json_each(n.value) t WHERE t.key = 'type' AND (t.value = 'http-request' OR t.value = 'trigger' AND f.key = 'auth'))
  AND iif(f.key = 'auth', s.key IN ('token','password','value','secret'), lower(s.key) <> 'idempotency-key' AND (s.key LIKE '%authorization%' OR s.key LIKE '%key%' OR s.key LIKE '%token%' OR s.key LIKE '%secret%' OR s.key LIKE '%cookie%')))
BEGIN
  SELECT RAISE(ABORT, 'credentials of nodes can only be written by the API, which seals them; ******** keeps the one that is stored');
END;
CREATE TRIGGER _workflows_resealed AFTER UPDATE OF nodes ON workflows WHEN EXISTS (
  SELECT 1 FROM json_each(new.nodes) n, json_each(iif(n.type = 'object', n.value, '{}')) d, json_each(iif(d.type = 'object', d.value, '{}')) f, json_each(iif(f.type = 'object', f.value, '{}')) s
  WHERE d.key = 'data' AND f.key IN ('auth','headers') AND s.type = 'text' AND s.value NOT IN ('','********') AND instr(s.value, '{{') = 0
  AND EXISTS (SELECT 1 FROM json_each(n.value) t WHERE t.key = 'type' AND (t.value = 'http-request' OR t.value = 'trigger' AND f.key = 'auth'))
  AND iif(f.key = 'auth', s.key IN ('token','password','value','secret'), lower(s.key) <> 'idempotency-key' AND (s.key LIKE '%authorization%' OR s.key LIKE '%key%' OR s.key LIKE '%token%' OR s.key LIKE '%secret%' OR s.key LIKE '%cookie%')))
BEGIN
  SELECT RAISE(ABORT, 'credentials of nodes can only be written by the API, which seals them; ******** keeps the one that is stored');
END;

CREATE TRIGGER _workflows_forgotten AFTER DELETE ON workflows BEGIN
  DELETE FROM _secrets WHERE owner = old.id;
END;

CREATE TABLE executions (  -- ids sort by time
  id           TEXT PRIMARY KEY NOT NULL,
  workflow_id  TEXT NOT NULL REFERENCES workflows(id) ON DELETE CASCADE,
  version      INTEGER NOT NULL,
  status       TEXT NOT NULL CHECK (status IN ('queued','running','complete','errored','terminated')),
  asleep       INTEGER NOT NULL DEFAULT 0,  -- running, and all it does is wait
  held         INTEGER NOT NULL DEFAULT 0,  -- came with a copied file: rests until the agent is active
  trigger      TEXT NOT NULL,               -- what started it
  trigger_node TEXT NOT NULL DEFAULT '',
  cause        TEXT NOT NULL DEFAULT '',    -- names the one thing that started it, so that it starts it once
  parent_id    TEXT NOT NULL DEFAULT '',
  retried_from TEXT NOT NULL DEFAULT '',
  depth        INTEGER NOT NULL DEFAULT 1,
  input        TEXT NOT NULL DEFAULT '{}',
  output       TEXT,
  error        TEXT,
  created_at   TEXT NOT NULL,
  started_at   TEXT,
  completed_at TEXT
) WITHOUT ROWID, STRICT;
CREATE INDEX executions_workflow ON executions(workflow_id, id);
CREATE INDEX executions_unfinished ON executions(status, asleep, workflow_id, id) WHERE status IN ('queued','running');
CREATE UNIQUE INDEX executions_cause ON executions(cause) WHERE cause <> '';
CREATE INDEX executions_parent ON executions(parent_id) WHERE parent_id <> '';

-- Requests that nothing but their signed body tells from others, for as long as
-- a second one counts as the first sent again.
CREATE TABLE _replays (
  request      TEXT PRIMARY KEY NOT NULL,
  execution_id TEXT NOT NULL,
  created_at   TEXT NOT NULL
) WITHOUT ROWID, STRICT;
CREATE INDEX _replays_created ON _replays(created_at);

CREATE TABLE _journal (  -- what became of nodes, one row a commit
  execution_id TEXT NOT NULL REFERENCES executions(id) ON DELETE CASCADE,
  seq          INTEGER NOT NULL,
  results      TEXT NOT NULL,
  PRIMARY KEY (execution_id, seq)
) WITHOUT ROWID;

CREATE TABLE _waits (  -- nodes that wait; nothing in memory waits with them
  execution_id TEXT NOT NULL REFERENCES executions(id) ON DELETE CASCADE,
  node_id      TEXT NOT NULL,
  path         TEXT NOT NULL,               -- in which iterations of the loops around it
  type         TEXT NOT NULL,               -- of the node
  kind         TEXT NOT NULL CHECK (kind IN ('timer','event','approval','execution')),
  due_at       TEXT,                        -- when it ends by itself
  event        TEXT NOT NULL DEFAULT '',
  child_id     TEXT NOT NULL DEFAULT '',
  started_at   TEXT NOT NULL,
  PRIMARY KEY (execution_id, node_id, path)
) WITHOUT ROWID;
CREATE INDEX _waits_due ON _waits(due_at) WHERE due_at IS NOT NULL;
CREATE INDEX _waits_event ON _waits(event) WHERE event <> '';
CREATE INDEX _waits_child ON _waits(child_id) WHERE child_id <> '';

-- A schedule's row is the truth: next_run says when it runs next, whoever wrote
-- it. What SQL changes of its timing is noted in _replan and planned before the
-- statement's commit, or, after a change from outside the program, when the
-- file is opened.
CREATE TABLE schedules (
  id              TEXT PRIMARY KEY NOT NULL DEFAULT ('schedule-' || lower(hex(randomblob(10)))),
  name            TEXT NOT NULL,
  type            TEXT NOT NULL CHECK (type IN ('once','delayed','cron')),
  cron_expression TEXT NOT NULL DEFAULT '',
  next_run        TEXT CHECK (next_run IS strftime('%Y-%m-%dT%H:%M:%fZ',next_run)),
  last_run        TEXT CHECK (last_run IS strftime('%Y-%m-%dT%H:%M:%fZ',last_run)),
  delay_seconds   INTEGER NOT NULL DEFAULT 0,
  callback_type   TEXT NOT NULL DEFAULT 'workflow' CHECK (callback_type IN ('workflow','agent','webhook','source','tool')),
  callback_id     TEXT NOT NULL DEFAULT '',
  payload         TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(payload) AND json_type(payload) = 'object'),
  timezone        TEXT NOT NULL DEFAULT '',  -- '': the agent's own, filled in when it is planned
  misfire_policy  TEXT NOT NULL DEFAULT 'run_once' CHECK (misfire_policy IN ('run_once','skip','run_all')),
  overlap         TEXT NOT NULL DEFAULT 'skip' CHECK (overlap IN ('skip','queue','allow')),
  status          TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active','paused','completed')),
  created_at      TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')) CHECK (created_at IS strftime('%Y-%m-%dT%H:%M:%fZ',created_at)),
  updated_at      TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')) CHECK (updated_at IS strftime('%Y-%m-%dT%H:%M:%fZ',updated_at))
) STRICT;
CREATE INDEX schedules_due ON schedules(next_run) WHERE status = 'active' AND next_run IS NOT NULL;
CREATE INDEX schedules_created ON schedules(created_at, id);

CREATE TABLE runs (  -- of schedules
  seq           INTEGER PRIMARY KEY AUTOINCREMENT,
  id            TEXT NOT NULL UNIQUE,
  schedule_id   TEXT NOT NULL REFERENCES schedules(id) ON DELETE CASCADE,
  scheduled_for TEXT NOT NULL,
  executed_at   TEXT,  -- NULL and running: it waits for the run before it
  status        TEXT NOT NULL CHECK (status IN ('running','success','error','skipped','missed')),
  duration_ms   INTEGER NOT NULL DEFAULT 0,
  execution_id  TEXT NOT NULL DEFAULT '',
  error         TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX runs_schedule ON runs(schedule_id, seq);
CREATE INDEX runs_running ON runs(schedule_id, seq) WHERE status = 'running';

CREATE TABLE _replan (  -- records whose timing SQL changed
  id   TEXT PRIMARY KEY NOT NULL,
  keep INTEGER NOT NULL  -- next_run was written too, and stays
) WITHOUT ROWID;
CREATE TRIGGER _schedules_bounded BEFORE INSERT ON schedules WHEN (SELECT n FROM _counts WHERE name = 'schedules') >= 1000 BEGIN
  SELECT RAISE(ABORT, 'an agent may have at most 1000 schedules');
END;
CREATE TRIGGER _schedules_added AFTER INSERT ON schedules BEGIN
  INSERT OR REPLACE INTO _replan VALUES (new.id, new.next_run IS NOT NULL);
END;
CREATE TRIGGER _schedules_retimed AFTER UPDATE OF type, cron_expression, delay_seconds, timezone, callback_type, callback_id, payload, name ON schedules BEGIN
  INSERT OR REPLACE INTO _replan VALUES (new.id, new.next_run IS NOT NULL AND new.next_run IS NOT old.next_run OR (new.type, new.cron_expression, new.delay_seconds, new.timezone) = (old.type, old.cron_expression, old.delay_seconds, old.timezone));
END;
CREATE TRIGGER _schedules_resumed AFTER UPDATE OF status ON schedules WHEN new.status = 'active' AND old.status <> 'active' BEGIN
  INSERT OR REPLACE INTO _replan VALUES (new.id, new.next_run IS NOT old.next_run OR new.type <> 'cron' AND new.next_run IS NOT NULL);
END;
CREATE TRIGGER _schedules_revived AFTER UPDATE OF next_run ON schedules WHEN new.next_run IS NOT NULL AND old.status = 'completed' AND new.status = 'completed' BEGIN
  UPDATE schedules SET status = 'active' WHERE id = new.id;
END;
CREATE TRIGGER _schedules_unplanned AFTER UPDATE OF next_run ON schedules WHEN new.next_run IS NULL AND new.type = 'cron' AND new.status = 'active' BEGIN
  INSERT OR REPLACE INTO _replan VALUES (new.id, 0);
END;
CREATE TRIGGER _schedules_removed AFTER DELETE ON schedules BEGIN
  DELETE FROM _secrets WHERE owner = old.id;
  DELETE FROM _replan WHERE id = old.id;
END;

CREATE TABLE tasks (  -- of the calendar; next_run is when the next occurrence starts
  id               TEXT PRIMARY KEY NOT NULL DEFAULT ('task-' || lower(hex(randomblob(10)))),
  title            TEXT NOT NULL,
  description      TEXT NOT NULL DEFAULT '',
  start_time       TEXT NOT NULL CHECK (start_time IS strftime('%Y-%m-%dT%H:%M:%fZ',start_time)),
  end_time         TEXT CHECK (end_time IS strftime('%Y-%m-%dT%H:%M:%fZ',end_time)),
  timezone         TEXT NOT NULL DEFAULT '',  -- '': the agent's own, filled in when it is planned
  recurrence       TEXT NOT NULL DEFAULT 'none' CHECK (recurrence IN ('none','daily','weekly','monthly')),
  recurrence_days  TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(recurrence_days) AND json_type(recurrence_days) = 'array'),
  recurrence_end   TEXT CHECK (recurrence_end IS strftime('%Y-%m-%dT%H:%M:%fZ',recurrence_end)),
  recurrence_count INTEGER NOT NULL DEFAULT 0,
  workflow_id      TEXT NOT NULL DEFAULT '',
  status           TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('pending','running','completed','failed','cancelled')),
  next_run         TEXT CHECK (next_run IS strftime('%Y-%m-%dT%H:%M:%fZ',next_run)),
  created_at       TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')) CHECK (created_at IS strftime('%Y-%m-%dT%H:%M:%fZ',created_at)),
  updated_at       TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')) CHECK (updated_at IS strftime('%Y-%m-%dT%H:%M:%fZ',updated_at))
) STRICT;
CREATE INDEX tasks_start ON tasks(start_time, id);
CREATE INDEX tasks_due ON tasks(next_run) WHERE next_run IS NOT NULL;

CREATE TABLE occurrences (  -- of tasks, those that came due
  seq          INTEGER PRIMARY KEY AUTOINCREMENT,
  id           TEXT NOT NULL UNIQUE,
  task_id      TEXT NOT NULL REFERENCES tasks(id) ON DELETE CASCADE,
  start_time   TEXT NOT NULL,
  status       TEXT NOT NULL CHECK (status IN ('pending','running','completed','failed','cancelled')),
  executed_at  TEXT,
  duration_ms  INTEGER NOT NULL DEFAULT 0,
  execution_id TEXT NOT NULL DEFAULT '',
  error        TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX occurrences_task ON occurrences(task_id, start_time);
CREATE INDEX occurrences_start ON occurrences(start_time);
CREATE INDEX occurrences_running ON occurrences(seq) WHERE status = 'running';

CREATE TRIGGER _tasks_bounded BEFORE INSERT ON tasks WHEN (SELECT n FROM _counts WHERE name = 'tasks') >= 10000 BEGIN
  SELECT RAISE(ABORT, 'an agent may have at most 10000 tasks');
END;
CREATE TRIGGER _tasks_added AFTER INSERT ON tasks BEGIN
  INSERT OR REPLACE INTO _replan VALUES (new.id, 0);
END;
CREATE TRIGGER _tasks_retimed AFTER UPDATE OF start_time, end_time, timezone, recurrence, recurrence_days, recurrence_end, recurrence_count ON tasks BEGIN
  INSERT OR REPLACE INTO _replan VALUES (new.id, 0);
END;
CREATE TRIGGER _tasks_restated AFTER UPDATE OF status ON tasks WHEN new.status <> old.status AND (new.next_run IS NULL) = (new.status = 'pending') BEGIN
  INSERT OR REPLACE INTO _replan VALUES (new.id, 1);
END;
CREATE TRIGGER _tasks_removed AFTER DELETE ON tasks BEGIN
  DELETE FROM _replan WHERE id = old.id;
END;

CREATE TABLE tools (
  id          TEXT PRIMARY KEY NOT NULL DEFAULT ('tool-' || lower(hex(randomblob(10)))),
  name        TEXT NOT NULL UNIQUE,
  description TEXT NOT NULL DEFAULT '',
  type        TEXT NOT NULL CHECK (type IN ('api','function','mcp')),
  config      TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(config)),
  created_at  TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')),
  updated_at  TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now'))
);

-- Credentials in configs, as agent.ToolConfig knows them, never lie here in
-- clear, whoever writes. Names count in either case and each time that they
-- come. (SQL does not reach the configs of sources, gateways and MCP servers.)
CREATE TRIGGER _tools_sealed AFTER INSERT ON tools WHEN EXISTS (
  SELECT 1 FROM json_each(new.config) f, json_each(iif(f.type = 'object', f.value, '{}')) s
  WHERE lower(f.key) IN ('auth','headers') AND s.type = 'text' AND s.value NOT IN ('','********')
  AND iif(lower(f.key) = 'auth', lower(s.key) IN ('token','password','value'), (s.key LIKE '%authorization%' OR s.key LIKE '%key%' OR s.key LIKE '%token%' OR s.key LIKE '%secret%' OR s.key LIKE '%cookie%')))
BEGIN
  SELECT RAISE(ABORT, 'credentials of tools can only be written by the API, which seals them; ******** keeps the one that is stored');
END;
CREATE TRIGGER _tools_resealed AFTER UPDATE OF config ON tools WHEN EXISTS (
  SELECT 1 FROM json_each(new.config) f, json_each(iif(f.type = 'object', f.value, '{}')) s
  WHERE lower(f.key) IN ('auth','headers') AND s.type = 'text' AND s.value NOT IN ('','********')
  AND iif(lower(f.key) = 'auth', lower(s.key) IN ('token','password','value'), (s.key LIKE '%authorization%' OR s.key LIKE '%key%' OR s.key LIKE '%token%' OR s.key LIKE '%secret%' OR s.key LIKE '%cookie%')))
BEGIN
  SELECT RAISE(ABORT, 'credentials of tools can only be written by the API, which seals them; ******** keeps the one that is stored');
END;

CREATE TABLE mcp_servers (  -- their credentials lie sealed in _secrets
  id         TEXT PRIMARY KEY NOT NULL DEFAULT ('mcp-' || lower(hex(randomblob(10)))),
  name       TEXT NOT NULL,
  url        TEXT NOT NULL,
  auth_type  TEXT NOT NULL DEFAULT 'none' CHECK (auth_type IN ('none','bearer','basic','header','oauth2')),
  status     TEXT NOT NULL DEFAULT 'disconnected' CHECK (status IN ('connected','disconnected','error')),
  last_error TEXT NOT NULL DEFAULT '',
  tools      TEXT CHECK (tools IS NULL OR (json_valid(tools) AND json_type(tools) = 'array')),  -- as last listed
  checked_at TEXT CHECK (checked_at IS NULL OR checked_at IS strftime('%Y-%m-%dT%H:%M:%fZ',checked_at)),
  created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')) CHECK (created_at IS strftime('%Y-%m-%dT%H:%M:%fZ',created_at))
) STRICT;

CREATE TABLE gateways (  -- webhook_secret and config lie sealed in _secrets
  id                TEXT PRIMARY KEY NOT NULL DEFAULT ('gateway-' || lower(hex(randomblob(10)))),
  type              TEXT NOT NULL CHECK (type IN ('chatbot_a','email','chatbot_b','team_chat','community_chat','sms','webhook')),
  name              TEXT NOT NULL,
  status            TEXT NOT NULL DEFAULT 'inactive' CHECK (status IN ('inactive','pending_verification','active','error')),
  is_default        INTEGER NOT NULL DEFAULT 0 CHECK (is_default IN (0,1)),
  verified          INTEGER NOT NULL DEFAULT 0 CHECK (verified IN (0,1)),
  configured_fields TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(configured_fields) AND json_type(configured_fields) = 'array'),
  event_count       INTEGER NOT NULL DEFAULT 0,
  events_today      INTEGER NOT NULL DEFAULT 0,
  events_day        TEXT NOT NULL DEFAULT '',  -- the day, in UTC, that events_today counts
  last_event_at     TEXT,
  last_error        TEXT NOT NULL DEFAULT '',
  last_error_at     TEXT,
  webhook_base      TEXT NOT NULL DEFAULT '',  -- the address that the platform was told, when it is not this server's usual one
  created_at        TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')) CHECK (created_at IS strftime('%Y-%m-%dT%H:%M:%fZ',created_at)),
  updated_at        TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')) CHECK (updated_at IS strftime('%Y-%m-%dT%H:%M:%fZ',updated_at))
) STRICT;
CREATE UNIQUE INDEX gateways_default ON gateways(type) WHERE is_default = 1;
CREATE INDEX gateways_created ON gateways(created_at, id);

CREATE TABLE _inbound (  -- what platforms delivered, so that a repeat changes nothing
  gateway_id  TEXT NOT NULL REFERENCES gateways(id) ON DELETE CASCADE,
  external_id TEXT NOT NULL,
  created_at  TEXT NOT NULL,
  PRIMARY KEY (gateway_id, external_id)
) WITHOUT ROWID, STRICT;
CREATE INDEX _inbound_created ON _inbound(created_at);

CREATE TABLE _senders (  -- who is who: accounts of platforms that tell them by an id that never changes hands
  type       TEXT NOT NULL,
  account    TEXT NOT NULL,
  contact_id TEXT NOT NULL REFERENCES contacts(id) ON DELETE CASCADE ON UPDATE CASCADE,
  PRIMARY KEY (type, account)
) WITHOUT ROWID, STRICT;
CREATE INDEX _senders_contact ON _senders(contact_id);

CREATE TABLE _polls (  -- how far a gateway has asked its platform for updates
  gateway_id TEXT PRIMARY KEY NOT NULL REFERENCES gateways(id) ON DELETE CASCADE,
  next       INTEGER NOT NULL,
  at         TEXT NOT NULL
) WITHOUT ROWID, STRICT;

CREATE TABLE _answers (  -- messages that the agent is to answer by itself
  message_id      INTEGER PRIMARY KEY REFERENCES messages(id) ON DELETE CASCADE,
  conversation_id TEXT NOT NULL,
  tries           INTEGER NOT NULL DEFAULT 0,
  created_at      TEXT NOT NULL
) STRICT;

CREATE TABLE _outgoing (  -- messages for a platform; of a conversation one is sent after the other
  message_id      INTEGER PRIMARY KEY REFERENCES messages(id) ON DELETE CASCADE,
  conversation_id TEXT NOT NULL,
  gateway_id      TEXT NOT NULL,
  key             TEXT UNIQUE,  -- what it answers, so that this is answered once
  status          TEXT NOT NULL CHECK (status IN ('pending','sending','sent','failed')),
  attempt         INTEGER NOT NULL DEFAULT 0,
  parts           INTEGER NOT NULL DEFAULT 0,  -- that are out
  external_id     TEXT NOT NULL DEFAULT '',    -- the platform's, of the first part
  channel         TEXT NOT NULL DEFAULT '',
  error           TEXT NOT NULL DEFAULT '',
  first_at        TEXT,  -- when the first try began
  next_attempt_at TEXT,  -- of the first of its conversation that waits; 1970 for at once, whatever the clock says
  created_at      TEXT NOT NULL
) STRICT;
CREATE INDEX _outgoing_due ON _outgoing(next_attempt_at) WHERE status = 'pending';
CREATE INDEX _outgoing_line ON _outgoing(conversation_id, message_id) WHERE status IN ('pending','sending');
CREATE INDEX _outgoing_ended ON _outgoing(created_at) WHERE status IN ('sent','failed');
CREATE TRIGGER _outgoing_ended AFTER UPDATE OF status ON _outgoing WHEN new.status IN ('sent','failed') AND old.status <> new.status BEGIN
  UPDATE messages SET metadata = json_patch(metadata, json_object('external_id', nullif(new.external_id, ''), 'delivered_at', iif(new.status = 'sent', strftime('%Y-%m-%dT%H:%M:%fZ','now'), NULL),
    'delivery', json_object('status', new.status, 'error', nullif(new.error, '')))) WHERE id = new.message_id;
  UPDATE _outgoing SET next_attempt_at = '1970-01-01T00:00:00.000Z' WHERE message_id = (SELECT min(message_id) FROM _outgoing WHERE conversation_id = new.conversation_id AND status IN ('pending','sending'));
END;
CREATE TRIGGER _outgoing_removed AFTER DELETE ON _outgoing WHEN old.status IN ('pending','sending') BEGIN
  UPDATE _outgoing SET next_attempt_at = coalesce(next_attempt_at, '1970-01-01T00:00:00.000Z') WHERE message_id = (SELECT min(message_id) FROM _outgoing WHERE conversation_id = old.conversation_id AND status IN ('pending','sending'));
END;

CREATE TABLE sessions (  -- of browsers; what is open is in memory, and these rows tell of it
  id            TEXT PRIMARY KEY NOT NULL,
  status        TEXT NOT NULL CHECK (status IN ('active','paused','takeover','closed','error')),
  headless      INTEGER NOT NULL DEFAULT 1 CHECK (headless IN (0,1)),
  viewport      TEXT NOT NULL CHECK (json_valid(viewport) AND json_type(viewport) = 'object'),
  persist       INTEGER NOT NULL DEFAULT 0 CHECK (persist IN (0,1)),
  error         TEXT NOT NULL DEFAULT '',
  created_at    TEXT NOT NULL,
  last_activity TEXT NOT NULL,
  closed_at     TEXT CHECK ((closed_at IS NULL) = (status NOT IN ('closed','error')))
) STRICT;
CREATE INDEX sessions_created ON sessions(created_at, id);

CREATE TABLE takeovers (  -- requests that a person control a session
  id         TEXT PRIMARY KEY NOT NULL,
  session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
  status     TEXT NOT NULL CHECK (status IN ('pending','active','completed','expired','cancelled')),
  reason     TEXT NOT NULL,
  timeout    INTEGER NOT NULL CHECK (timeout BETWEEN 1 AND 3600),  -- seconds
  created_at TEXT NOT NULL,
  expires_at TEXT NOT NULL,
  started_at TEXT,
  ended_at   TEXT CHECK ((ended_at IS NULL) = (status IN ('pending','active')))
) STRICT;
CREATE UNIQUE INDEX takeovers_open ON takeovers(session_id) WHERE ended_at IS NULL;  -- one at a time
CREATE INDEX takeovers_session ON takeovers(session_id);

CREATE TRIGGER sessions_ended AFTER UPDATE OF closed_at ON sessions WHEN new.closed_at IS NOT NULL BEGIN
  UPDATE takeovers SET status = 'cancelled', ended_at = new.closed_at WHERE session_id = new.id AND ended_at IS NULL;
END;

CREATE TABLE webhooks (  -- subscriptions; their secrets lie sealed in _secrets
  id               TEXT PRIMARY KEY NOT NULL,
  url              TEXT NOT NULL,
  events           TEXT NOT NULL CHECK (json_valid(events) AND json_type(events) = 'array'),
  active           INTEGER NOT NULL DEFAULT 1 CHECK (active IN (0,1)),
  failure_count    INTEGER NOT NULL DEFAULT 0,  -- failed tries since the last that succeeded
  last_delivery_at TEXT,
  last_success_at  TEXT,
  last_status      INTEGER,
  since            INTEGER NOT NULL DEFAULT 0,  -- the newest event when it was switched on
  former_until     TEXT,  -- how long the secret before the present one signs too
  created_at       TEXT NOT NULL CHECK (created_at IS strftime('%Y-%m-%dT%H:%M:%fZ',created_at)),
  updated_at       TEXT NOT NULL CHECK (updated_at IS strftime('%Y-%m-%dT%H:%M:%fZ',updated_at))
) STRICT;
CREATE INDEX webhooks_created ON webhooks(created_at, id);

CREATE TABLE _deliveries (  -- of one event to one subscription, with all their tries
  id              TEXT PRIMARY KEY NOT NULL,
  webhook_id      TEXT NOT NULL REFERENCES webhooks(id) ON DELETE CASCADE,
  event_id        TEXT NOT NULL,
  event           TEXT NOT NULL,
  body            TEXT NOT NULL,
  status          TEXT NOT NULL CHECK (status IN ('pending','delivered','failed')),
  attempt         INTEGER NOT NULL DEFAULT 0,
  response_status INTEGER,
  duration_ms     INTEGER,
  error           TEXT NOT NULL DEFAULT '',
  next_attempt_at TEXT,
  created_at      TEXT NOT NULL,
  UNIQUE (webhook_id, event_id)
) STRICT;
CREATE INDEX _deliveries_due ON _deliveries(webhook_id, next_attempt_at, id) WHERE status = 'pending';
CREATE INDEX _deliveries_next ON _deliveries(next_attempt_at) WHERE status = 'pending';
CREATE INDEX _deliveries_listed ON _deliveries(webhook_id, id);
CREATE INDEX _deliveries_ended ON _deliveries(created_at) WHERE status <> 'pending';

-- Counts behind meta.total, so that it costs one row however long the list is.
CREATE TRIGGER _tools_counted AFTER INSERT ON tools BEGIN UPDATE _counts SET n = n + 1 WHERE name = 'tools'; END;
CREATE TRIGGER _tools_uncounted AFTER DELETE ON tools BEGIN UPDATE _counts SET n = n - 1 WHERE name = 'tools'; DELETE FROM _secrets WHERE owner = old.id; END;
CREATE TRIGGER _contacts_counted AFTER INSERT ON contacts BEGIN UPDATE _counts SET n = n + 1 WHERE name = 'contacts'; END;
CREATE TRIGGER _contacts_uncounted AFTER DELETE ON contacts BEGIN UPDATE _counts SET n = n - 1 WHERE name = 'contacts'; END;
CREATE TRIGGER _conversations_counted AFTER INSERT ON conversations BEGIN UPDATE _counts SET n = n + 1 WHERE name = 'conversations'; END;
CREATE TRIGGER _conversations_uncounted AFTER DELETE ON conversations BEGIN
  UPDATE _counts SET n = n - 1 WHERE name = 'conversations';
  DELETE FROM _secrets WHERE owner = old.id AND (field = 'reply' OR field LIKE 'reply-%');
END;
CREATE TRIGGER _messages_counted AFTER INSERT ON messages BEGIN UPDATE _counts SET n = n + 1 WHERE name = 'messages'; END;
CREATE TRIGGER _messages_uncounted AFTER DELETE ON messages BEGIN UPDATE _counts SET n = n - 1 WHERE name = 'messages'; END;
CREATE TRIGGER _workflows_counted AFTER INSERT ON workflows BEGIN UPDATE _counts SET n = n + 1 WHERE name = 'workflows'; END;
CREATE TRIGGER _workflows_uncounted AFTER DELETE ON workflows BEGIN UPDATE _counts SET n = n - 1 WHERE name = 'workflows'; END;
CREATE TRIGGER _executions_counted AFTER INSERT ON executions BEGIN UPDATE _counts SET n = n + 1 WHERE name = 'executions'; END;
CREATE TRIGGER _executions_uncounted AFTER DELETE ON executions BEGIN UPDATE _counts SET n = n - 1 WHERE name = 'executions'; END;
CREATE TRIGGER _schedules_counted AFTER INSERT ON schedules BEGIN UPDATE _counts SET n = n + 1 WHERE name = 'schedules'; END;
CREATE TRIGGER _schedules_uncounted AFTER DELETE ON schedules BEGIN UPDATE _counts SET n = n - 1 WHERE name = 'schedules'; END;
CREATE TRIGGER _tasks_counted AFTER INSERT ON tasks BEGIN UPDATE _counts SET n = n + 1 WHERE name = 'tasks'; END;
CREATE TRIGGER _tasks_uncounted AFTER DELETE ON tasks BEGIN UPDATE _counts SET n = n - 1 WHERE name = 'tasks'; END;
CREATE TRIGGER _logs_counted AFTER INSERT ON logs BEGIN UPDATE _counts SET n = n + 1 WHERE name = 'logs'; END;
CREATE TRIGGER _logs_uncounted AFTER DELETE ON logs BEGIN UPDATE _counts SET n = n - 1 WHERE name = 'logs'; END;
CREATE TRIGGER _sources_counted AFTER INSERT ON sources BEGIN UPDATE _counts SET n = n + 1 WHERE name = 'sources'; END;
CREATE TRIGGER _sources_uncounted AFTER DELETE ON sources BEGIN UPDATE _counts SET n = n - 1 WHERE name = 'sources'; END;
CREATE TRIGGER _webhooks_counted AFTER INSERT ON webhooks BEGIN
  UPDATE _counts SET n = n + 1 WHERE name = 'webhooks';
  UPDATE webhooks SET since = (SELECT coalesce(max(seq), 0) FROM _events) WHERE id = new.id;
END;
CREATE TRIGGER _webhooks_uncounted AFTER DELETE ON webhooks BEGIN
  UPDATE _counts SET n = n - 1 WHERE name = 'webhooks';
  DELETE FROM _secrets WHERE owner = old.id;
END;
CREATE TRIGGER _webhooks_off AFTER UPDATE OF active ON webhooks WHEN new.active = 0 AND old.active = 1 BEGIN
  UPDATE _deliveries SET status = 'failed', next_attempt_at = NULL, error = 'the subscription was switched off'
    WHERE webhook_id = new.id AND status = 'pending';
END;
CREATE TRIGGER _webhooks_on AFTER UPDATE OF active ON webhooks WHEN new.active = 1 AND old.active = 0 BEGIN
  UPDATE webhooks SET failure_count = 0, since = (SELECT coalesce(max(seq), 0) FROM _events) WHERE id = new.id;
END;
CREATE TRIGGER _mcp_servers_counted AFTER INSERT ON mcp_servers BEGIN UPDATE _counts SET n = n + 1 WHERE name = 'mcp_servers'; END;
CREATE TRIGGER _mcp_servers_uncounted AFTER DELETE ON mcp_servers BEGIN
  UPDATE _counts SET n = n - 1 WHERE name = 'mcp_servers';
  DELETE FROM _secrets WHERE owner = old.id;
END;
CREATE TRIGGER _gateways_counted AFTER INSERT ON gateways BEGIN UPDATE _counts SET n = n + 1 WHERE name = 'gateways'; END;
CREATE TRIGGER _gateways_uncounted AFTER DELETE ON gateways BEGIN
  UPDATE _counts SET n = n - 1 WHERE name = 'gateways';
  DELETE FROM _secrets WHERE owner = old.id;
END;

CREATE TRIGGER _contacts_tagged AFTER INSERT ON contacts WHEN new.tags <> '[]' BEGIN
  INSERT OR IGNORE INTO _contact_tags SELECT value, new.id FROM json_each(new.tags);
END;
CREATE TRIGGER _contacts_retagged AFTER UPDATE OF id, tags ON contacts BEGIN
  DELETE FROM _contact_tags WHERE contact_id = old.id;
  INSERT OR IGNORE INTO _contact_tags SELECT value, new.id FROM json_each(new.tags);
END;
CREATE TRIGGER _contacts_untagged AFTER DELETE ON contacts BEGIN
  DELETE FROM _contact_tags WHERE contact_id = old.id;
END;

-- Events of what SQL can write come from triggers, so that a write by SQL tells
-- as much as one by the API.
CREATE TRIGGER _contacts_created AFTER INSERT ON contacts BEGIN
  INSERT INTO _events(type, data, created_at) VALUES ('contact.created', json_object('contact', json_object('id',new.id,'name',new.name,'email',new.email,'phone',new.phone,'chatbot_a',new.chatbot_a,'chatbot_b',new.chatbot_b,'social_handle',new.social_handle,'external_id',new.external_id,'notes',new.notes,'tags',json(new.tags),'metadata',json(new.metadata),'created_at',new.created_at,'updated_at',new.updated_at)), new.created_at);
END;
CREATE TRIGGER _contacts_updated AFTER UPDATE ON contacts BEGIN
  INSERT INTO _events(type, data, created_at) VALUES ('contact.updated', json_object('contact', json_object('id',new.id,'name',new.name,'email',new.email,'phone',new.phone,'chatbot_a',new.chatbot_a,'chatbot_b',new.chatbot_b,'social_handle',new.social_handle,'external_id',new.external_id,'notes',new.notes,'tags',json(new.tags),'metadata',json(new.metadata),'created_at',new.created_at,'updated_at',new.updated_at)), new.updated_at);
END;
CREATE TRIGGER _contacts_removed AFTER DELETE ON contacts BEGIN
  INSERT INTO _events(type, data) VALUES ('contact.deleted', json_object('contact', json_object('id',old.id,'name',old.name,'email',old.email,'phone',old.phone,'chatbot_a',old.chatbot_a,'chatbot_b',old.chatbot_b,'social_handle',old.social_handle,'external_id',old.external_id,'notes',old.notes,'tags',json(old.tags),'metadata',json(old.metadata),'created_at',old.created_at,'updated_at',old.updated_at)));
END;
CREATE TRIGGER _conversations_created AFTER INSERT ON conversations BEGIN
  INSERT INTO _events(type, data, created_at) VALUES ('conversation.created', json_object(
    'conversation', json_object('id',new.id,'contact_id',new.contact_id,'gateway_id',new.gateway_id,'external_thread_id',new.external_thread_id,'muted',json(iif(new.muted,'true','false')),'metadata',json(new.metadata),'created_at',new.created_at,'updated_at',new.updated_at),
    'contact', json((SELECT json_object('id',c.id,'name',c.name,'email',c.email,'phone',c.phone,'chatbot_a',c.chatbot_a,'chatbot_b',c.chatbot_b,'social_handle',c.social_handle,'external_id',c.external_id,'notes',c.notes,'tags',json(c.tags),'metadata',json(c.metadata),'created_at',c.created_at,'updated_at',c.updated_at) FROM contacts c WHERE c.id = new.contact_id)),
    'gateway', json((SELECT json_object('id',g.id,'type',g.type,'name',g.name,'status',g.status,'is_default',json(iif(g.is_default,'true','false')),'verified',json(iif(g.verified,'true','false'))) FROM gateways g WHERE g.id = new.gateway_id))), new.created_at);
END;
CREATE TRIGGER _messages_told AFTER INSERT ON messages WHEN new.role IN ('user','assistant') AND new.metadata ->> '$.delivery.status' IS NOT 'pending' BEGIN
  INSERT INTO _events(type, data, created_at) SELECT iif(new.role = 'user', 'message.received', 'message.sent'), json_object(
    'message', json_object('id',new.id,'conversation_id',new.conversation_id,'role',new.role,'content',new.content,'metadata',json(new.metadata),'created_at',new.created_at),
    'conversation', json_object('id',v.id,'contact_id',v.contact_id,'gateway_id',v.gateway_id,'external_thread_id',v.external_thread_id,'muted',json(iif(v.muted,'true','false')),'metadata',json(v.metadata),'created_at',v.created_at,'updated_at',v.updated_at),
    'contact', json((SELECT json_object('id',c.id,'name',c.name,'email',c.email,'phone',c.phone,'chatbot_a',c.chatbot_a,'chatbot_b',c.chatbot_b,'social_handle',c.social_handle,'external_id',c.external_id,'notes',c.notes,'tags',json(c.tags),'metadata',json(c.metadata),'created_at',c.created_at,'updated_at',c.updated_at) FROM contacts c WHERE c.id = coalesce(new.metadata ->> '$.contact_id', v.contact_id))),
    'gateway', json((SELECT json_object('id',g.id,'type',g.type,'name',g.name,'status',g.status,'is_default',json(iif(g.is_default,'true','false')),'verified',json(iif(g.verified,'true','false'))) FROM gateways g WHERE g.id = v.gateway_id))), new.created_at
  FROM conversations v WHERE v.id = new.conversation_id;
END;
CREATE TRIGGER _messages_delivered AFTER UPDATE OF metadata ON messages WHEN new.role = 'assistant' AND old.metadata ->> '$.delivery.status' = 'pending' AND new.metadata ->> '$.delivery.status' = 'sent' BEGIN
  INSERT INTO _events(type, data, created_at) SELECT 'message.sent', json_object(
    'message', json_object('id',new.id,'conversation_id',new.conversation_id,'role',new.role,'content',new.content,'metadata',json(new.metadata),'created_at',new.created_at),
    'conversation', json_object('id',v.id,'contact_id',v.contact_id,'gateway_id',v.gateway_id,'external_thread_id',v.external_thread_id,'muted',json(iif(v.muted,'true','false')),'metadata',json(v.metadata),'created_at',v.created_at,'updated_at',v.updated_at),
    'contact', json((SELECT json_object('id',c.id,'name',c.name,'email',c.email,'phone',c.phone,'chatbot_a',c.chatbot_a,'chatbot_b',c.chatbot_b,'social_handle',c.social_handle,'external_id',c.external_id,'notes',c.notes,'tags',json(c.tags),'metadata',json(c.metadata),'created_at',c.created_at,'updated_at',c.updated_at) FROM contacts c WHERE c.id = coalesce(new.metadata ->> '$.contact_id', v.contact_id))),
    'gateway', json((SELECT json_object('id',g.id,'type',g.type,'name',g.name,'status',g.status,'is_default',json(iif(g.is_default,'true','false')),'verified',json(iif(g.verified,'true','false'))) FROM gateways g WHERE g.id = v.gateway_id))), strftime('%Y-%m-%dT%H:%M:%fZ','now')
  FROM conversations v WHERE v.id = new.conversation_id;
END;
CREATE TRIGGER _gateways_told AFTER UPDATE OF status ON gateways WHEN new.status <> old.status AND new.status IN ('active','error') BEGIN
  INSERT INTO _events(type, data, created_at) VALUES ('gateway.' || new.status, json_object('gateway', json_object('id',new.id,'type',new.type,'name',new.name,'status',new.status,'is_default',json(iif(new.is_default,'true','false')),'verified',json(iif(new.verified,'true','false')),'last_error',new.last_error)), new.updated_at);
END;
