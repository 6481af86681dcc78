-- Version 4.

ALTER TABLE tools ADD COLUMN enabled INTEGER NOT NULL DEFAULT 1 CHECK (enabled IN (0,1));

-- What schedules did on a day.
CREATE INDEX runs_scheduled ON runs(scheduled_for, schedule_id, status);
