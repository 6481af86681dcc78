-- Version 2.

-- The key of logs comes first. SQLite before 3.41 reports NULL values in a
-- WITHOUT ROWID table whose key is not its first columns, and people check
-- backups with what their system has.
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

-- Names that need no explanation.
ALTER TABLE executions RENAME COLUMN asleep TO suspended;
ALTER TABLE executions RENAME COLUMN held TO paused;
ALTER TABLE executions RENAME COLUMN cause TO idempotency_key;
DROP INDEX executions_cause;
CREATE UNIQUE INDEX executions_idempotency_key ON executions(idempotency_key) WHERE idempotency_key <> '';
ALTER TABLE chunks RENAME COLUMN record TO record_seq;
ALTER TABLE webhooks RENAME COLUMN since TO since_seq;
ALTER TABLE webhooks RENAME COLUMN former_until TO previous_secret_until;
ALTER TABLE _triggers RENAME COLUMN since TO since_seq;
ALTER TABLE _triggers RENAME COLUMN place TO position;
ALTER TABLE _agent RENAME COLUMN woken TO active_since_seq;

-- Messages are queued for an automatic answer as they come in, and the row goes
-- with the commit that stores the answer.
DELETE FROM _answers WHERE 'answer:' || message_id IN (SELECT key FROM _outgoing);
INSERT OR IGNORE INTO _answers(message_id, conversation_id, created_at)
  SELECT m.id, v.id, e.created_at FROM _events e JOIN messages m ON m.id = e.data ->> '$.message.id'
    JOIN conversations v ON v.id = m.conversation_id JOIN gateways g ON g.id = v.gateway_id
  WHERE e.type = 'message.received' AND e.seq > max((SELECT seq FROM _cursors WHERE consumer = 'answers'), (SELECT active_since_seq FROM _agent)) AND e.depth < 8
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

-- Events of contacts, conversations, messages and gateways. Each view makes the
-- JSON of one noun; only the triggers below read them.
DROP TRIGGER _contacts_created;
DROP TRIGGER _contacts_updated;
DROP TRIGGER _contacts_removed;
DROP TRIGGER _conversations_created;
DROP TRIGGER _messages_told;
DROP TRIGGER _messages_delivered;
DROP TRIGGER _gateways_told;
CREATE VIEW _contact_json AS SELECT id, json_object('id',id,'name',name,'email',email,'phone',phone,'chatbot_a',chatbot_a,'chatbot_b',chatbot_b,'social_handle',social_handle,
  'external_id',external_id,'notes',notes,'tags',json(tags),'metadata',json(metadata),'created_at',created_at,'updated_at',updated_at) AS json FROM contacts;
CREATE VIEW _gateway_json AS SELECT id, json_object('id',id,'type',type,'name',name,'status',status,
  'is_default',json(iif(is_default,'true','false')),'verified',json(iif(verified,'true','false'))) AS json FROM gateways;
CREATE VIEW _conversation_json AS SELECT id, json_object('id',id,'contact_id',contact_id,'gateway_id',gateway_id,'external_thread_id',external_thread_id,
  'muted',json(iif(muted,'true','false')),'metadata',json(metadata),'created_at',created_at,'updated_at',updated_at) AS json FROM conversations;
CREATE VIEW _message_events AS SELECT m.id AS message_id, json_object(
  'message', json_object('id',m.id,'conversation_id',m.conversation_id,'role',m.role,'content',m.content,'metadata',json(m.metadata),'created_at',m.created_at),
  'conversation', json((SELECT json FROM _conversation_json WHERE id = v.id)),
  'contact', json((SELECT json FROM _contact_json WHERE id = coalesce(m.metadata ->> '$.contact_id', v.contact_id))),
  'gateway', json((SELECT json FROM _gateway_json WHERE id = v.gateway_id))) AS data
  FROM messages m JOIN conversations v ON v.id = m.conversation_id;

CREATE TRIGGER _contacts_created AFTER INSERT ON contacts BEGIN
  INSERT INTO _events(type, data, created_at) SELECT 'contact.created', json_object('contact', json(json)), new.created_at FROM _contact_json WHERE id = new.id;
END;
CREATE TRIGGER _contacts_updated AFTER UPDATE ON contacts BEGIN
  INSERT INTO _events(type, data, created_at) SELECT 'contact.updated', json_object('contact', json(json)), new.updated_at FROM _contact_json WHERE id = new.id;
END;
CREATE TRIGGER _contacts_removed BEFORE DELETE ON contacts BEGIN
  INSERT INTO _events(type, data) SELECT 'contact.deleted', json_object('contact', json(json)) FROM _contact_json WHERE id = old.id;
END;
CREATE TRIGGER _conversations_created AFTER INSERT ON conversations BEGIN
  INSERT INTO _events(type, data, created_at) SELECT 'conversation.created', json_object('conversation', json(json),
    'contact', json((SELECT json FROM _contact_json WHERE id = new.contact_id)),
    'gateway', json((SELECT json FROM _gateway_json WHERE id = new.gateway_id))), new.created_at FROM _conversation_json WHERE id = new.id;
END;
CREATE TRIGGER _messages_created AFTER INSERT ON messages WHEN new.role IN ('user','assistant') AND new.metadata ->> '$.delivery.status' IS NOT 'pending' BEGIN
  INSERT INTO _events(type, data, created_at) SELECT iif(new.role = 'user', 'message.received', 'message.sent'), data, new.created_at FROM _message_events WHERE message_id = new.id;
END;
CREATE TRIGGER _messages_delivered AFTER UPDATE OF metadata ON messages WHEN new.role = 'assistant' AND old.metadata ->> '$.delivery.status' = 'pending' AND new.metadata ->> '$.delivery.status' = 'sent' BEGIN
  INSERT INTO _events(type, data) SELECT 'message.sent', data FROM _message_events WHERE message_id = new.id;
END;
CREATE TRIGGER _gateways_updated AFTER UPDATE OF status ON gateways WHEN new.status <> old.status AND new.status IN ('active','error') BEGIN
  INSERT INTO _events(type, data, created_at) SELECT 'gateway.' || new.status, json_object('gateway', json_set(json, '$.last_error', new.last_error)), new.updated_at FROM _gateway_json WHERE id = new.id;
END;

-- Credentials never lie in clear in nodes and tools, whoever writes: nodes as
-- agent/nodesecret.go knows them, tools as agent.ToolConfig does. A name that
-- comes twice counts each time. (SQL does not reach the configs of sources,
-- gateways and MCP servers.)
DROP TRIGGER _workflows_sealed;
DROP TRIGGER _workflows_resealed;
DROP TRIGGER _tools_sealed;
DROP TRIGGER _tools_resealed;
CREATE VIEW _workflow_credentials AS SELECT w.id AS workflow_id
  FROM workflows w, json_each(w.nodes) n, json_each(iif(n.type = 'object', n.value, '{}')) d, json_each(iif(d.type = 'object', d.value, '{}')) f, json_each(iif(f.type = 'object', f.value, '{}')) s
  WHERE d.key = 'data' AND f.key IN ('auth','headers') AND s.type = 'text' AND s.value NOT IN ('','********') AND instr(s.value, '{{') = 0
  AND EXISTS (SELECT 1 FROM json_each(n.value) t WHERE t.key = 'type' AND (t.value = 'http-request' OR t.value = 'trigger' AND f.key = 'auth'))
  AND iif(f.key = 'auth', s.key IN ('token','password','value','secret'), lower(s.key) <> 'idempotency-key' AND (s.key LIKE '%authorization%' OR s.key LIKE '%key%' OR s.key LIKE '%token%' OR s.key LIKE '%secret%' OR s.key LIKE '%cookie%'));
CREATE VIEW _tool_credentials AS SELECT o.id AS tool_id
  FROM tools o, json_each(o.config) f, json_each(iif(f.type = 'object', f.value, '{}')) s
  WHERE lower(f.key) IN ('auth','headers') AND s.type = 'text' AND s.value NOT IN ('','********')
  AND iif(lower(f.key) = 'auth', lower(s.key) IN ('token','password','value'), (s.key LIKE '%authorization%' OR s.key LIKE '%key%' OR s.key LIKE '%token%' OR s.key LIKE '%secret%' OR s.key LIKE '%cookie%'));
CREATE TRIGGER _workflows_sealed AFTER INSERT ON workflows WHEN EXISTS (SELECT 1 FROM _workflow_credentials WHERE workflow_id = new.id) BEGIN
  SELECT RAISE(ABORT, 'credentials of nodes can only be written by the API, which seals them; ******** keeps the one that is stored');
END;
CREATE TRIGGER _workflows_resealed AFTER UPDATE OF nodes ON workflows WHEN EXISTS (SELECT 1 FROM _workflow_credentials WHERE workflow_id = new.id) BEGIN
  SELECT RAISE(ABORT, 'credentials of nodes can only be written by the API, which seals them; ******** keeps the one that is stored');
END;
CREATE TRIGGER _tools_sealed AFTER INSERT ON tools WHEN EXISTS (SELECT 1 FROM _tool_credentials WHERE tool_id = new.id) BEGIN
  SELECT RAISE(ABORT, 'credentials of tools can only be written by the API, which seals them; ******** keeps the one that is stored');
END;
CREATE TRIGGER _tools_resealed AFTER UPDATE OF config ON tools WHEN EXISTS (SELECT 1 FROM _tool_credentials WHERE tool_id = new.id) BEGIN
  SELECT RAISE(ABORT, 'credentials of tools can only be written by the API, which seals them; ******** keeps the one that is stored');
END;

-- What triggers that count rows did besides has triggers of its own. Those that
-- count, and those that delete secrets, are made for lists of tables in
-- store/migrate.go.
DROP TRIGGER _workflows_forgotten;
CREATE TRIGGER _conversations_deleted AFTER DELETE ON conversations BEGIN
  DELETE FROM _secrets WHERE owner = old.id AND (field = 'reply' OR field LIKE 'reply-%');
END;
CREATE TRIGGER _webhooks_created AFTER INSERT ON webhooks BEGIN
  UPDATE webhooks SET since_seq = (SELECT coalesce(max(seq), 0) FROM _events) WHERE id = new.id;
END;

-- What waits for a person, and what failed, is counted without looking at the
-- rest.
CREATE INDEX _waits_approvals ON _waits(started_at) WHERE kind = 'approval';
CREATE INDEX conversations_muted ON conversations(updated_at) WHERE muted = 1;
CREATE INDEX executions_errored ON executions(id) WHERE status = 'errored';

-- What a person thinks of an answer.
ALTER TABLE messages ADD COLUMN rating INTEGER CHECK (rating IN (1,-1));
ALTER TABLE messages ADD COLUMN comment TEXT NOT NULL DEFAULT '';

-- Who saved a workflow, and why. SQL names nobody. A change of where an editor
-- draws, or of what it notes in metadata, is no version: the current one gets it.
ALTER TABLE workflows ADD COLUMN updated_by TEXT NOT NULL DEFAULT '';
ALTER TABLE _workflow_versions ADD COLUMN author TEXT NOT NULL DEFAULT '';
ALTER TABLE _workflow_versions ADD COLUMN note TEXT NOT NULL DEFAULT '';
DROP TRIGGER _workflows_created;
CREATE TRIGGER _workflows_created AFTER INSERT ON workflows BEGIN
  INSERT OR REPLACE INTO _workflow_versions(workflow_id, version, nodes, edges, settings, created_at) VALUES (new.id, new.version, new.nodes, new.edges, new.settings, new.created_at);
  INSERT OR IGNORE INTO _triggers SELECT new.id, value ->> '$.id', coalesce(value ->> '$.data.event', 'manual'), key, value -> '$.data.auth', (SELECT coalesce(max(seq), 0) FROM _events)
    FROM json_each(new.nodes)
    WHERE new.status = 'active' AND type = 'object' AND value ->> '$.type' = 'trigger' AND value ->> '$.id' IS NOT NULL AND NOT coalesce(value ->> '$.data.disabled', 0);
END;
DROP TRIGGER _workflows_versioned;
CREATE TRIGGER _workflows_versioned AFTER UPDATE OF nodes, edges, settings ON workflows
WHEN new.nodes IS NOT old.nodes OR new.edges IS NOT old.edges OR new.settings IS NOT old.settings BEGIN
  UPDATE workflows SET version = old.version + 1, updated_by = '' WHERE id = new.id AND (new.settings IS NOT old.settings
    OR (SELECT json_group_array(iif(type = 'object', json_remove(value, '$.position', '$.metadata'), value)) FROM json_each(new.nodes))
      IS NOT (SELECT json_group_array(iif(type = 'object', json_remove(value, '$.position', '$.metadata'), value)) FROM json_each(old.nodes))
    OR (SELECT json_group_array(iif(type = 'object', json_remove(value, '$.metadata'), value)) FROM json_each(new.edges))
      IS NOT (SELECT json_group_array(iif(type = 'object', json_remove(value, '$.metadata'), value)) FROM json_each(old.edges)));
  INSERT INTO _workflow_versions(workflow_id, version, nodes, edges, settings, created_at)
    SELECT id, version, nodes, edges, settings, updated_at FROM workflows WHERE id = new.id
    ON CONFLICT DO UPDATE SET nodes = excluded.nodes, edges = excluded.edges, settings = excluded.settings;
END;
