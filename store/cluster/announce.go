package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"satchel/store"
	"satchel/store/cluster/pg"
)

// errSameURL reports that another server has the same URL, so that the others could not
// tell them apart.
var errSameURL = errors.New(
	"another server of the cluster has the same URL: set --cluster-url on each to where the others reach it",
)

// announce adds the session to the servers of the cluster. While another server
// has the same URL it waits: it fails if that server sends a heartbeat, and
// considers it dead if there was none for as long as quiet.
func (cluster *Cluster) announce(ctx context.Context, quiet time.Duration) error {
	var last peer
	for began := time.Now(); ; {
		other, err := cluster.insertSelf(ctx, last, time.Since(began) > quiet)
		switch {
		case err != nil || other == nil:
			return err
		case other.Session == last.Session && other.beat != last.beat:
			return fmt.Errorf("%s is the URL of server %q: %w", other.URL, other.Name, errSameURL)
		case other.Session != last.Session:
			last, began = *other, time.Now()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollEvery):
		}
	}
}

// insertSelf adds the session, unless another live server has its URL; if so, it returns
// that server. dead means that the server last, returned before, is considered dead if it
// has sent no heartbeat since.
func (cluster *Cluster) insertSelf(ctx context.Context, last peer, dead bool) (other *peer, err error) {
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	const end = "UPDATE node SET alive = false, died = clock_timestamp() WHERE alive AND "
	cluster.mu.Lock()
	self, leaving, why := cluster.self, cluster.leaving, cluster.reasonLocked()
	cluster.mu.Unlock()
	err = cluster.pool.Transact(ctx, func(tx *pg.Tx) error {
		// This serializes servers that start at the same time.
		var recovering bool
		err := tx.QueryRow(ctx, "UPDATE cluster SET joins = joins + 1 RETURNING recovering").Scan(&recovering)
		if err == nil && recovering {
			return errRecovering
		}
		if err == nil && cluster.starting() { // a server with the same folder and address is this one before a restart
			_, err = tx.Exec(
				ctx,
				end+"url = $1 AND place = $2 AND session <> $3",
				self.URL,
				cluster.place,
				self.Session,
			)
		}
		if err == nil && dead {
			_, err = tx.Exec(ctx, end+"session = $1 AND beat = $2", last.Session, last.beat)
		}
		if err != nil {
			return err
		}
		n := peer{}
		err = tx.QueryRow(
			ctx,
			"SELECT session, name, url, beat FROM node WHERE url = $1 AND alive AND session <> "+
				"$2 ORDER BY session LIMIT 1",
			self.URL,
			self.Session,
		).Scan(&n.Session, &n.Name, &n.URL, &n.beat)
		if err == nil {
			other = &n
		}
		if !errors.Is(err, pg.ErrNoRows) {
			return err
		}
		_, err = tx.Exec(
			ctx,
			"INSERT INTO node(session, name, url, version, file_version, place, leaving, reason) "+
				"VALUES ($1,$2,$3,$4,$5,$6,$7,$8)",
			self.Session, self.Name, self.URL, self.Version,
			store.FileVersion(),
			cluster.place,
			leaving,
			string(why),
		)
		return err
	})
	return other, err
}
