-- Version 6.

-- Files that came with messages: their bytes are in _file_parts, and
-- metadata.attachments of the message describes them.
CREATE TABLE _attachments (
  message_id      INTEGER NOT NULL REFERENCES messages(id) ON DELETE CASCADE,
  n               INTEGER NOT NULL,
  gateway_id      TEXT NOT NULL,
  attempts        INTEGER NOT NULL,
  next_attempt_at TEXT,
  upload          TEXT NOT NULL,
  name            TEXT NOT NULL,
  media_type      TEXT NOT NULL,
  size            INTEGER NOT NULL,
  PRIMARY KEY (message_id, n)
) WITHOUT ROWID, STRICT;
