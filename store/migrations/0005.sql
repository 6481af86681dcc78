-- Version 5.

-- Where chunks are. Chunks that were made before have no lines, and only their
-- first section, until their source is read again.
ALTER TABLE chunks ADD COLUMN further_sections TEXT NOT NULL DEFAULT '';
ALTER TABLE chunks ADD COLUMN line INTEGER NOT NULL DEFAULT 0;
ALTER TABLE chunks ADD COLUMN last_line INTEGER NOT NULL DEFAULT 0;
