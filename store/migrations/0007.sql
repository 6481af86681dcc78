-- Version 7.

-- Decisions about access to the server, in the default agent's file: default_role is
-- the role that its owner chose for callers without an identity.
CREATE TABLE _access (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID, STRICT;
