-- Version 7.

-- A temperature is sent to the provider only if one was set. Earlier versions stored
-- their default, 0.7, with every change of the settings.
UPDATE _agent SET settings = CASE json_extract(settings, '$.llm_temperature')
  WHEN 0.7 THEN json_remove(settings, '$.llm_temperature')
  ELSE json_set(settings, '$.llm_temperature_set', json('true')) END
WHERE json_extract(settings, '$.llm_temperature') IS NOT NULL;

-- Decisions about access to the server, in the default agent's file: default_role is
-- the role that its owner chose for callers without an identity.
CREATE TABLE _access (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID, STRICT;

-- The emails that were answered automatically within a day, by the address to which
-- the answer went, so that two programs do not answer each other forever.
CREATE TABLE _mail_answers (
  address    TEXT NOT NULL,
  message_id INTEGER NOT NULL,
  created_at TEXT NOT NULL,
  PRIMARY KEY (address, message_id)
) WITHOUT ROWID, STRICT;

-- Approvals whose comment is the answer.
ALTER TABLE _waits ADD COLUMN comment_required INTEGER NOT NULL DEFAULT 0;

-- Where the pages of a chunk start. Chunks that were made before only have the page
-- where they start, until their source is read again.
ALTER TABLE chunks ADD COLUMN page_starts TEXT NOT NULL DEFAULT '';
