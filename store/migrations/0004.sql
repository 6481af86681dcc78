-- Version 4.

ALTER TABLE tools ADD COLUMN enabled INTEGER NOT NULL DEFAULT 1 CHECK (enabled IN (0,1));

-- What schedules did on a day.
CREATE INDEX runs_scheduled ON runs(scheduled_for, schedule_id, status);

-- Gateways of websites. Only the check of a column changes, so its text does,
-- and no row is written again: https://www.sqlite.org/lang_altertable.html#otheralter
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, '''sms'',''webhook''', '''sms'',''webhook'',''web''') WHERE type = 'table' AND name = 'gateways';
PRAGMA writable_schema = RESET;
