-- Parts of the schema that a file has only once it needs them: see
-- store/parts.go. Each begins with its name, and either the table that it is of,
-- made when that has some rows, or "wanted", made when a list asks for it, or
-- "writing" and tables, made before one of them is written to. In
-- _filter_counts, "search" is the first row that an index of texts does not have,
-- and "moved" counts how often rows went or got another place in the usual order.

-- since 4
-- part contacts: contacts
CREATE INDEX contacts_created ON contacts(created_at, id);
INSERT INTO _filter_counts(list, value_1, n) VALUES ('moved', 'contacts', 1);
CREATE TRIGGER _contacts_moved AFTER UPDATE OF id, created_at ON contacts WHEN (new.id, new.created_at) IS NOT (old.id, old.created_at) BEGIN
  UPDATE _filter_counts SET n = n + 1 WHERE list = 'moved' AND value_1 = 'contacts' AND value_2 = '' AND value_3 = '' AND value_4 = '' AND value_5 = '';
END;
CREATE TRIGGER _contacts_gone AFTER DELETE ON contacts BEGIN
  UPDATE _filter_counts SET n = n + 1 WHERE list = 'moved' AND value_1 = 'contacts' AND value_2 = '' AND value_3 = '' AND value_4 = '' AND value_5 = '';
END;
-- part contact_tags: _contact_tags
CREATE INDEX _contact_tags_contact ON _contact_tags(contact_id);
-- part contacts_by_name: wanted
CREATE INDEX contacts_by_name ON contacts(name COLLATE NOCASE, id);
-- part contacts_by_email: wanted
CREATE INDEX contacts_by_email ON contacts(email COLLATE NOCASE, id);
-- part contacts_by_updated_at: wanted
CREATE INDEX contacts_by_updated_at ON contacts(updated_at, id);

-- part conversations: conversations
CREATE INDEX conversations_created ON conversations(created_at, id);
CREATE INDEX conversations_contact ON conversations(contact_id, created_at, id);
CREATE INDEX conversations_recent ON conversations(last_message_id, id);
CREATE INDEX conversations_status ON conversations(status, last_message_id, id);
CREATE INDEX conversations_assignee ON conversations(assignee, status, last_message_id, id) WHERE assignee IS NOT NULL;
CREATE INDEX conversations_unread ON conversations(last_message_id, id, status) WHERE unread > 0;
CREATE INDEX conversations_needs_human ON conversations(last_message_id, id, status) WHERE needs_human = 1;
CREATE INDEX conversations_muted ON conversations(updated_at) WHERE muted = 1;
INSERT INTO _filter_counts(list, value_1, n) VALUES ('moved', 'conversations', 1);
CREATE TRIGGER _conversations_moved AFTER UPDATE OF id, created_at ON conversations WHEN (new.id, new.created_at) IS NOT (old.id, old.created_at) BEGIN
  UPDATE _filter_counts SET n = n + 1 WHERE list = 'moved' AND value_1 = 'conversations' AND value_2 = '' AND value_3 = '' AND value_4 = '' AND value_5 = '';
END;
CREATE TRIGGER _conversations_gone AFTER DELETE ON conversations BEGIN
  UPDATE _filter_counts SET n = n + 1 WHERE list = 'moved' AND value_1 = 'conversations' AND value_2 = '' AND value_3 = '' AND value_4 = '' AND value_5 = '';
END;
-- part conversations_by_updated_at: wanted
CREATE INDEX conversations_by_updated_at ON conversations(updated_at, id);

-- part messages: messages
CREATE INDEX messages_conversation ON messages(conversation_id, id);

-- part messages_role: wanted
CREATE INDEX messages_role ON messages(role, id);

-- part executions: executions
CREATE INDEX executions_workflow ON executions(workflow_id, status, id);
CREATE INDEX executions_ended ON executions(status, id, trigger) WHERE status IN ('complete','errored','terminated');
CREATE INDEX executions_parent ON executions(parent_id) WHERE parent_id <> '';
CREATE INDEX executions_tests ON executions(workflow_id, id) WHERE trigger = 'test';
-- part executions_by_started_at: wanted
CREATE INDEX executions_by_started_at ON executions(coalesce(started_at, ''), id);
-- part executions_by_completed_at: wanted
CREATE INDEX executions_by_completed_at ON executions(coalesce(completed_at, ''), id);
-- part executions_by_status: wanted
CREATE INDEX executions_by_status ON executions(status, id);

-- part executions_trigger: wanted
CREATE INDEX executions_trigger ON executions(trigger, id);

-- part waits: _waits
CREATE INDEX _waits_due ON _waits(due_at) WHERE due_at IS NOT NULL;
CREATE INDEX _waits_event ON _waits(event) WHERE event <> '';
CREATE INDEX _waits_child ON _waits(child_id) WHERE child_id <> '';
CREATE INDEX _waits_approvals ON _waits(started_at) WHERE kind = 'approval';
-- part triggers: _triggers
CREATE INDEX _triggers_event ON _triggers(event);
-- part replays: _replays
CREATE INDEX _replays_created ON _replays(created_at);
-- part workflows: workflows
CREATE INDEX workflows_created ON workflows(created_at, id);

-- part logs_by_level: wanted
CREATE INDEX logs_by_level ON logs(level, id);
-- part logs_by_source: wanted
CREATE INDEX logs_by_source ON logs(source, id);
-- part logs_filtered: wanted
CREATE INDEX logs_level ON logs(level, created_at, id);
CREATE INDEX logs_source ON logs(source, created_at, id);
INSERT INTO _filter_counts(list, value_1, value_2, n) SELECT 'logs', level, source, count(*) FROM logs GROUP BY level, source;
INSERT INTO _filter_counts(list, value_1, n) VALUES ('counted', 'logs', 1);
CREATE TRIGGER _logs_filed AFTER INSERT ON logs BEGIN
  INSERT INTO _filter_counts(list, value_1, value_2, n) VALUES ('logs', new.level, new.source, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER _logs_unfiled AFTER DELETE ON logs BEGIN
  UPDATE _filter_counts SET n = n - 1 WHERE list = 'logs' AND value_1 = old.level AND value_2 = old.source AND value_3 = '' AND value_4 = '' AND value_5 = '';
END;

-- part runs: runs
CREATE INDEX runs_schedule ON runs(schedule_id, seq);
CREATE INDEX runs_running ON runs(schedule_id, seq) WHERE status = 'running';
-- part schedules: schedules
CREATE INDEX schedules_created ON schedules(created_at, id);
CREATE INDEX schedules_due ON schedules(next_run) WHERE status = 'active' AND next_run IS NOT NULL;
-- part tasks: tasks
CREATE INDEX tasks_start ON tasks(start_time, id);
CREATE INDEX tasks_due ON tasks(next_run) WHERE next_run IS NOT NULL;
-- part occurrences: occurrences
CREATE INDEX occurrences_task ON occurrences(task_id, start_time);
CREATE INDEX occurrences_start ON occurrences(start_time);
CREATE INDEX occurrences_running ON occurrences(seq) WHERE status = 'running';

-- part sources: sources
CREATE INDEX sources_created ON sources(created_at, id);
CREATE INDEX sources_working ON sources(status) WHERE status NOT IN ('ready','error');
-- part chunks: chunks
CREATE INDEX chunks_record ON chunks(record_seq) WHERE record_seq <> 0;
CREATE INDEX chunks_unembedded ON chunks(source_id, position) WHERE embedded = 0;
-- part pages: _pages
CREATE INDEX _pages_frontier ON _pages(source_id, state, depth, turn);
CREATE INDEX _pages_pending ON _pages(source_id, seq) WHERE pending <> '';
-- part downloads: downloads
CREATE INDEX downloads_created ON downloads(created_at, id);
CREATE INDEX downloads_upload ON downloads(upload);

-- part deliveries: _deliveries
CREATE INDEX _deliveries_due ON _deliveries(webhook_id, next_attempt_at, id) WHERE status = 'pending';
CREATE INDEX _deliveries_next ON _deliveries(next_attempt_at) WHERE status = 'pending';
CREATE INDEX _deliveries_listed ON _deliveries(webhook_id, id);
CREATE INDEX _deliveries_ended ON _deliveries(created_at) WHERE status <> 'pending';
-- part inbound: _inbound
CREATE INDEX _inbound_created ON _inbound(created_at);
-- part senders: _senders
CREATE INDEX _senders_contact ON _senders(contact_id);
-- part outgoing: _outgoing
CREATE INDEX _outgoing_due ON _outgoing(next_attempt_at) WHERE status IN ('pending','sending');
CREATE INDEX _outgoing_line ON _outgoing(conversation_id, message_id) WHERE status IN ('pending','sending');
CREATE INDEX _outgoing_done ON _outgoing(created_at) WHERE status IN ('sent','failed');

-- part search_contacts: wanted
CREATE VIRTUAL TABLE _search_contacts USING fts5(text, content='', contentless_delete=1, detail=none, tokenize='trigram');
CREATE VIRTUAL TABLE _search_contacts_terms USING fts5vocab('_search_contacts', 'instance');
INSERT INTO _filter_counts(list, value_1, n) VALUES ('search', 'contacts', 1);
CREATE TRIGGER _contacts_search_changed AFTER UPDATE OF name, email, phone ON contacts
  WHEN (new.name, new.email, new.phone) IS NOT (old.name, old.email, old.phone) AND new.rowid < (SELECT n FROM _filter_counts WHERE list = 'search' AND value_1 = 'contacts') BEGIN
  INSERT OR IGNORE INTO _search_changes VALUES ('contacts', new.rowid);
END;
CREATE TRIGGER _contacts_search_added AFTER INSERT ON contacts WHEN new.rowid < (SELECT n FROM _filter_counts WHERE list = 'search' AND value_1 = 'contacts') BEGIN
  INSERT OR IGNORE INTO _search_changes VALUES ('contacts', new.rowid);
END;
CREATE TRIGGER _contacts_search_removed AFTER DELETE ON contacts WHEN old.rowid < (SELECT n FROM _filter_counts WHERE list = 'search' AND value_1 = 'contacts') BEGIN
  INSERT OR IGNORE INTO _search_changes VALUES ('contacts', old.rowid);
END;
-- part search_conversations: wanted
CREATE VIRTUAL TABLE _search_conversations USING fts5(text, content='', contentless_delete=1, detail=none, tokenize='trigram');
CREATE VIRTUAL TABLE _search_conversations_terms USING fts5vocab('_search_conversations', 'instance');
INSERT INTO _filter_counts(list, value_1, n) VALUES ('search', 'conversations', 1);
CREATE TRIGGER _conversations_search_changed AFTER UPDATE OF external_thread_id, metadata ON conversations
  WHEN (new.external_thread_id, new.metadata) IS NOT (old.external_thread_id, old.metadata) AND new.rowid < (SELECT n FROM _filter_counts WHERE list = 'search' AND value_1 = 'conversations') BEGIN
  INSERT OR IGNORE INTO _search_changes VALUES ('conversations', new.rowid);
END;
CREATE TRIGGER _conversations_search_added AFTER INSERT ON conversations WHEN new.rowid < (SELECT n FROM _filter_counts WHERE list = 'search' AND value_1 = 'conversations') BEGIN
  INSERT OR IGNORE INTO _search_changes VALUES ('conversations', new.rowid);
END;
CREATE TRIGGER _conversations_search_removed AFTER DELETE ON conversations WHEN old.rowid < (SELECT n FROM _filter_counts WHERE list = 'search' AND value_1 = 'conversations') BEGIN
  INSERT OR IGNORE INTO _search_changes VALUES ('conversations', old.rowid);
END;
-- part search_messages: wanted
CREATE VIRTUAL TABLE _search_messages USING fts5(text, content='', contentless_delete=1, detail=none, tokenize='trigram');
CREATE VIRTUAL TABLE _search_messages_terms USING fts5vocab('_search_messages', 'instance');
INSERT INTO _filter_counts(list, value_1, n) VALUES ('search', 'messages', 1);
CREATE TRIGGER _messages_search_changed AFTER UPDATE OF id, content ON messages
  WHEN (new.id, new.content) IS NOT (old.id, old.content) AND new.id < (SELECT n FROM _filter_counts WHERE list = 'search' AND value_1 = 'messages') BEGIN
  INSERT OR IGNORE INTO _search_changes VALUES ('messages', new.id);
END;
CREATE TRIGGER _messages_search_added AFTER INSERT ON messages WHEN new.rowid < (SELECT n FROM _filter_counts WHERE list = 'search' AND value_1 = 'messages') BEGIN
  INSERT OR IGNORE INTO _search_changes VALUES ('messages', new.rowid);
END;
CREATE TRIGGER _messages_search_removed AFTER DELETE ON messages WHEN old.rowid < (SELECT n FROM _filter_counts WHERE list = 'search' AND value_1 = 'messages') BEGIN
  INSERT OR IGNORE INTO _search_changes VALUES ('messages', old.rowid);
END;
-- part search_logs: wanted
CREATE TABLE _search_log_blocks (
  to_at    TEXT NOT NULL,
  to_id    TEXT NOT NULL,
  after_at TEXT NOT NULL,
  after_id TEXT NOT NULL,
  seq      INTEGER NOT NULL UNIQUE,
  PRIMARY KEY (to_at, to_id)
) WITHOUT ROWID, STRICT;
CREATE VIRTUAL TABLE _search_logs USING fts5(text, content='', contentless_delete=1, detail=none, tokenize='trigram');
CREATE VIRTUAL TABLE _search_logs_terms USING fts5vocab('_search_logs', 'instance');
INSERT INTO _filter_counts(list, value_1, n) VALUES ('search', 'logs', 1);
CREATE TRIGGER _logs_search_added AFTER INSERT ON logs WHEN new.created_at <= (SELECT value_2 FROM _filter_counts WHERE list = 'search' AND value_1 = 'logs') BEGIN
  INSERT OR IGNORE INTO _search_changes VALUES ('logs', new.created_at || new.id);
END;
-- since 5
-- part seen: _seen
CREATE INDEX _seen_execution ON _seen(execution_id) WHERE execution_id <> '';
-- part executions_by_contact: wanted
CREATE INDEX executions_by_contact ON executions(input ->> '$.contact.id', id) WHERE input ->> '$.contact.id' IS NOT NULL;
-- part views_of_events: writing contacts, conversations, messages, gateways
CREATE VIEW _contact_json AS SELECT id, json_object('id',id,'name',name,'email',email,'phone',phone,'chatbot_a',chatbot_a,'chatbot_b',chatbot_b,'social_handle',social_handle,
  'external_id',external_id,'notes',notes,'tags',json(tags),'metadata',json(metadata),'created_at',created_at,'updated_at',updated_at) AS json FROM contacts;
CREATE VIEW _conversation_json AS SELECT id, json_object('id',id,'contact_id',contact_id,'gateway_id',gateway_id,'external_thread_id',external_thread_id,
  'muted',json(iif(muted,'true','false')),'status',status,'assignee',assignee,'needs_human',json(iif(needs_human,'true','false')),'unread',unread,
  'metadata',json(metadata),'created_at',created_at,'updated_at',updated_at) AS json FROM conversations;
CREATE VIEW _gateway_json AS SELECT id, json_object('id',id,'type',type,'name',name,'status',status,
  'is_default',json(iif(is_default,'true','false')),'verified',json(iif(verified,'true','false'))) AS json FROM gateways;
CREATE VIEW _message_events AS SELECT m.id AS message_id, json_object(
  'message', json_object('id',m.id,'conversation_id',m.conversation_id,'role',m.role,'content',m.content,'metadata',json(m.metadata),'created_at',m.created_at),
  'conversation', json((SELECT json FROM _conversation_json WHERE id = v.id)),
  'contact', json((SELECT json FROM _contact_json WHERE id = coalesce(m.metadata ->> '$.contact_id', v.contact_id))),
  'gateway', json((SELECT json FROM _gateway_json WHERE id = v.gateway_id))) AS data
  FROM messages m JOIN conversations v ON v.id = m.conversation_id;
-- part writing_contacts: writing contacts
CREATE UNIQUE INDEX contacts_email ON contacts(lower(trim(email))) WHERE email <> '';
CREATE UNIQUE INDEX contacts_phone ON contacts(
  replace(replace(replace(replace(replace(replace(replace(replace(phone,' ',''),'-',''),'(',''),')',''),'+',''),'.',''),'/',''),char(160),'')
) WHERE phone <> '';
CREATE UNIQUE INDEX contacts_chatbot_a ON contacts(ltrim(lower(trim(chatbot_a)),'@')) WHERE chatbot_a <> '';
CREATE UNIQUE INDEX contacts_chatbot_b ON contacts(chatbot_b) WHERE chatbot_b <> '';
CREATE UNIQUE INDEX contacts_external_id ON contacts(external_id) WHERE external_id <> '';
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
CREATE TRIGGER _contacts_created AFTER INSERT ON contacts BEGIN
  INSERT INTO _events(type, data, created_at) SELECT 'contact.created', json_object('contact', json(json)), new.created_at FROM _contact_json WHERE id = new.id;
END;
CREATE TRIGGER _contacts_updated AFTER UPDATE ON contacts BEGIN
  INSERT INTO _events(type, data, created_at) SELECT 'contact.updated', json_object('contact', json(json)), new.updated_at FROM _contact_json WHERE id = new.id;
END;
CREATE TRIGGER _contacts_removed BEFORE DELETE ON contacts BEGIN
  INSERT INTO _events(type, data) SELECT 'contact.deleted', json_object('contact', json(json)) FROM _contact_json WHERE id = old.id;
END;
CREATE TRIGGER _contacts_counted AFTER INSERT ON contacts BEGIN UPDATE _counts SET n = n + 1 WHERE name = 'contacts'; END;
CREATE TRIGGER _contacts_uncounted AFTER DELETE ON contacts BEGIN UPDATE _counts SET n = n - 1 WHERE name = 'contacts'; END;
-- part writing_contact_tags: writing _contact_tags
CREATE TRIGGER _contact_tags_counted AFTER INSERT ON _contact_tags BEGIN
  INSERT INTO _filter_counts(list, value_1, n) VALUES ('contacts.tag', new.tag, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER _contact_tags_uncounted AFTER DELETE ON _contact_tags BEGIN
  UPDATE _filter_counts SET n = n - 1 WHERE list = 'contacts.tag' AND (value_1, value_2, value_3, value_4, value_5) = (old.tag, '', '', '', '');
END;
-- part writing_conversations: writing conversations
CREATE UNIQUE INDEX conversations_thread ON conversations(gateway_id, external_thread_id) WHERE external_thread_id <> '';
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
CREATE TRIGGER _conversations_deleted AFTER DELETE ON conversations BEGIN
  DELETE FROM _secrets WHERE owner = old.id AND (field = 'reply' OR field LIKE 'reply-%');
END;
CREATE TRIGGER _conversations_counted AFTER INSERT ON conversations BEGIN UPDATE _counts SET n = n + 1 WHERE name = 'conversations'; END;
CREATE TRIGGER _conversations_uncounted AFTER DELETE ON conversations BEGIN UPDATE _counts SET n = n - 1 WHERE name = 'conversations'; END;
CREATE TRIGGER _conversations_filed AFTER INSERT ON conversations BEGIN
  INSERT INTO _filter_counts VALUES ('conversations', new.gateway_id, new.status, coalesce('=' || new.assignee, ''), new.unread > 0, new.needs_human, 1) ON CONFLICT DO UPDATE SET n = n + 1;
  INSERT INTO _filter_counts(list, value_1, n) SELECT 'conversations.contact', new.contact_id, 1 WHERE new.contact_id <> '' ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER _conversations_refiled AFTER UPDATE OF gateway_id, status, assignee, unread, needs_human ON conversations
  WHEN (new.gateway_id, new.status, new.assignee, new.unread > 0, new.needs_human) IS NOT (old.gateway_id, old.status, old.assignee, old.unread > 0, old.needs_human) BEGIN
  UPDATE _filter_counts SET n = n - 1 WHERE list = 'conversations' AND value_1 = old.gateway_id AND value_2 = old.status AND value_3 = coalesce('=' || old.assignee, '')
    AND value_4 = CAST(old.unread > 0 AS TEXT) AND value_5 = CAST(old.needs_human AS TEXT);
  INSERT INTO _filter_counts VALUES ('conversations', new.gateway_id, new.status, coalesce('=' || new.assignee, ''), new.unread > 0, new.needs_human, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER _conversations_reassigned AFTER UPDATE OF contact_id ON conversations WHEN new.contact_id <> old.contact_id BEGIN
  UPDATE _filter_counts SET n = n - 1 WHERE list = 'conversations.contact' AND (value_1, value_2, value_3, value_4, value_5) = (old.contact_id, '', '', '', '');
  INSERT INTO _filter_counts(list, value_1, n) SELECT 'conversations.contact', new.contact_id, 1 WHERE new.contact_id <> '' ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER _conversations_unfiled AFTER DELETE ON conversations BEGIN
  UPDATE _filter_counts SET n = n - 1 WHERE list = 'conversations' AND value_1 = old.gateway_id AND value_2 = old.status AND value_3 = coalesce('=' || old.assignee, '')
    AND value_4 = CAST(old.unread > 0 AS TEXT) AND value_5 = CAST(old.needs_human AS TEXT);
  UPDATE _filter_counts SET n = n - 1 WHERE list = 'conversations.contact' AND (value_1, value_2, value_3, value_4, value_5) = (old.contact_id, '', '', '', '');
END;
-- part writing_messages: writing messages
CREATE TRIGGER _messages_removed AFTER DELETE ON messages BEGIN
  UPDATE conversations SET last_message_id = coalesce((SELECT max(id) FROM messages WHERE conversation_id = old.conversation_id AND role IN ('user','assistant')), 0)
    WHERE id = old.conversation_id AND last_message_id = old.id;
END;
CREATE TRIGGER _messages_created AFTER INSERT ON messages WHEN new.role IN ('user','assistant') BEGIN
  UPDATE conversations SET last_message_id = new.id, unread = iif(new.role = 'user', unread + (contact_id <> '' OR gateway_id <> ''), 0), status = iif(new.role = 'user', 'open', status) WHERE id = new.conversation_id;
  INSERT INTO _events(type, data, created_at) SELECT iif(new.role = 'user', 'message.received', 'message.sent'), data, new.created_at
    FROM _message_events WHERE message_id = new.id AND new.metadata ->> '$.delivery.status' IS NOT 'pending';
END;
CREATE TRIGGER _messages_delivered AFTER UPDATE OF metadata ON messages WHEN new.role = 'assistant' AND old.metadata ->> '$.delivery.status' = 'pending' AND new.metadata ->> '$.delivery.status' = 'sent' BEGIN
  INSERT INTO _events(type, data) SELECT 'message.sent', data FROM _message_events WHERE message_id = new.id;
END;
CREATE TRIGGER _messages_counted AFTER INSERT ON messages BEGIN UPDATE _counts SET n = n + 1 WHERE name = 'messages'; END;
CREATE TRIGGER _messages_uncounted AFTER DELETE ON messages BEGIN UPDATE _counts SET n = n - 1 WHERE name = 'messages'; END;
-- part writing_outgoing: writing _outgoing
CREATE TRIGGER _outgoing_ended AFTER UPDATE OF status ON _outgoing WHEN new.status IN ('sent','failed') AND old.status <> new.status BEGIN
  UPDATE messages SET metadata = json_patch(metadata, json_object('external_id', nullif(new.external_id, ''), 'delivered_at', iif(new.status = 'sent', strftime('%Y-%m-%dT%H:%M:%fZ','now'), NULL),
    'delivery', json_object('status', new.status, 'error', nullif(new.error, '')))) WHERE id = new.message_id;
  UPDATE _outgoing SET next_attempt_at = '1970-01-01T00:00:00.000Z' WHERE message_id = (SELECT min(message_id) FROM _outgoing WHERE conversation_id = new.conversation_id AND status IN ('pending','sending'));
END;
CREATE TRIGGER _outgoing_removed AFTER DELETE ON _outgoing WHEN old.status IN ('pending','sending') BEGIN
  UPDATE _outgoing SET next_attempt_at = coalesce(next_attempt_at, '1970-01-01T00:00:00.000Z') WHERE message_id = (SELECT min(message_id) FROM _outgoing WHERE conversation_id = old.conversation_id AND status IN ('pending','sending'));
END;
-- part writing_gateways: writing gateways
CREATE UNIQUE INDEX gateways_default ON gateways(type) WHERE is_default = 1;
CREATE TRIGGER _gateways_fixed BEFORE UPDATE OF id, type ON gateways WHEN new.id <> old.id OR new.type <> old.type BEGIN
  SELECT RAISE(ABORT, 'the id and the type of a gateway stay as they are, for its credentials are for them');
END;
CREATE TRIGGER _gateways_updated AFTER UPDATE OF status ON gateways WHEN new.status <> old.status AND new.status IN ('active','error') BEGIN
  INSERT INTO _events(type, data, created_at) SELECT 'gateway.' || new.status, json_object('gateway', json_set(json, '$.last_error', new.last_error)), new.updated_at FROM _gateway_json WHERE id = new.id;
END;
CREATE TRIGGER _gateways_counted AFTER INSERT ON gateways BEGIN UPDATE _counts SET n = n + 1 WHERE name = 'gateways'; END;
CREATE TRIGGER _gateways_uncounted AFTER DELETE ON gateways BEGIN UPDATE _counts SET n = n - 1 WHERE name = 'gateways'; END;
CREATE TRIGGER _gateways_forgotten AFTER DELETE ON gateways BEGIN DELETE FROM _secrets WHERE owner = old.id; END;
-- part writing_canned_replies: writing canned_replies
CREATE UNIQUE INDEX canned_replies_shortcut ON canned_replies(shortcut COLLATE NOCASE);
CREATE TRIGGER _canned_replies_counted AFTER INSERT ON canned_replies BEGIN UPDATE _counts SET n = n + 1 WHERE name = 'canned_replies'; END;
CREATE TRIGGER _canned_replies_uncounted AFTER DELETE ON canned_replies BEGIN UPDATE _counts SET n = n - 1 WHERE name = 'canned_replies'; END;
-- part writing_executions: writing executions
CREATE UNIQUE INDEX executions_idempotency_key ON executions(idempotency_key) WHERE idempotency_key <> '';
CREATE TRIGGER _executions_forgotten AFTER DELETE ON executions BEGIN DELETE FROM _journal WHERE execution_id = old.id; END;
CREATE TRIGGER _executions_counted AFTER INSERT ON executions BEGIN UPDATE _counts SET n = n + 1 WHERE name = 'executions'; END;
CREATE TRIGGER _executions_uncounted AFTER DELETE ON executions BEGIN UPDATE _counts SET n = n - 1 WHERE name = 'executions'; END;
CREATE TRIGGER _executions_filed AFTER INSERT ON executions WHEN new.status IN ('complete','errored','terminated') BEGIN
  INSERT INTO _filter_counts(list, value_1, value_2, value_3, n) VALUES ('executions', new.workflow_id, new.status, new.trigger, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER _executions_refiled AFTER UPDATE OF status ON executions WHEN new.status <> old.status BEGIN
  UPDATE _filter_counts SET n = n - 1 WHERE old.status IN ('complete','errored','terminated')
    AND list = 'executions' AND value_1 = old.workflow_id AND value_2 = old.status AND value_3 = old.trigger AND value_4 = '' AND value_5 = '';
  INSERT INTO _filter_counts(list, value_1, value_2, value_3, n) SELECT 'executions', new.workflow_id, new.status, new.trigger, 1
    WHERE new.status IN ('complete','errored','terminated') ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER _executions_unfiled AFTER DELETE ON executions WHEN old.status IN ('complete','errored','terminated') BEGIN
  UPDATE _filter_counts SET n = n - 1 WHERE list = 'executions' AND value_1 = old.workflow_id AND value_2 = old.status AND value_3 = old.trigger AND value_4 = '' AND value_5 = '';
END;
-- part writing_workflows: writing workflows
CREATE VIEW _workflow_credentials AS SELECT w.id AS workflow_id
  FROM workflows w, json_each(w.nodes) n, json_each(iif(n.type = 'object', n.value, '{}')) d, json_each(iif(d.type = 'object', d.value, '{}')) f, json_each(iif(f.type = 'object', f.value, '{}')) s
  WHERE d.key = 'data' AND f.key IN ('auth','headers') AND s.type = 'text' AND s.value NOT IN ('','********') AND instr(s.value, '{{') = 0
  AND EXISTS (SELECT 1 FROM json_each(n.value) t WHERE t.key = 'type' AND (t.value = 'http-request' OR t.value = 'trigger' AND f.key = 'auth'))
  AND iif(f.key = 'auth', s.key IN ('token','password','value','secret'), lower(s.key) <> 'idempotency-key' AND (s.key LIKE '%authorization%' OR s.key LIKE '%key%' OR s.key LIKE '%token%' OR s.key LIKE '%secret%' OR s.key LIKE '%cookie%'));
CREATE TRIGGER _workflows_triggered AFTER UPDATE OF nodes, status ON workflows BEGIN
  DELETE FROM _triggers WHERE workflow_id = old.id AND (new.status <> 'active' OR node_id NOT IN (SELECT value ->> '$.id' FROM json_each(new.nodes)
    WHERE type = 'object' AND value ->> '$.type' = 'trigger' AND value ->> '$.id' IS NOT NULL AND NOT coalesce(value ->> '$.data.disabled', 0)));
  INSERT INTO _triggers SELECT new.id, value ->> '$.id', coalesce(value ->> '$.data.event', 'manual'), key, value -> '$.data.auth', (SELECT coalesce(max(seq), 0) FROM _events)
    FROM json_each(new.nodes)
    WHERE new.status = 'active' AND type = 'object' AND value ->> '$.type' = 'trigger' AND value ->> '$.id' IS NOT NULL AND NOT coalesce(value ->> '$.data.disabled', 0)
    ON CONFLICT DO UPDATE SET since_seq = iif(event = excluded.event, since_seq, excluded.since_seq), event = excluded.event, position = excluded.position, auth = excluded.auth;
END;
CREATE TRIGGER _workflows_sealed AFTER INSERT ON workflows WHEN EXISTS (SELECT 1 FROM _workflow_credentials WHERE workflow_id = new.id) BEGIN
  SELECT RAISE(ABORT, 'credentials of nodes can only be written by the API, which seals them; ******** keeps the one that is stored');
END;
CREATE TRIGGER _workflows_resealed AFTER UPDATE OF nodes ON workflows WHEN EXISTS (SELECT 1 FROM _workflow_credentials WHERE workflow_id = new.id) BEGIN
  SELECT RAISE(ABORT, 'credentials of nodes can only be written by the API, which seals them; ******** keeps the one that is stored');
END;
CREATE TRIGGER _workflows_created AFTER INSERT ON workflows BEGIN
  INSERT OR REPLACE INTO _workflow_versions(workflow_id, version, nodes, edges, settings, created_at) VALUES (new.id, new.version, new.nodes, new.edges, new.settings, new.created_at);
  INSERT OR IGNORE INTO _triggers SELECT new.id, value ->> '$.id', coalesce(value ->> '$.data.event', 'manual'), key, value -> '$.data.auth', (SELECT coalesce(max(seq), 0) FROM _events)
    FROM json_each(new.nodes)
    WHERE new.status = 'active' AND type = 'object' AND value ->> '$.type' = 'trigger' AND value ->> '$.id' IS NOT NULL AND NOT coalesce(value ->> '$.data.disabled', 0);
END;
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
CREATE TRIGGER _workflows_counted AFTER INSERT ON workflows BEGIN UPDATE _counts SET n = n + 1 WHERE name = 'workflows'; END;
CREATE TRIGGER _workflows_uncounted AFTER DELETE ON workflows BEGIN UPDATE _counts SET n = n - 1 WHERE name = 'workflows'; END;
CREATE TRIGGER _workflows_forgotten AFTER DELETE ON workflows BEGIN DELETE FROM _secrets WHERE owner = old.id; END;
-- part writing_filter_counts: writing _filter_counts
CREATE TRIGGER _filter_counts_empty AFTER UPDATE OF n ON _filter_counts WHEN new.n = 0 BEGIN
  DELETE FROM _filter_counts WHERE (list, value_1, value_2, value_3, value_4, value_5) = (new.list, new.value_1, new.value_2, new.value_3, new.value_4, new.value_5);
END;
-- part writing_schedules: writing schedules
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
CREATE TRIGGER _schedules_unchained AFTER DELETE ON schedules BEGIN DELETE FROM _chains WHERE id = old.id; END;
CREATE TRIGGER _schedules_counted AFTER INSERT ON schedules BEGIN UPDATE _counts SET n = n + 1 WHERE name = 'schedules'; END;
CREATE TRIGGER _schedules_uncounted AFTER DELETE ON schedules BEGIN UPDATE _counts SET n = n - 1 WHERE name = 'schedules'; END;
-- part writing_tasks: writing tasks
CREATE TRIGGER _tasks_bounded BEFORE INSERT ON tasks WHEN (SELECT n FROM _counts WHERE name = 'tasks') >= 10000 BEGIN
  SELECT RAISE(ABORT, 'an agent may have at most 10000 tasks');
END;
CREATE TRIGGER _tasks_added AFTER INSERT ON tasks BEGIN
  INSERT OR REPLACE INTO _replan VALUES (new.id, 0);
END;
CREATE TRIGGER _tasks_retimed AFTER UPDATE OF start_time, end_time, timezone, recurrence, recurrence_days, recurrence_end, recurrence_count, exceptions ON tasks BEGIN
  INSERT OR REPLACE INTO _replan VALUES (new.id, 0);
END;
CREATE TRIGGER _tasks_restated AFTER UPDATE OF status ON tasks WHEN new.status <> old.status AND (new.next_run IS NULL) = (new.status = 'pending') BEGIN
  INSERT OR REPLACE INTO _replan VALUES (new.id, 1);
END;
CREATE TRIGGER _tasks_removed AFTER DELETE ON tasks BEGIN
  DELETE FROM _replan WHERE id = old.id;
END;
CREATE TRIGGER _tasks_unchained AFTER DELETE ON tasks BEGIN DELETE FROM _chains WHERE id = old.id; END;
CREATE TRIGGER _tasks_counted AFTER INSERT ON tasks BEGIN UPDATE _counts SET n = n + 1 WHERE name = 'tasks'; END;
CREATE TRIGGER _tasks_uncounted AFTER DELETE ON tasks BEGIN UPDATE _counts SET n = n - 1 WHERE name = 'tasks'; END;
-- part writing_replan: writing _replan
CREATE TRIGGER _chains_kept AFTER INSERT ON _replan BEGIN
  INSERT OR REPLACE INTO _chains(id, root) SELECT new.id, root FROM _chains WHERE id = '';
END;
-- part writing_sources: writing sources
CREATE TRIGGER _sources_deleted AFTER DELETE ON sources BEGIN
  INSERT OR IGNORE INTO _purge VALUES (old.id);
  DELETE FROM _feeds WHERE source_id = old.id;
  DELETE FROM _secrets WHERE owner = old.id;
END;
CREATE TRIGGER _sources_counted AFTER INSERT ON sources BEGIN UPDATE _counts SET n = n + 1 WHERE name = 'sources'; END;
CREATE TRIGGER _sources_uncounted AFTER DELETE ON sources BEGIN UPDATE _counts SET n = n - 1 WHERE name = 'sources'; END;
-- part index_of_chunks: writing chunks
CREATE VIRTUAL TABLE _chunk_text USING fts5(section, content, content='', tokenize="porter unicode61 remove_diacritics 2 categories 'L* N* Mn Mc Co'");
CREATE VIRTUAL TABLE _chunk_terms USING fts5vocab('_chunk_text', 'row');
CREATE VIRTUAL TABLE _chunk_vectors USING vec0(source INTEGER, embedding float[512] distance_metric=cosine, chunk_size=256);
-- part writing_chunks: writing chunks
CREATE UNIQUE INDEX chunks_position ON chunks(source_id, position);
CREATE TRIGGER _chunks_inserted AFTER INSERT ON chunks BEGIN
  INSERT INTO _chunk_text(rowid, section, content) VALUES (new.seq, separate_words(new.section), separate_words(new.content));
END;
CREATE TRIGGER _chunks_deleted AFTER DELETE ON chunks BEGIN
  INSERT INTO _chunk_text(_chunk_text, rowid, section, content) VALUES ('delete', old.seq, separate_words(old.section), separate_words(old.content));
  DELETE FROM _chunk_vectors WHERE rowid = old.seq;
  UPDATE _counts SET n = n + 1 WHERE name = 'vectors_gone' AND old.embedded;
END;
-- part writing_files: writing _files
CREATE TRIGGER _files_deleted AFTER DELETE ON _files BEGIN
  DELETE FROM _file_parts WHERE upload = old.upload;
END;
-- part writing_downloads: writing downloads
CREATE TRIGGER _downloads_deleted AFTER DELETE ON downloads WHEN old.upload <> '' BEGIN
  DELETE FROM _file_parts WHERE upload = old.upload;
END;
-- part writing_sessions: writing sessions
CREATE TRIGGER sessions_ended AFTER UPDATE OF closed_at ON sessions WHEN new.closed_at IS NOT NULL BEGIN
  UPDATE takeovers SET status = 'cancelled', ended_at = new.closed_at WHERE session_id = new.id AND ended_at IS NULL;
END;
-- part writing_tools: writing tools
CREATE VIEW _tool_credentials AS SELECT o.id AS tool_id
  FROM tools o, json_each(o.config) f, json_each(iif(f.type = 'object', f.value, '{}')) s
  WHERE lower(f.key) IN ('auth','headers') AND s.type = 'text' AND s.value NOT IN ('','********')
  AND iif(lower(f.key) = 'auth', lower(s.key) IN ('token','password','value'), (s.key LIKE '%authorization%' OR s.key LIKE '%key%' OR s.key LIKE '%token%' OR s.key LIKE '%secret%' OR s.key LIKE '%cookie%'));
CREATE TRIGGER _tools_sealed AFTER INSERT ON tools WHEN EXISTS (SELECT 1 FROM _tool_credentials WHERE tool_id = new.id) BEGIN
  SELECT RAISE(ABORT, 'credentials of tools can only be written by the API, which seals them; ******** keeps the one that is stored');
END;
CREATE TRIGGER _tools_resealed AFTER UPDATE OF config ON tools WHEN EXISTS (SELECT 1 FROM _tool_credentials WHERE tool_id = new.id) BEGIN
  SELECT RAISE(ABORT, 'credentials of tools can only be written by the API, which seals them; ******** keeps the one that is stored');
END;
CREATE TRIGGER _tools_counted AFTER INSERT ON tools BEGIN UPDATE _counts SET n = n + 1 WHERE name = 'tools'; END;
CREATE TRIGGER _tools_uncounted AFTER DELETE ON tools BEGIN UPDATE _counts SET n = n - 1 WHERE name = 'tools'; END;
CREATE TRIGGER _tools_forgotten AFTER DELETE ON tools BEGIN DELETE FROM _secrets WHERE owner = old.id; END;
-- part writing_mcp_servers: writing mcp_servers
CREATE TRIGGER _mcp_servers_counted AFTER INSERT ON mcp_servers BEGIN UPDATE _counts SET n = n + 1 WHERE name = 'mcp_servers'; END;
CREATE TRIGGER _mcp_servers_uncounted AFTER DELETE ON mcp_servers BEGIN UPDATE _counts SET n = n - 1 WHERE name = 'mcp_servers'; END;
CREATE TRIGGER _mcp_servers_forgotten AFTER DELETE ON mcp_servers BEGIN DELETE FROM _secrets WHERE owner = old.id; END;
-- part writing_webhooks: writing webhooks
CREATE TRIGGER _webhooks_off AFTER UPDATE OF active ON webhooks WHEN new.active = 0 AND old.active = 1 BEGIN
  UPDATE _deliveries SET status = 'failed', next_attempt_at = NULL, error = 'the subscription was switched off'
    WHERE webhook_id = new.id AND status = 'pending';
END;
CREATE TRIGGER _webhooks_on AFTER UPDATE OF active ON webhooks WHEN new.active = 1 AND old.active = 0 BEGIN
  UPDATE webhooks SET failure_count = 0, since_seq = (SELECT coalesce(max(seq), 0) FROM _events) WHERE id = new.id;
END;
CREATE TRIGGER _webhooks_created AFTER INSERT ON webhooks BEGIN
  UPDATE webhooks SET since_seq = (SELECT coalesce(max(seq), 0) FROM _events) WHERE id = new.id;
END;
CREATE TRIGGER _webhooks_counted AFTER INSERT ON webhooks BEGIN UPDATE _counts SET n = n + 1 WHERE name = 'webhooks'; END;
CREATE TRIGGER _webhooks_uncounted AFTER DELETE ON webhooks BEGIN UPDATE _counts SET n = n - 1 WHERE name = 'webhooks'; END;
CREATE TRIGGER _webhooks_forgotten AFTER DELETE ON webhooks BEGIN DELETE FROM _secrets WHERE owner = old.id; END;
-- part writing_credentials: writing _credentials
CREATE TRIGGER _credentials_forgotten AFTER DELETE ON _credentials BEGIN DELETE FROM _secrets WHERE owner = old.id; END;
-- part writing_takeovers: writing takeovers
CREATE UNIQUE INDEX takeovers_open ON takeovers(session_id) WHERE ended_at IS NULL;
-- part writing_journal: writing _journal
CREATE UNIQUE INDEX _journal_seq ON _journal(execution_id, seq);
-- part writing_session_actions: writing session_actions
CREATE INDEX session_actions_session ON session_actions(session_id, seq);
-- part writing_responses: writing _responses
CREATE INDEX _responses_created ON _responses(created_at, size);
-- since 6
-- part writing_attachments: writing _attachments
CREATE INDEX _attachments_pending ON _attachments(next_attempt_at) WHERE upload = '';
CREATE TRIGGER _attachments_deleted AFTER DELETE ON _attachments WHEN old.upload <> '' BEGIN
  DELETE FROM _file_parts WHERE upload = old.upload;
END;
-- part messages_rated: wanted
CREATE INDEX messages_rated ON messages(rating, id) WHERE rating IS NOT NULL OR comment <> '';
-- part executions_version: wanted
CREATE INDEX executions_version ON executions(workflow_id, version, status, trigger);
