-- Parts of the schema of version 4 that a file has only once it needs them: see
-- store/parts.go. Each begins with its name, and either the table that it is of,
-- made when that has some rows, or "wanted", made when a list asks for it. In
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
