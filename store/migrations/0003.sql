-- Version 3.

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

-- The inbox: who looks after a conversation, how far it is, and what is new in it.
ALTER TABLE conversations ADD COLUMN status TEXT NOT NULL DEFAULT 'open' CHECK (status IN ('open','snoozed','resolved'));
ALTER TABLE conversations ADD COLUMN assignee TEXT;
ALTER TABLE conversations ADD COLUMN needs_human INTEGER NOT NULL DEFAULT 0 CHECK (needs_human IN (0,1));
ALTER TABLE conversations ADD COLUMN unread INTEGER NOT NULL DEFAULT 0;
ALTER TABLE conversations ADD COLUMN last_message_id INTEGER NOT NULL DEFAULT 0;
UPDATE conversations SET last_message_id = coalesce((SELECT max(id) FROM messages WHERE conversation_id = conversations.id AND role IN ('user','assistant')), 0),
  unread = (SELECT count(*) FROM messages WHERE conversation_id = conversations.id AND role = 'user' AND (contact_id <> '' OR gateway_id <> '')
    AND id > coalesce((SELECT max(id) FROM messages WHERE conversation_id = conversations.id AND role = 'assistant'), 0));
CREATE INDEX conversations_recent ON conversations(last_message_id);
CREATE INDEX conversations_status ON conversations(status, last_message_id);
CREATE INDEX conversations_gateway ON conversations(gateway_id, status);
CREATE INDEX conversations_assignee ON conversations(assignee, status, last_message_id) WHERE assignee IS NOT NULL;
CREATE INDEX conversations_unread ON conversations(last_message_id, status) WHERE unread > 0;
CREATE INDEX conversations_needs_human ON conversations(last_message_id, status) WHERE needs_human = 1;
CREATE TABLE _conversation_counts (  -- how many conversations have a status
  status TEXT PRIMARY KEY NOT NULL,
  n      INTEGER NOT NULL
) WITHOUT ROWID, STRICT;
INSERT INTO _conversation_counts(status, n) SELECT 'open', count(*) FROM conversations UNION ALL VALUES ('snoozed', 0), ('resolved', 0);
CREATE TRIGGER _conversations_status_added AFTER INSERT ON conversations BEGIN
  UPDATE _conversation_counts SET n = n + 1 WHERE status = new.status;
END;
CREATE TRIGGER _conversations_status_removed AFTER DELETE ON conversations BEGIN
  UPDATE _conversation_counts SET n = n - 1 WHERE status = old.status;
END;
CREATE TRIGGER _conversations_status_changed AFTER UPDATE OF status ON conversations WHEN new.status <> old.status BEGIN
  UPDATE _conversation_counts SET n = n + iif(status = new.status, 1, -1) WHERE status IN (old.status, new.status);
END;
CREATE TRIGGER _messages_removed AFTER DELETE ON messages BEGIN
  UPDATE conversations SET last_message_id = coalesce((SELECT max(id) FROM messages WHERE conversation_id = old.conversation_id AND role IN ('user','assistant')), 0)
    WHERE id = old.conversation_id AND last_message_id = old.id;
END;
CREATE TABLE _drafts (  -- answers that people have not sent yet
  conversation_id TEXT NOT NULL REFERENCES conversations(id) ON DELETE CASCADE,
  author          TEXT NOT NULL,
  text            TEXT NOT NULL,
  updated_at      TEXT NOT NULL,
  PRIMARY KEY (conversation_id, author)
) WITHOUT ROWID, STRICT;
CREATE TABLE canned_replies (
  id         TEXT PRIMARY KEY NOT NULL DEFAULT ('reply-' || lower(hex(randomblob(10)))),
  shortcut   TEXT NOT NULL,
  text       TEXT NOT NULL,
  created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')) CHECK (created_at IS strftime('%Y-%m-%dT%H:%M:%fZ',created_at)),
  updated_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')) CHECK (updated_at IS strftime('%Y-%m-%dT%H:%M:%fZ',updated_at))
) STRICT;
CREATE UNIQUE INDEX canned_replies_shortcut ON canned_replies(shortcut COLLATE NOCASE);
INSERT INTO _counts VALUES ('canned_replies', 0);
-- Messages may be notes. Only the check of a column changes, so its text does,
-- and no row is written again: https://www.sqlite.org/lang_altertable.html#otheralter
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, '''system'',''tool''', '''system'',''tool'',''note''') WHERE type = 'table' AND name = 'messages';
PRAGMA writable_schema = RESET;

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
  'muted',json(iif(muted,'true','false')),'status',status,'assignee',assignee,'needs_human',json(iif(needs_human,'true','false')),'unread',unread,
  'metadata',json(metadata),'created_at',created_at,'updated_at',updated_at) AS json FROM conversations;
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
CREATE TRIGGER _conversations_updated AFTER UPDATE OF status, assignee, needs_human, muted ON conversations
  WHEN (new.status, new.assignee, new.needs_human, new.muted) IS NOT (old.status, old.assignee, old.needs_human, old.muted) BEGIN
  INSERT INTO _events(type, data) SELECT 'conversation.updated', json_object('conversation', json(json),
    'contact', json((SELECT json FROM _contact_json WHERE id = new.contact_id)),
    'gateway', json((SELECT json FROM _gateway_json WHERE id = new.gateway_id))) FROM _conversation_json WHERE id = new.id;
END;
CREATE TRIGGER _messages_created AFTER INSERT ON messages WHEN new.role IN ('user','assistant') BEGIN
  UPDATE conversations SET last_message_id = new.id, unread = iif(new.role = 'user', unread + (contact_id <> '' OR gateway_id <> ''), 0), status = iif(new.role = 'user', 'open', status) WHERE id = new.conversation_id;
  INSERT INTO _events(type, data, created_at) SELECT iif(new.role = 'user', 'message.received', 'message.sent'), data, new.created_at
    FROM _message_events WHERE message_id = new.id AND new.metadata ->> '$.delivery.status' IS NOT 'pending';
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

-- The graph that a test executes, which is not that of a version.
CREATE TABLE _tests (
  execution_id TEXT PRIMARY KEY NOT NULL REFERENCES executions(id) ON DELETE CASCADE,
  nodes        TEXT NOT NULL,
  edges        TEXT NOT NULL,
  plan         TEXT NOT NULL  -- how much of it runs, and with which outputs
);
CREATE INDEX executions_tests ON executions(workflow_id, id) WHERE trigger = 'test';
