package cluster

import (
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"satchel/store/cluster/pg"
)

// format is the version of the tables. Programs with another format do not use them.
const format = 1

// tables uses plain PostgreSQL, without extensions, notifications or advisory locks.
//
// A node is one start of a server; it increments its beat while it is alive, and gets no
// agents once it is leaving, for a Reason. Its lag is that of Stats, in milliseconds;
// place identifies its data folder and machine. joins counts all nodes that ever joined,
// and incarnation changes when an operator lets the servers continue after the database
// was restored; no server joins while recovering is set. An agent belongs to the session
// that is its owner, or to none if it is stopped; head is the number of its newest
// commit. Its file is the base, in blocks of 256 KB, with the newer commits of the log
// applied to it; each commit is an LTX file. info is a store.Summary, complete if
// info_head equals head.
const tables = `
CREATE SCHEMA IF NOT EXISTS satchel;
CREATE TABLE IF NOT EXISTS cluster (
	one int PRIMARY KEY CHECK (one = 1), id text NOT NULL, format int NOT NULL, master_key text NOT NULL,
	keys_version bigint NOT NULL DEFAULT 0, key_made boolean NOT NULL DEFAULT false,
	joins bigint NOT NULL DEFAULT 0, incarnation text NOT NULL DEFAULT '', recovering boolean NOT NULL DEFAULT false);
CREATE TABLE IF NOT EXISTS node (
	session text PRIMARY KEY, name text NOT NULL, url text NOT NULL, version text NOT NULL, file_version int NOT NULL,
	beat bigint NOT NULL DEFAULT 0, alive boolean NOT NULL DEFAULT true, died timestamptz,
	leaving boolean NOT NULL DEFAULT false, lag bigint NOT NULL DEFAULT 0, place text NOT NULL DEFAULT '');
CREATE TABLE IF NOT EXISTS agent (
	id text PRIMARY KEY, name text NOT NULL, name_key text UNIQUE, owner text NOT NULL, head bigint NOT NULL,
	file_version int NOT NULL, info text NOT NULL, info_head bigint NOT NULL,
	changed timestamptz NOT NULL DEFAULT clock_timestamp(), deleted boolean NOT NULL DEFAULT false) WITH (fillfactor = 70);
CREATE INDEX IF NOT EXISTS agent_owner ON agent(owner);
CREATE INDEX IF NOT EXISTS agent_changed ON agent(changed);
CREATE TABLE IF NOT EXISTS log (agent text NOT NULL, seq bigint NOT NULL, body bytea NOT NULL, PRIMARY KEY (agent, seq));
ALTER TABLE log ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE TABLE IF NOT EXISTS base (agent text PRIMARY KEY, seq bigint NOT NULL, size bigint NOT NULL);
CREATE TABLE IF NOT EXISTS block (agent text NOT NULL, no int NOT NULL, sha bytea NOT NULL, body bytea NOT NULL, PRIMARY KEY (agent, no));
CREATE TABLE IF NOT EXISTS api_key (hash text PRIMARY KEY, key text NOT NULL);
ALTER TABLE node ADD COLUMN IF NOT EXISTS reason text NOT NULL DEFAULT '';
ALTER TABLE cluster ADD COLUMN IF NOT EXISTS default_role text NOT NULL DEFAULT ''`

// maxTuple is the longest row, in bytes, that the log keeps in one piece; nearly
// all commits are shorter. Longer ones are stored out of line, as three rows or
// more, each with an index entry. Servers of older versions can use the same
// database.
const maxTuple = 8160

// The maximum number of a server's connections; the smallest one that can be set, which
// leaves some for commits and heartbeats while files are fetched; and how long a
// transaction may be idle, as when a server is paused.
const (
	connections            = 8
	leastConnections       = fetchesAtOnce + 2
	idleTransactionTimeout = "60s"
)

// connect returns a pool of connections, none of which exist yet.
func connect(url string) (*pg.Pool, error) {
	pool, err := pg.New(url, pg.Options{
		Connections:    connections,
		Least:          leastConnections,
		ConnectTimeout: 5 * time.Second,
		Fatal:          []string{readOnlyTransaction},
		Params: map[string]string{
			"search_path": "satchel",
			// whatever the role's default: a commit counts only once it is durable
			"synchronous_commit":                  "on",
			"default_transaction_isolation":       "read committed",
			"idle_in_transaction_session_timeout": idleTransactionTimeout,
			"application_name":                    "satchel",
		},
	})
	var setting *pg.SettingError
	if errors.As(err, &setting) {
		return nil, err
	}
	if err != nil {
		return nil, errors.New("is not a URL like postgres://user:password@host/database") // err may have the password
	}
	return pool, nil
}

// readOnlyTransaction is PostgreSQL's code for a change in a read-only transaction
// (https://www.postgresql.org/docs/current/errcodes-appendix.html). A connection that
// returns it is closed: its server has become a standby, or it keeps a default that the
// operator has reset since.
const readOnlyTransaction = "25006"

// insufficientPrivilege is PostgreSQL's code for a statement that the user may not
// execute.
const insufficientPrivilege = "42501"

// prepare creates the tables that are missing. If two servers do so at the same time, one
// of them fails and tries again.
func prepare(ctx context.Context, pool *pg.Pool) error {
	for attempt := 1; ; attempt++ {
		var exists bool
		if err := pool.QueryRow(
			ctx,
			"SELECT EXISTS (SELECT 1 FROM pg_attribute "+
				"WHERE attrelid = to_regclass('satchel.node') AND attname = 'reason')",
		).Scan(&exists); err != nil || exists {
			return err
		}
		_, err := pool.Exec(ctx, tables)
		var refused *pg.Error
		switch {
		case err == nil || !errors.As(err, &refused):
			return err
		case refused.Code == insufficientPrivilege:
			return fmt.Errorf("its user must own the database, or have the privilege CREATE on it: %w", err)
		case attempt == 5:
			return err
		}
	}
}

// tune makes the log store rows up to tuple in one piece, unless it already does or the
// operator has chosen another length. A failure does no harm.
func tune(ctx context.Context, pool *pg.Pool) error {
	var chosen bool
	err := pool.QueryRow(
		ctx,
		`SELECT coalesce(reloptions::text LIKE '%toast_tuple_target=%', false) FROM pg_class `+
			`WHERE oid = 'satchel.log'::regclass`,
	).Scan(&chosen)
	if err != nil || chosen {
		return err
	}
	return pool.Transact(ctx, func(tx *pg.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '2s'"); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, fmt.Sprintf("ALTER TABLE log SET (toast_tuple_target = %d)", maxTuple))
		return err
	})
}

// errMasterKey reports that a server's master key is not the cluster's.
var errMasterKey = errors.New("the master key is not the cluster's: SATCHEL_MASTER_KEY must be the same on all servers")

// identify returns the id of the cluster, which the first server sets, and checks that
// one of the master keys is the cluster's. If that is not the first, the first becomes
// the cluster's.
func identify(ctx context.Context, pool *pg.Pool, masterKeys [][]byte) (id string, err error) {
	id = rand.Text()
	_, err = pool.Exec(
		ctx,
		`INSERT INTO cluster(one, id, format, master_key) VALUES (1, $1, $2, $3) ON CONFLICT DO NOTHING`,
		id,
		format,
		keyCheck(masterKeys[0], id),
	)
	if err != nil {
		return "", err
	}
	var version int
	var check string
	if err := pool.QueryRow(ctx, "SELECT id, format, master_key FROM cluster").Scan(&id, &version, &check); err != nil {
		return "", err
	}
	if version != format {
		return "", fmt.Errorf("the tables of the cluster have format %d, this program knows %d", version, format)
	}
	for i, key := range masterKeys {
		if keyCheck(key, id) != check {
			continue
		}
		if i > 0 {
			_, err = pool.Exec(
				ctx,
				"UPDATE cluster SET master_key = $1 WHERE master_key = $2",
				keyCheck(masterKeys[0], id),
				check,
			)
		}
		return id, err
	}
	return "", errMasterKey
}

// keyCheck returns what the cluster stores about its master key.
func keyCheck(master []byte, id string) string {
	key, err := hkdf.Key(sha256.New, master, nil, "satchel cluster check", sha256.Size)
	if err != nil {
		return ""
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte(id))
	return hex.EncodeToString(h.Sum(nil))
}
