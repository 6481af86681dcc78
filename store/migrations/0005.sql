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
) STRICT;
CREATE INDEX _responses_created ON _responses(created_at, size);
