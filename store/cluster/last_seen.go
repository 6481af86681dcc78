package cluster

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"satchel/agent"
)

// stopped is the owner of agents whose commits the database has lost: no server serves
// them until the operator has decided.
const stopped = "stopped"

// restoredBeats is how many heartbeats, one per second, the database must be behind to be
// considered restored from a backup. A promoted standby may lack fewer; then only agents
// with missing commits are stopped.
const restoredBeats = 10

// Reasons why a server does not join its cluster.
var (
	errRestored = errors.New("the cluster's database is in an older state than it was, as after it was restored " +
		"from a backup: nothing is served until \"satchel cluster recover\" and \"satchel cluster resume\"")
	errOther = errors.New("this data folder is of another cluster than the database: if its database was lost, " +
		"bring the agents into the new one with \"satchel cluster recover\" before any server starts; " +
		"otherwise start with an empty --data")
	errRecovering = errors.New(
		"agents are being recovered into the cluster's database: servers start after \"satchel cluster resume\"",
	)
)

var errBehindAgent = agent.Errorf(
	agent.CodeAgentDamaged,
	"the cluster's database has lost changes of this agent: it is stopped until the operator has run \"satchel "+
		"cluster recover\" and \"satchel cluster resume\"",
).Because(errBehind)

// lastSeen is what a server last saw of the database, saved in its folder: it shows whether
// the database has gone back to an older state. ID and Path identify the folder.
type lastSeen struct {
	ID          string `json:"id"`
	Path        string `json:"path"`
	Cluster     string `json:"cluster"`
	Incarnation string `json:"incarnation,omitempty"`
	Session     string `json:"session,omitempty"`
	Beat        int64  `json:"beat,omitempty"`
	Joins       int64  `json:"joins,omitempty"`
	MasterKey   string `json:"master_key,omitempty"` // see keyCheck
}

func lastSeenPath(folder string) string { return filepath.Join(folder, "cluster", "node") }

func readLastSeen(folder string) (p lastSeen) {
	raw, err := os.ReadFile(lastSeenPath(folder))
	if err != nil || json.Unmarshal(raw, &p) != nil {
		return lastSeen{}
	}
	return p
}

// writeLastSeen saves what was seen of the database.
func (cluster *Cluster) writeLastSeen() {
	cluster.mu.Lock()
	p := cluster.lastSeen
	cluster.mu.Unlock()
	raw, err := json.Marshal(p)
	if path := lastSeenPath(cluster.Path); err == nil && p.ID != "" {
		if err = os.WriteFile(path+".new", raw, 0o600); err == nil { // a full disk or a kill leaves the old file intact
			err = os.Rename(path+".new", path)
		}
	}
	if err != nil {
		cluster.Log.Warn("store the state of the cluster", "error", err)
	}
}

// remember loads what this server saw of the database before it was restarted. The error
// is errRestored if the database is older than that.
func (cluster *Cluster) remember(ctx context.Context) error {
	path, err := filepath.Abs(cluster.Path)
	if err != nil {
		return err
	}
	seen, now := readLastSeen(cluster.Path), lastSeen{}
	var beat *int64
	err = cluster.pool.QueryRow(
		ctx,
		"SELECT joins, incarnation, (SELECT beat FROM node WHERE session = $1) FROM cluster",
		seen.Session,
	).Scan(&now.Joins, &now.Incarnation, &beat)
	if err != nil {
		return err
	}
	if seen.Cluster != "" && seen.Cluster != cluster.id {
		return errOther
	}
	same := seen.Cluster == cluster.id && seen.Incarnation == now.Incarnation
	if same && (now.Joins < seen.Joins || beat != nil && *beat+restoredBeats < seen.Beat) {
		return errRestored
	}
	if seen.ID == "" || seen.Path != path { // a copied folder counts as another one
		seen.ID = rand.Text()
	}
	sum := sha256.Sum256([]byte(seen.ID + "\x00" + bootID()))
	cluster.place = hex.EncodeToString(sum[:])
	if bootID() == "" {
		cluster.place = rand.Text()
	}
	cluster.mu.Lock()
	cluster.lastSeen = lastSeen{
		ID:          seen.ID,
		Path:        path,
		Cluster:     cluster.id,
		Incarnation: now.Incarnation,
		Joins:       now.Joins,
		MasterKey:   keyCheck(cluster.MasterKeys[0], cluster.id),
	}
	cluster.mu.Unlock()
	cluster.writeLastSeen()
	return nil
}

// starting reports whether this process has not joined yet.
func (cluster *Cluster) starting() bool {
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	return cluster.lastSeen.Session == ""
}

// isOlder reports whether a poll found the database in an older state than before. If
// not, it records the state.
func (cluster *Cluster) isOlder(session string, result pollResult) bool {
	var beat int64
	for _, n := range result.nodes {
		if n.Session == session {
			beat = n.beat
		}
	}
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	if cluster.lastSeen.Session != session {
		return false
	}
	if result.incarnation == cluster.lastSeen.Incarnation &&
		(result.joins < cluster.lastSeen.Joins || beat > 0 && beat+restoredBeats < cluster.lastSeen.Beat) {
		return true
	}
	cluster.lastSeen.Joins, cluster.lastSeen.Incarnation, cluster.lastSeen.Beat =
		max(cluster.lastSeen.Joins, result.joins), result.incarnation, max(cluster.lastSeen.Beat, beat)
	return false
}

// halt makes this server stop serving, and keep its files as they are.
func (cluster *Cluster) halt() error {
	cluster.mu.Lock()
	cluster.restored, cluster.expired, cluster.self.Alive = true, true, false
	cluster.mu.Unlock()
	cluster.writeLastSeen()
	for _, db := range cluster.folder.Agents() {
		cluster.remove(db.ID())
	}
	return errRestored
}

// awaitResume joins the cluster again after the operator has run resume.
func (cluster *Cluster) awaitResume(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	var joins int64
	var incarnation string
	if err := cluster.pool.QueryRow(
		bounded,
		"SELECT joins, incarnation FROM cluster",
	).Scan(&joins, &incarnation); err != nil {
		return err
	}
	cluster.mu.Lock()
	same := incarnation == cluster.lastSeen.Incarnation
	if !same {
		cluster.restored, cluster.lastSeen.Incarnation, cluster.lastSeen.Joins, cluster.lastSeen.Beat =
			false, incarnation, joins, 0
		cluster.files = map[string]*copyState{}
	}
	cluster.mu.Unlock()
	if same {
		return errRestored
	}
	cluster.writeLastSeen()
	return cluster.rejoin(ctx)
}

// stopAgent stops an agent whose commits the database has lost: no server serves it any
// more.
func (cluster *Cluster) stopAgent(id string, reason error) {
	cluster.Log.Error(
		"an agent is stopped: the cluster's database has less of it than this server",
		"agent", id,
		"error", reason,
	)
	ctx, cancel := context.WithTimeout(context.Background(), statementTime)
	defer cancel()
	_, err := cluster.pool.Exec(
		ctx,
		"UPDATE agent SET owner = $3, changed = clock_timestamp() WHERE id = $1 AND owner = $2",
		id,
		cluster.Self().Session,
		stopped,
	)
	if err != nil {
		cluster.Log.Error("stop an agent", "agent", id, "error", err)
	}
	cluster.folder.AddStoppedAgent(id, errBehindAgent)
}
