-- Version 2.

-- The key of logs comes first. SQLite before 3.41 reports NULL values in a
-- WITHOUT ROWID table whose key is not its first columns, and people check
-- backups with what their system has.
DROP TRIGGER _logs_counted;
DROP TRIGGER _logs_uncounted;
ALTER TABLE logs RENAME TO _logs_1;
CREATE TABLE logs (
  created_at TEXT NOT NULL,
  id         TEXT NOT NULL DEFAULT ('log-' || lower(hex(randomblob(10)))),
  level      TEXT NOT NULL,
  source     TEXT NOT NULL,
  message    TEXT NOT NULL,
  data       TEXT NOT NULL DEFAULT '{}',  -- not checked: SQL users only read the log
  PRIMARY KEY (created_at, id)
) WITHOUT ROWID, STRICT;
INSERT INTO logs(created_at, id, level, source, message, data)
  SELECT created_at, id, level, source, message, data FROM _logs_1 ORDER BY created_at, id;
DROP TABLE _logs_1;
CREATE TRIGGER _logs_counted AFTER INSERT ON logs BEGIN UPDATE _counts SET n = n + 1 WHERE name = 'logs'; END;
CREATE TRIGGER _logs_uncounted AFTER DELETE ON logs BEGIN UPDATE _counts SET n = n - 1 WHERE name = 'logs'; END;

-- A key that a key made ends with it.
ALTER TABLE _keys ADD COLUMN parent_id TEXT NOT NULL DEFAULT '';

-- The hosts that a secret may be sent to, see store/secrets.go. NULL: stored
-- before hosts were; they are noted when the file is opened next.
ALTER TABLE _secrets ADD COLUMN hosts TEXT;
CREATE INDEX _secrets_unbound ON _secrets(owner) WHERE hosts IS NULL;

-- A config is sealed for the gateway and the type that it was given for.
CREATE TRIGGER _gateways_fixed BEFORE UPDATE OF id, type ON gateways WHEN new.id <> old.id OR new.type <> old.type BEGIN
  SELECT RAISE(ABORT, 'the id and the type of a gateway stay as they are, for its credentials are for them');
END;
-- What an approval asks, with its templates filled.
ALTER TABLE _waits ADD COLUMN title TEXT NOT NULL DEFAULT '';
ALTER TABLE _waits ADD COLUMN message TEXT NOT NULL DEFAULT '';
-- What one cause leads to is counted by the first execution of its chain.
ALTER TABLE executions ADD COLUMN root_id TEXT NOT NULL DEFAULT '';  -- its own id when nothing led to it
ALTER TABLE _events ADD COLUMN root TEXT NOT NULL DEFAULT '';

-- Who made or timed a schedule or task: the first execution of the chain that
-- did. The row with the id '' is there while an execution writes.
CREATE TABLE _chains (
  id   TEXT PRIMARY KEY NOT NULL,
  root TEXT NOT NULL
) WITHOUT ROWID;
CREATE TRIGGER _chains_kept AFTER INSERT ON _replan BEGIN
  INSERT OR REPLACE INTO _chains(id, root) SELECT new.id, root FROM _chains WHERE id = '';
END;
CREATE TRIGGER _schedules_unchained AFTER DELETE ON schedules BEGIN DELETE FROM _chains WHERE id = old.id; END;
CREATE TRIGGER _tasks_unchained AFTER DELETE ON tasks BEGIN DELETE FROM _chains WHERE id = old.id; END;
ALTER TABLE _deliveries ADD COLUMN depth INTEGER NOT NULL DEFAULT 0;  -- of the event, as is root
ALTER TABLE _deliveries ADD COLUMN root TEXT NOT NULL DEFAULT '';

-- A step of an execution is found by an index, and so without reading the rows
-- that hold its items, however large they are.
ALTER TABLE _journal RENAME TO _journal_1;
CREATE TABLE _journal (  -- what became of nodes, one row a commit
  execution_id TEXT NOT NULL,
  seq          INTEGER NOT NULL,
  results      TEXT NOT NULL
);
INSERT INTO _journal(execution_id, seq, results) SELECT execution_id, seq, results FROM _journal_1 ORDER BY execution_id, seq;
DROP TABLE _journal_1;
CREATE UNIQUE INDEX _journal_seq ON _journal(execution_id, seq);
CREATE TRIGGER _executions_forgotten AFTER DELETE ON executions BEGIN DELETE FROM _journal WHERE execution_id = old.id; END;

-- Messages are queued for an automatic answer as they come in, and the row goes
-- with the commit that stores the answer.
DELETE FROM _answers WHERE 'answer:' || message_id IN (SELECT key FROM _outgoing);
INSERT OR IGNORE INTO _answers(message_id, conversation_id, created_at)
  SELECT m.id, v.id, e.created_at FROM _events e JOIN messages m ON m.id = e.data ->> '$.message.id'
    JOIN conversations v ON v.id = m.conversation_id JOIN gateways g ON g.id = v.gateway_id
  WHERE e.type = 'message.received' AND e.seq > max((SELECT seq FROM _cursors WHERE consumer = 'answers'), (SELECT woken FROM _agent)) AND e.depth < 8
    AND m.metadata ->> '$.external_id' IS NOT NULL AND m.metadata ->> '$.auto_submitted' IS NULL AND v.muted = 0 AND g.status = 'active'
    AND NOT EXISTS (SELECT 1 FROM _outgoing WHERE key = 'answer:' || m.id)
    AND NOT EXISTS (SELECT 1 FROM _triggers t JOIN workflows w ON w.id = t.workflow_id JOIN json_each(w.nodes) n ON n.value ->> '$.id' = t.node_id
      WHERE t.event IN ('message.received', 'message.*') AND coalesce(n.value ->> '$.data.gateway_id', '') IN ('', g.id));
DELETE FROM _cursors WHERE consumer = 'answers';

-- A message that is being sent stays due, so that a start finds what a kill
-- interrupted by the same index.
DROP TRIGGER _outgoing_ended;
DROP TRIGGER _outgoing_removed;
ALTER TABLE _outgoing RENAME TO _outgoing_1;
CREATE TABLE _outgoing (  -- messages for a platform; of a conversation one is sent after the other
  message_id      INTEGER PRIMARY KEY REFERENCES messages(id) ON DELETE CASCADE,
  conversation_id TEXT NOT NULL,
  gateway_id      TEXT NOT NULL,
  status          TEXT NOT NULL CHECK (status IN ('pending','sending','sent','failed')),
  attempt         INTEGER NOT NULL DEFAULT 0,
  parts           INTEGER NOT NULL DEFAULT 0,  -- that are out
  external_id     TEXT NOT NULL DEFAULT '',    -- the platform's, of the first part
  channel         TEXT NOT NULL DEFAULT '',
  error           TEXT NOT NULL DEFAULT '',
  first_at        TEXT,  -- when the first try began
  next_attempt_at TEXT,  -- of the first of its conversation that is not done; 1970 for at once, whatever the clock says
  created_at      TEXT NOT NULL
) STRICT;
INSERT INTO _outgoing(message_id, conversation_id, gateway_id, status, attempt, parts, external_id, channel, error, first_at, next_attempt_at, created_at)
  SELECT message_id, conversation_id, gateway_id, status, attempt, parts, external_id, channel, error, first_at,
    iif(status = 'sending', '1970-01-01T00:00:00.000Z', next_attempt_at), created_at FROM _outgoing_1;
DROP TABLE _outgoing_1;
CREATE INDEX _outgoing_due ON _outgoing(next_attempt_at) WHERE status IN ('pending','sending');
CREATE INDEX _outgoing_line ON _outgoing(conversation_id, message_id) WHERE status IN ('pending','sending');
CREATE INDEX _outgoing_done ON _outgoing(created_at) WHERE status IN ('sent','failed');
CREATE TRIGGER _outgoing_ended AFTER UPDATE OF status ON _outgoing WHEN new.status IN ('sent','failed') AND old.status <> new.status BEGIN
  UPDATE messages SET metadata = json_patch(metadata, json_object('external_id', nullif(new.external_id, ''), 'delivered_at', iif(new.status = 'sent', strftime('%Y-%m-%dT%H:%M:%fZ','now'), NULL),
    'delivery', json_object('status', new.status, 'error', nullif(new.error, '')))) WHERE id = new.message_id;
  UPDATE _outgoing SET next_attempt_at = '1970-01-01T00:00:00.000Z' WHERE message_id = (SELECT min(message_id) FROM _outgoing WHERE conversation_id = new.conversation_id AND status IN ('pending','sending'));
END;
CREATE TRIGGER _outgoing_removed AFTER DELETE ON _outgoing WHEN old.status IN ('pending','sending') BEGIN
  UPDATE _outgoing SET next_attempt_at = coalesce(next_attempt_at, '1970-01-01T00:00:00.000Z') WHERE message_id = (SELECT min(message_id) FROM _outgoing WHERE conversation_id = old.conversation_id AND status IN ('pending','sending'));
END;
