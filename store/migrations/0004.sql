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

-- How many records meet what lists are filtered by, kept as _counts are. A count
-- that comes to 0 goes. value_1 and so on are, of the list:
-- contacts.tag: the tag; conversations: gateway, status, assignee after "=" or
-- nothing, whether something is unread, whether a person is needed;
-- conversations.contact: the contact; executions, those that have ended:
-- workflow, status, trigger.
CREATE TABLE _filter_counts (
  list    TEXT NOT NULL,
  value_1 TEXT NOT NULL DEFAULT '',
  value_2 TEXT NOT NULL DEFAULT '',
  value_3 TEXT NOT NULL DEFAULT '',
  value_4 TEXT NOT NULL DEFAULT '',
  value_5 TEXT NOT NULL DEFAULT '',
  n       INTEGER NOT NULL,
  PRIMARY KEY (list, value_1, value_2, value_3, value_4, value_5)
) WITHOUT ROWID, STRICT;
CREATE TRIGGER _filter_counts_empty AFTER UPDATE OF n ON _filter_counts WHEN new.n = 0 BEGIN
  DELETE FROM _filter_counts WHERE (list, value_1, value_2, value_3, value_4, value_5) = (new.list, new.value_1, new.value_2, new.value_3, new.value_4, new.value_5);
END;

INSERT INTO _filter_counts(list, value_1, n) SELECT 'contacts.tag', tag, count(*) FROM _contact_tags GROUP BY tag;
CREATE TRIGGER _contact_tags_counted AFTER INSERT ON _contact_tags BEGIN
  INSERT INTO _filter_counts(list, value_1, n) VALUES ('contacts.tag', new.tag, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER _contact_tags_uncounted AFTER DELETE ON _contact_tags BEGIN
  UPDATE _filter_counts SET n = n - 1 WHERE list = 'contacts.tag' AND (value_1, value_2, value_3, value_4, value_5) = (old.tag, '', '', '', '');
END;

DROP TRIGGER _conversations_status_added;
DROP TRIGGER _conversations_status_removed;
DROP TRIGGER _conversations_status_changed;
DROP TABLE _conversation_counts;
INSERT INTO _filter_counts(list, value_1, value_2, value_3, value_4, value_5, n)
  SELECT 'conversations', gateway_id, status, coalesce('=' || assignee, ''), unread > 0, needs_human, count(*) FROM conversations GROUP BY 2, 3, 4, 5, 6;
INSERT INTO _filter_counts(list, value_1, n) SELECT 'conversations.contact', contact_id, count(*) FROM conversations WHERE contact_id <> '' GROUP BY contact_id;
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

INSERT INTO _filter_counts(list, value_1, value_2, value_3, n)
  SELECT 'executions', workflow_id, status, trigger, count(*) FROM executions WHERE status IN ('complete','errored','terminated') GROUP BY 2, 3, 4;
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

-- Indexes are parts of the schema that a file gets once it needs them: see
-- store/migrations/parts.sql. Those that no plan uses are gone.
DROP INDEX contacts_created;
DROP INDEX _contact_tags_contact;
DROP INDEX conversations_contact;
DROP INDEX conversations_created;
DROP INDEX messages_conversation;
DROP INDEX sources_created;
DROP INDEX sources_working;
DROP INDEX chunks_record;
DROP INDEX chunks_unembedded;
DROP INDEX _pages_frontier;
DROP INDEX _pages_pending;
DROP INDEX downloads_created;
DROP INDEX downloads_upload;
DROP INDEX _vector_segments_sizes;
DROP INDEX workflows_created;
DROP INDEX _triggers_event;
DROP INDEX executions_workflow;
DROP INDEX executions_parent;
DROP INDEX _replays_created;
DROP INDEX _waits_due;
DROP INDEX _waits_event;
DROP INDEX _waits_child;
DROP INDEX schedules_due;
DROP INDEX schedules_created;
DROP INDEX runs_schedule;
DROP INDEX runs_running;
DROP INDEX tasks_start;
DROP INDEX tasks_due;
DROP INDEX occurrences_task;
DROP INDEX occurrences_start;
DROP INDEX occurrences_running;
DROP INDEX gateways_created;
DROP INDEX _inbound_created;
DROP INDEX _senders_contact;
DROP INDEX _outgoing_due;
DROP INDEX _outgoing_line;
DROP INDEX sessions_created;
DROP INDEX takeovers_session;
DROP INDEX webhooks_created;
DROP INDEX _deliveries_due;
DROP INDEX _deliveries_next;
DROP INDEX _deliveries_listed;
DROP INDEX _deliveries_ended;
DROP INDEX _secrets_unbound;
DROP INDEX _outgoing_done;
DROP INDEX conversations_recent;
DROP INDEX conversations_status;
DROP INDEX conversations_gateway;
DROP INDEX conversations_assignee;
DROP INDEX conversations_unread;
DROP INDEX conversations_needs_human;
DROP INDEX _waits_approvals;
DROP INDEX conversations_muted;
DROP INDEX executions_errored;
DROP INDEX executions_tests;

-- Rows that the index of a search does not have as they are now.
CREATE TABLE _search_changes (
  list TEXT NOT NULL,
  row  TEXT NOT NULL,  -- its rowid; of an entry of the log its time and id
  PRIMARY KEY (list, row)
) WITHOUT ROWID, STRICT;

-- Credentials: what the agent's requests may carry, and to which hosts. Secrets,
-- tokens and logins under way lie sealed in _secrets.
CREATE TABLE _credentials (
  id         TEXT PRIMARY KEY NOT NULL,
  name       TEXT NOT NULL COLLATE NOCASE UNIQUE,
  preset     TEXT NOT NULL,
  type       TEXT NOT NULL CHECK (type IN ('header','query','basic','oauth2','aws','env')),
  hosts      TEXT NOT NULL CHECK (json_valid(hosts) AND json_type(hosts) = 'array'),
  config     TEXT NOT NULL CHECK (json_valid(config) AND json_type(config) = 'object'),
  fields     TEXT NOT NULL CHECK (json_valid(fields) AND json_type(fields) = 'array'),
  status     TEXT NOT NULL CHECK (status IN ('ready','needs_login','needs_confirm','failing')),
  account    TEXT NOT NULL DEFAULT '',
  expires_at TEXT,
  last_error TEXT NOT NULL DEFAULT '',
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
) STRICT;
CREATE TRIGGER _credentials_forgotten AFTER DELETE ON _credentials BEGIN DELETE FROM _secrets WHERE owner = old.id; END;
ALTER TABLE mcp_servers ADD COLUMN credential TEXT NOT NULL DEFAULT '';
