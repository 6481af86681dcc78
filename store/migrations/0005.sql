-- Version 5.

-- Where chunks are. Chunks that were made before have no lines, and only their
-- first section, until their source is read again.
ALTER TABLE chunks ADD COLUMN further_sections TEXT NOT NULL DEFAULT '';
ALTER TABLE chunks ADD COLUMN line INTEGER NOT NULL DEFAULT 0;
ALTER TABLE chunks ADD COLUMN last_line INTEGER NOT NULL DEFAULT 0;

-- MCP servers that a person logs in to. Only the checks of columns change.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(replace(sql, '''header'',''oauth2''', '''header'',''oauth2'',''login'''), '''disconnected'',''error''', '''disconnected'',''error'',''needs_login''') WHERE type = 'table' AND name = 'mcp_servers';
PRAGMA writable_schema = RESET;

-- MCP servers that run as programs: the name of a command in the operator's file.
ALTER TABLE mcp_servers ADD COLUMN command TEXT NOT NULL DEFAULT '';

-- Answers that are kept for clients of the Responses API: 7 days, 10,000, 64 MB.
CREATE TABLE _responses (
  id          TEXT PRIMARY KEY NOT NULL,
  previous_id TEXT NOT NULL,
  size        INTEGER NOT NULL,
  created_at  TEXT NOT NULL,
  input       TEXT NOT NULL CHECK (json_valid(input) AND json_type(input) = 'array'),
  body        TEXT NOT NULL CHECK (json_valid(body) AND json_type(body) = 'object')
) WITHOUT ROWID, STRICT;

-- APIs whose operations were read from a description.
CREATE TABLE _apis (
  id         TEXT PRIMARY KEY NOT NULL,
  name       TEXT NOT NULL COLLATE NOCASE UNIQUE,
  title      TEXT NOT NULL,
  version    TEXT NOT NULL,
  format     TEXT NOT NULL,
  url        TEXT NOT NULL,
  server_url TEXT NOT NULL,
  servers    TEXT NOT NULL CHECK (json_valid(servers) AND json_type(servers) = 'array'),
  credential TEXT NOT NULL,
  operations INTEGER NOT NULL,
  security   TEXT NOT NULL CHECK (json_valid(security) AND json_type(security) = 'array'),
  warnings   TEXT NOT NULL CHECK (json_valid(warnings) AND json_type(warnings) = 'array'),
  sha256     TEXT NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
) WITHOUT ROWID, STRICT;
CREATE TABLE _api_operations (
  api_id     TEXT NOT NULL REFERENCES _apis(id) ON DELETE CASCADE,
  id         TEXT NOT NULL,
  name       TEXT NOT NULL,
  method     TEXT NOT NULL,
  path       TEXT NOT NULL,
  summary    TEXT NOT NULL,
  tags       TEXT NOT NULL CHECK (json_valid(tags) AND json_type(tags) = 'array'),
  deprecated INTEGER NOT NULL CHECK (deprecated IN (0,1)),
  server     TEXT NOT NULL,
  hash       TEXT NOT NULL,
  definition BLOB NOT NULL,  -- JSON, compressed
  PRIMARY KEY (api_id, id),
  UNIQUE (api_id, name)
) WITHOUT ROWID, STRICT;

-- Tools that call operations. Only the check of a column changes, so its text
-- does: https://www.sqlite.org/lang_altertable.html#otheralter
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, '''function'',''mcp''', '''function'',''mcp'',''operation'',''api-set''') WHERE type = 'table' AND name = 'tools';
PRAGMA writable_schema = RESET;

-- Items that nodes of type new-items have seen. The empty key says that the node
-- has been run.
CREATE TABLE _seen (
  workflow_id  TEXT NOT NULL REFERENCES workflows(id) ON DELETE CASCADE,
  node_id      TEXT NOT NULL,
  key          BLOB NOT NULL,     -- a hash
  n            INTEGER NOT NULL,  -- of the node's keys, the newest has the highest
  execution_id TEXT NOT NULL,     -- while it has not ended; else empty
  PRIMARY KEY (workflow_id, node_id, key),
  UNIQUE (workflow_id, node_id, n)
) WITHOUT ROWID, STRICT;

-- What language models chose to do on pages, by a hash of the instruction, the
-- page and the names of variables: the 5,000 used last.
CREATE TABLE _planned_actions (
  key     BLOB PRIMARY KEY NOT NULL,
  actions TEXT NOT NULL CHECK (json_valid(actions) AND json_type(actions) = 'array'),
  used_at TEXT NOT NULL
) STRICT;
CREATE INDEX _planned_actions_used ON _planned_actions(used_at);

-- Goals that language models pursue in browser sessions, with their steps: the
-- newest 200.
CREATE TABLE _browses (
  id            TEXT PRIMARY KEY NOT NULL,
  session_id    TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
  status        TEXT NOT NULL CHECK (status IN ('running','waiting','done','stuck','limit','error','cancelled')),
  goal          TEXT NOT NULL,
  max_steps     INTEGER NOT NULL,
  max_tokens    INTEGER NOT NULL,
  hosts         TEXT NOT NULL CHECK (json_valid(hosts) AND json_type(hosts) = 'array'),
  variables     TEXT NOT NULL CHECK (json_valid(variables) AND json_type(variables) = 'array'),
  takeover      INTEGER NOT NULL CHECK (takeover IN (0,1)),
  result        TEXT CHECK (json_valid(result)),
  reason        TEXT NOT NULL,
  takeover_id   TEXT NOT NULL,
  step_count    INTEGER NOT NULL,
  input_tokens  INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  created_at    TEXT NOT NULL,
  ended_at      TEXT
) STRICT;
CREATE INDEX _browses_session ON _browses(session_id, created_at);
CREATE TABLE _browse_steps (
  browse_id   TEXT NOT NULL REFERENCES _browses(id) ON DELETE CASCADE,
  step        INTEGER NOT NULL,
  action      TEXT NOT NULL,
  selector    TEXT NOT NULL,
  text        TEXT NOT NULL,
  description TEXT NOT NULL,
  url         TEXT NOT NULL,
  error       TEXT NOT NULL,
  duration_ms INTEGER NOT NULL,
  created_at  TEXT NOT NULL,
  PRIMARY KEY (browse_id, step)
) WITHOUT ROWID, STRICT;

-- Occurrences of recurring tasks that are cancelled, or have a time or text of
-- their own.
ALTER TABLE tasks ADD COLUMN exceptions TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(exceptions) AND json_type(exceptions) = 'array');

-- Tools that run a workflow.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, '''api-set''', '''api-set'',''workflow''') WHERE type = 'table' AND name = 'tools';
PRAGMA writable_schema = RESET;

-- Triggers, the views that they read, and indexes are parts of the schema that a file
-- gets with the first write to a table: see store/migrations/parts.sql. Triggers of the
-- log, which every file writes, of parts of version 4, and of the user's own tables
-- stay, as do the views of these.
PRAGMA writable_schema = ON;
DELETE FROM sqlite_schema WHERE name NOT GLOB '_data_*' AND (type = 'view' OR type = 'trigger' AND tbl_name <> 'logs'
  AND name NOT GLOB '*_moved' AND name NOT GLOB '*_gone' AND name NOT GLOB '*_search_*');
PRAGMA writable_schema = RESET;
DROP INDEX contacts_email;
DROP INDEX contacts_phone;
DROP INDEX contacts_chatbot_a;
DROP INDEX contacts_chatbot_b;
DROP INDEX contacts_external_id;
DROP INDEX conversations_thread;
DROP INDEX chunks_position;
DROP INDEX gateways_default;
DROP INDEX takeovers_open;
DROP INDEX canned_replies_shortcut;
DROP INDEX executions_idempotency_key;
DROP INDEX _journal_seq;
DROP INDEX session_actions_session;
