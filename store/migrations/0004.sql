-- Version 4.

-- What browser sessions did and showed.
ALTER TABLE sessions ADD COLUMN url TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN title TEXT NOT NULL DEFAULT '';
ALTER TABLE takeovers ADD COLUMN note TEXT NOT NULL DEFAULT '';

CREATE TABLE session_actions (  -- what was done in browser sessions, and what failed
  seq         INTEGER PRIMARY KEY,
  session_id  TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
  action      TEXT NOT NULL,
  input       TEXT NOT NULL CHECK (json_valid(input) AND json_type(input) = 'object'),
  url         TEXT NOT NULL,
  duration_ms INTEGER NOT NULL,
  error       TEXT NOT NULL,  -- '' when it was done
  created_at  TEXT NOT NULL
) STRICT;
CREATE INDEX session_actions_session ON session_actions(session_id, seq);

CREATE TABLE _thumbnails (  -- the last picture of sessions that have ended, JPEG
  session_id TEXT PRIMARY KEY NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
  image      BLOB NOT NULL
) STRICT;

ALTER TABLE tools ADD COLUMN enabled INTEGER NOT NULL DEFAULT 1 CHECK (enabled IN (0,1));

-- What schedules did on a day.
CREATE INDEX runs_scheduled ON runs(scheduled_for, schedule_id, status);

-- Gateways of websites. Only the check of a column changes, so its text does,
-- and no row is written again: https://www.sqlite.org/lang_altertable.html#otheralter
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, '''sms'',''webhook''', '''sms'',''webhook'',''web''') WHERE type = 'table' AND name = 'gateways';
PRAGMA writable_schema = RESET;
